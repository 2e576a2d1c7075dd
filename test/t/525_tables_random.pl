# Tables are made, dropped, emptied, renamed, swapped and replaced at random, with rows written in between, while the worker is killed: in the
# end the pipeline has the source's tables with the source's rows, and none besides. Prints its seed.
# cells: mariadb-15 mysql-18
# takes: 25 s

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $seed = $ENV{CDC_TEST_SEED} // time() % 1_000_000;
my $rounds = $ENV{CDC_TEST_ROUNDS} // 60;
srand($seed);
note("seed $seed, $rounds rounds (again: CDC_TEST_SEED=$seed CDC_TEST_ROUNDS=$rounds)");

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $dbh = $source->connect;
my (%table, %left, $number, $row);    # the tables that there are, by name, and those that left
sub row { $row++; return "$row"; }
sub run { my (@statements) = @_; note(join('; ', @statements)); $dbh->do($_) for @statements; return; }
sub any { my @names = sort keys %table; return $names[ rand(@names) ]; }
sub fresh { return 't' . ++$number; }
sub make { my ($name) = @_; run("create table shop.$name (id int primary key, v int)", "insert into shop.$name values (" . row() . ', 1), (' . row() . ', 2)'); $table{$name} = 1; return; }
sub write_rows
{
	for (1 .. 3)
	{
		my $name = any() // return;
		run("insert into shop.$name (id, v) values (" . row() . q{, 3)}, "update shop.$name set v = v + 1 where id % 3 = " . int(rand(3)), "delete from shop.$name where id % 11 = " . int(rand(11)));
	}
	return;
}
my %act = (
	create => sub { make(fresh()); },
	drop => sub { my $name = any(); return if keys %table < 3; run("drop table shop.$name"); delete $table{$name}; },
	again => sub { my $name = any(); run("drop table shop.$name"); make($name); },
	truncate => sub { run('truncate table shop.' . any()); },
	rename => sub { my ($from, $to) = (any(), fresh()); run("rename table shop.$from to shop.$to"); delete $table{$from}; $table{$to} = 1; },
	swap => sub { my ($a, $b) = (any(), any()); return if $a eq $b; run("rename table shop.$a to shop.between, shop.$b to shop.$a, shop.between to shop.$b"); },
	rotate => sub { my ($name, $old) = (any(), fresh()); make(my $new = fresh()); run("rename table shop.$name to shop.$old, shop.$new to shop.$name"); delete $table{$new}; $table{$old} = 1; },
	replace => sub { my $name = any(); run("create table shop._${name}_gho like shop.$name", "insert into shop._${name}_gho select * from shop.$name", "insert into shop._${name}_gho values (" . row() . ', 9)',
		"rename table shop.$name to shop._${name}_del, shop._${name}_gho to shop.$name", "drop table shop._${name}_del"); },
	away => sub { my $name = any(); return if keys %table < 3; run("rename table shop.$name to other.$name"); delete $table{$name}; $left{$name} = 1; run("rename table other.$name to shop." . (my $back = fresh())) ; $table{$back} = 1; },
	alter => sub { my ($name, $column) = (any(), 'x' . ++$number); run("alter table shop.$name add column $column int default " . int(rand(9))); write_rows(); run("alter table shop.$name drop column $column"); },
);
$source->sql('create database shop', 'create database other');
make(fresh()) for 1 .. 4;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
my @acts = sort keys %act;
my $kills = 0;
for my $round (1 .. $rounds)
{
	write_rows();
	$act{ $acts[ rand(@acts) ] }->();
	write_rows();
	next if rand() > 0.12;
	my $pid = $pipeline->status('ingest_pid');
	$postgres->kill9_process($pid), $kills++ if $pid =~ /^\d+$/;
}
note("$kills kills");
my $names = join(' ', sort keys %table);
eval { $pipeline->wait_for_catchup(120)->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; 1 } or diag($@);
is($postgres->psql(q{select coalesce(string_agg(source_table || ' ' || coalesce(last_error, ''), ', '), '') from pg_stat_cdc_table where state <> 'streaming'}), '', "no table is stopped (seed $seed)") or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(source_table, ' ' order by source_table collate "C") from pg_stat_cdc_table}), $names, 'the pipeline has the tables of the source');
is($postgres->psql(q{select string_agg(target_table, ' ' order by target_table collate "C") from pg_stat_cdc_table}), $names, 'under the same names here');
$pipeline->is_same("with the same rows (seed $seed)", sort keys %table);
my $others = $postgres->psql(q{select coalesce(string_agg(relname, ' '), '') from pg_class where relkind = 'r' and (relname like 'cdc\_re%' or relnamespace = 'shop'::regnamespace and relname not in (select target_table from pg_stat_cdc_table))});
is(join(' ', grep { !$left{$_} } split(/ /, $others)), '', 'no other table is left here, but those of tables that left');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
