# Random changes against a target that refuses rows now and then, random replays, killed workers: when all letters are settled the
# mirror is the source again, also where images tell only parts of rows. CDC_SEED repeats a run, CDC_TEST_ROUNDS makes it longer.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $rounds = $ENV{CDC_TEST_ROUNDS} // 25;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed");
srand($seed);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "dead_letter", "batch_max_ms": 20}')->setup;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int, note varchar(30), w int)", "insert into shop.$_ values " . join(', ', map { "($_, $_, 'n', 0)" } 1 .. 10)) } 'whole', 'part');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
# what is refused changes all the time: rows by their value, by their key, deletes
$postgres->psql(join(";\n", 'create schema gate', 'create table gate.refused (value int, key int, deletes boolean)', 'insert into gate.refused values (1, 1, false)',
	q{create function gate.check() returns trigger language plpgsql as $$ declare g record; begin
		select * into g from gate.refused;
		if tg_op = 'DELETE' then if g.deletes and old.id % 2 = 0 then raise 'refused'; end if; return old; end if;
		if new.v % 5 = g.value or new.id % 7 = g.key then raise 'refused'; end if;
		return new; end $$},
	map { ("create trigger gate before insert or update or delete on shop.$_ for each row execute function gate.check()", "alter table shop.$_ enable always trigger gate") } 'whole', 'part'));

my %there = map { my $table = $_; $table => { map { $_ => 1 } 1 .. 10 } } 'whole', 'part';
my $number = 0;

sub change
{
	my ($table) = @_;
	my $there = $there{$table};
	my $id = 1 + int(rand(20));
	my $v = int(rand(1000));
	$number++;
	if (!$there->{$id})
	{
		$there->{$id} = 1;
		return "insert into shop.$table values ($id, $v, 'i$number', $number)";
	}
	my $what = int(rand(6));
	if ($what == 0) { delete $there->{$id}; return "delete from shop.$table where id = $id"; }
	return "update shop.$table set v = $v where id = $id" if $what == 1;
	return "update shop.$table set note = 'u$number' where id = $id" if $what == 2;
	return "update shop.$table set v = $v, w = $number where id = $id" if $what == 3;
	my ($to) = grep { !$there->{$_} } map { 1 + int(rand(20)) } 1 .. 10;
	if ($what == 4 && $table eq 'whole' && defined $to)
	{
		delete $there->{$id};
		$there->{$to} = 1;
		return "update shop.$table set id = $to, w = $number where id = $id";
	}
	return "update shop.$table set v = $v, note = 'b$number', w = $number where id = $id";
}

my %image = (whole => 'FULL', part => 'MINIMAL');
# What is refused depends on where the stream is when the gate changes, and a stream that was away may come when the gate is open:
# so there are more rounds, before a closed gate, until enough was refused.
my $enough = $rounds / 5;
my $letters = 0;
sub has_enough
{
	$pipeline->wait_for_state('streaming')->wait_for_catchup(90);
	$letters = $postgres->psql('select count(*) from cdc_dead_letters');
	return 1 if $letters > $enough;
	$postgres->psql('update gate.refused set value = ' . int(rand(5)) . ', key = ' . int(rand(7)));
	return 0;
}

for (my $round = 1; $round <= $rounds || ($round <= $rounds + 100 && !has_enough()); $round++)
{
	for my $table ('whole', 'part')
	{
		$source->sql("set session binlog_row_image = '$image{$table}'", 'start transaction', (map { change($table) } 1 .. 1 + int(rand(6))), 'commit');
	}
	$postgres->psql('update gate.refused set value = ' . int(rand(9)) . ', key = ' . int(rand(12)) . ', deletes = ' . (rand() < 0.3 ? 'true' : 'false')) if rand() < 0.5;
	if (rand() < 0.3)
	{
		my $ids = rand() < 0.5 ? '' : q{, ids => (select array_agg(dead_letter_id) from cdc_dead_letters where state in ('waiting', 'failed') and dead_letter_id % 3 = 0)};
		$postgres->psql("select cdc_replay_dead_letters('shop_in'$ids)");
	}
	if (rand() < 0.12)
	{
		my $pid = $pipeline->status('ingest_pid');
		$postgres->psql("select pg_terminate_backend($pid)") if $pid =~ /^\d+$/;
	}
}
is($pipeline->status('tables_stopped'), '0', 'no table is stopped') or diag($pipeline->describe);
cmp_ok($letters, '>', $enough, "$letters letters");
diag($postgres->psql(q{select string_agg(state || ' ' || n, ', ' order by state) from (select state, count(*) n from cdc_dead_letters group by 1) s}));

$postgres->psql('update gate.refused set value = -1, key = -1, deletes = false');
my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
ok($postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $request", 't'), 'all are replayed at last');
is($postgres->psql(q{select count(*) from cdc_dead_letters where state in ('waiting', 'failed')}), '0', 'none is left')
  or diag($postgres->psql(q{select dead_letter_id, source_table, operation, before, after, error, newer from cdc_dead_letters d join cdc_bridge.dead_letter using (dead_letter_id) where d.state in ('waiting', 'failed') limit 10}));
$pipeline->is_same('the mirror is the source', 'whole', 'part') or diag("seed $seed");

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
