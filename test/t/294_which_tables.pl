# What a list of patterns takes in and what it leaves: views, sequences, temporary and system tables, schemas with odd names, names that
# begin alike; and tables that appear while the pipeline runs.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $mirrored = q{select coalesce(string_agg(source_schema || '.' || source_table, ' | ' order by source_schema collate "C", source_table collate "C"), '') from pg_stat_cdc_table where pipeline = };
sub tables { my ($name) = @_; return $postgres->psql("$mirrored'" . ($name // 'all_in') . q{'}); }
sub start { my ($name, $tables) = @_; $postgres->psql("select cdc_start_pipeline('$name', source => 'shop', tables => " . CdcBridge::Pipeline::quote($tables) . ')'); $pipeline->{name} = $name; return $pipeline; }

# ---- S14
mkdir("$source->{dir}/data/lost+found") or die "mkdir: $!";
my @odd = ('db1', 'db10', 'db_1', 'dbx1', 'a*b', 'axb', 'per%cent', 'do.t', 'back\\slash', 'q"uote', "q'uote", 'tick`s', 'Größe', 'with space', '!no');
sub tick { my ($name) = @_; $name =~ s/`/``/g; return "`$name`"; }
for my $schema (@odd)
{
	my $name = tick($schema);
	$source->sql("create database $name", "create table $name.t (id int primary key, v int)", "insert into $name.t values (1, 1), (2, 2)");
}
$source->sql('create view db1.looks as select * from db1.t', 'create table db1.`t%_*?` (id int primary key)', 'insert into db1.`t%_*?` values (1)');
$source->sql('create sequence db1.counter', 'select next value for db1.counter') if $source->is_mariadb;
my $session = $source->connect;
$session->do('create temporary table db1.fleeting (id int primary key)');
$session->do('insert into db1.fleeting values (1)');
start('all_in', '{*.*}')->wait_for_state('streaming')->wait_for_tables;
is(tables(), join(' | ', sort((map { "$_.t" } @odd), 'db1.t%_*?')), 'S14: all base tables and nothing else: no view, no sequence, no temporary table, no schema of the server\'s own');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'S14: whatever their schemas are called, they stream') or diag($pipeline->describe);
for my $schema (@odd)
{
	my $name = tick($schema);
	(my $quoted = $schema) =~ s/"/""/g;
	$source->sql("insert into $name.t values (3, 3)", "update $name.t set v = 4 where id = 1");
	$pipeline->wait_for_catchup;
	is($postgres->psql(qq{select string_agg(id || '=' || v, ' ' order by id) from "$quoted".t}), '1=4 2=2 3=3', "S14: schema $schema is copied and followed");
}
$source->sql('select next value for db1.counter', 'select setval(db1.counter, 500)', 'create sequence db1.another') if $source->is_mariadb;
$source->sql('create or replace view db1.looks as select id from db1.t', 'create view db1.more as select 1', 'drop view db1.more');
$session->do('update db1.fleeting set id = 2');
$session->do('drop temporary table db1.fleeting');
$source->sql('insert into db1.t values (4, 4)');
$pipeline->wait_for_catchup;
is($postgres->psql('select count(*) from db1.t'), '4', 'S14: changes of views, sequences and temporary tables harm nothing');
is($pipeline->state, 'streaming', 'S14: the pipeline goes on');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'S14: and all its tables') or diag($pipeline->describe);
unlike($postgres->log_text, qr/fits the patterns of pipeline/, 'S14: none of them is taken for a new table');

# ---- S15: names that begin alike, and characters that are wildcards elsewhere
my %pattern = (
	'{db1.*}' => [ 'db1.t', 'db1.t%_*?' ],
	'{db_1.*}' => ['db_1.t'],
	'{per%.*,do.*}' => [],
	'{per%cent.t}' => ['per%cent.t'],
	'{a\\\\*b.*}' => ['a*b.t'],
	'{a*b.*}' => [ 'a*b.t', 'axb.t' ],
	'{db?1.*}' => [ 'db_1.t', 'dbx1.t' ],
	'{do\\\\.t.*}' => ['do.t.t'],
	'{db1.t%_\\\\*\\\\?}' => ['db1.t%_*?'],
	'{*1.*,!db1.*}' => [ 'db_1.t', 'dbx1.t' ],
);
$postgres->psql(q{select cdc_stop_pipeline('all_in')});
$pipeline->wait_for_state('stopped');
$postgres->psql(q{select cdc_drop_pipeline('all_in')});
my $number = 0;
for my $list (sort keys %pattern)
{
	my $name = 'some_' . ++$number;
	$postgres->psql("select cdc_start_pipeline('$name', source => 'shop', tables => " . CdcBridge::Pipeline::quote($list) . ", target_schema => '$name')");
	$pipeline->{name} = $name;
	if (@{ $pattern{$list} })
	{
		$postgres->poll(qq{select count(*) > 0 from pg_stat_cdc_table where pipeline = '$name'}, 't', 60);
		is(tables($name), join(' | ', @{ $pattern{$list} }), "S15: $list takes in exactly these");
	}
	else
	{
		$pipeline->wait_for_status('last_error', qr/has no table for pipeline/, 60);
		pass("S15: $list takes in none, and says so");
	}
	$postgres->psql("select cdc_stop_pipeline('$name')");
	$pipeline->wait_for_state('stopped');
	$postgres->psql("select cdc_drop_pipeline('$name'); drop schema if exists $name cascade");
}

# ---- S15: tables that appear while it runs
$postgres->psql(q{drop schema db1 cascade});
start('one_in', '{db1.*,!db1.private*}')->wait_for_state('streaming')->wait_for_tables;
# by themselves they join in 521; here they do not
$postgres->psql(q{select cdc_alter_pipeline('one_in', options => '{"schema_changes_exclude": ["create_table"]}')});
$pipeline->wait_for_state('streaming');
is($postgres->psql(q{select status from cdc_check_pipeline('one_in') where "check" = 'new tables'}), 'ok', 'S15: no table is new');
sub is_told
{
	my ($name, $table) = @_;
	$pipeline->wait_for_catchup;
	return ok($postgres->log_text =~ /source table "\Q$table\E" fits the patterns of pipeline "one_in" and is not mirrored/, $name) || diag($postgres->log_tail(20));
}
$source->sql('create table db1.fresh (id int primary key)', 'insert into db1.fresh values (1)', 'create table db10.other (id int primary key)', 'create table db1.private_notes (id int primary key)',
	'create table db10.moving (id int primary key)', 'rename table db10.moving to db1.arrived', 'create table db1.like_it like db1.t', 'create table db1.selected (id int primary key) as select id from db1.t',
	'create table db10.away (id int primary key)', 'alter table db10.away rename to db1.brought');
is_told("S15: a new table in a pattern is told: $_", "db1.$_") for qw(fresh arrived like_it selected brought);
unlike($postgres->log_text, qr/source table "(db10\.[a-z]+|db1\.private_notes)" fits/, 'S15: none that the patterns do not mean');
is(tables('one_in'), 'db1.t | db1.t%_*?', 'S15: it does not join by itself');
is($pipeline->state, 'streaming', 'S15: nothing is stopped by it');
is($postgres->psql(q{select status, detail from cdc_check_pipeline('one_in') where "check" = 'new tables'}),
	'warning|The source has 5 tables that fit the patterns and are not mirrored: "db1.arrived", "db1.brought", "db1.fresh", "db1.like_it", "db1.selected".', 'S15: cdc_check_pipeline() has them');
my $hint = $postgres->psql(q{select hint from cdc_check_pipeline('one_in') where "check" = 'new tables'});
my ($add) = $hint =~ /(SELECT cdc_add_table\(.*?\))/;
is($add, q{SELECT cdc_add_table('one_in', 'db1.arrived')}, 'S15: the hint is a statement');
$source->sql('insert into db1.arrived values (7)');
$postgres->psql(qq{begin; select cdc_remove_table('one_in', 'db1.fresh'); $add; commit});
$pipeline->wait_for_table_state('arrived', 'streaming');
is($postgres->psql('select id from db1.arrived'), '7', 'S15: it joins when it is told to');
is(tables('one_in'), 'db1.arrived | db1.brought | db1.like_it | db1.selected | db1.t | db1.t%_*?', 'S15: and with it all that fit, but the one that was left out');
is($postgres->psql(q{select status from cdc_check_pipeline('one_in') where "check" = 'new tables'}), 'ok', 'S15: then none is new');
# while it was stopped
$postgres->psql(q{select cdc_stop_pipeline('one_in')});
$pipeline->wait_for_state('stopped');
$source->sql('create table db1.meanwhile (id int primary key)');
$postgres->psql(q{select cdc_start_pipeline('one_in')});
$pipeline->wait_for_state('streaming');
is_told('S15: one that was made while the pipeline was stopped is told too', 'db1.meanwhile');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
