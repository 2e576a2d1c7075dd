# D6, D7: tools for online schema changes that change a table's shape; a table that is altered and renamed in one statement; many tables at once.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"batch_max_ms": 0}')->setup;
sub settle { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; return $pipeline; }
my $serial = 0;
# the statements of gh-ost, with rows that change meanwhile
sub gh_ost
{
	my ($table, $alter, $columns) = @_;
	my $n = ++$serial;
	$source->sql("create table shop._${table}_ghc (id bigint auto_increment primary key, value varchar(100))", "create table shop._${table}_gho like shop.$table", "alter table shop._${table}_gho $alter",
		"insert into shop._${table}_gho ($columns) select $columns from shop.$table",
		"update shop.$table set v = v + 1 where id = 1", "replace into shop._${table}_gho ($columns) select $columns from shop.$table where id = 1",
		"rename table shop.$table to shop._${table}_del, shop._${table}_gho to shop.$table", "drop table shop._${table}_ghc", "drop table shop._${table}_del");
	return;
}
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int, w varchar(10))", "insert into shop.$_ values (1, 1, 'a'), (2, 2, 'b')") } qw(t both altered wide));
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql('create view on_t as select id, v from shop.t; create role reader; grant select on shop.t to reader');

# ---- the shape changes with the cut-over
gh_ost('t', 'add column added int not null default 7, add key (v)', 'id, v, w');
$source->sql("insert into shop.t values (10, 10, 'x', 8)", "update shop.t set w = 'y' where id = 2");
settle();
$pipeline->is_same('D6: a column that the tool added', 't');
gh_ost('t', 'modify w varchar(40), add column d datetime(3), drop column added', 'id, v, w');
$source->sql("insert into shop.t (id, v, w) values (20, 20, 'a longer text than ten')");
settle();
$pipeline->is_same('D6: another became wider, one was added, one was dropped', 't');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"online_schema_change": "follow"}')});
settle();
my $copies = () = $postgres->log_text =~ /is copied anew/g;
gh_ost('t', 'add column followed int not null default 9', 'id, v, w, d');
$source->sql("insert into shop.t (id, v, w) values (30, 30, 'y')");
settle();
$pipeline->is_same('D6: follow: a column that the tool added, in rows of before and after', 't');
my $now = () = $postgres->log_text =~ /is copied anew/g;
is($now, $copies, 'D6: follow: nothing was copied');
is($postgres->psql(q{select has_table_privilege('reader', 'shop.t', 'select') and (select count(*) from on_t) > 0}), 't', 'D6: views and grants stay');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'D6: nothing is stopped');

# ---- pt-osc drops a column; with a session that writes all the time
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"online_schema_change": null}')});
settle();
$source->sql('create table shop._wide_new like shop.wide', 'alter table shop._wide_new drop column w, add column z bigint default 5', 'insert into shop._wide_new (id, v) select id, v from shop.wide',
	'insert into shop.wide values (3, 3, \'c\')', 'insert into shop._wide_new (id, v) values (3, 3)', 'rename table shop.wide to shop._wide_old, shop._wide_new to shop.wide', 'drop table if exists shop._wide_old', 'insert into shop.wide values (4, 4, 4)');
settle();
$pipeline->is_same('D6: pt-online-schema-change that drops a column and adds one', 'wide');

# ---- D7: RENAME TO among other clauses
$source->sql('alter table shop.both add column more int default 3, rename to shop.renamed, modify v bigint', 'insert into shop.renamed values (3, 3000000000, \'c\', 1)');
settle();
$pipeline->is_same('D7: a table that is altered and renamed in one statement', 'renamed');
is($postgres->psql(q{select string_agg(column_name, ' ' order by ordinal_position) from information_schema.columns where table_schema = 'shop' and table_name = 'renamed'}), 'id v w more', 'D7: with its new columns');
is($postgres->psql(q{select to_regclass('shop.both')}), '', 'D7: under its new name');
# a table that joined is altered right after
$source->sql('create table shop.fresh (id int primary key)', 'insert into shop.fresh values (1)', 'alter table shop.fresh add column v int default 2', 'insert into shop.fresh values (2, 3)', 'rename table shop.fresh to shop.fresher', 'alter table shop.fresher add column x int',
	'insert into shop.fresher values (3, 3, 3)', 'create table shop.gone (id int primary key)', 'drop table shop.gone', 'create table shop.gone (id int primary key, z int)', 'insert into shop.gone values (5, 5)');
settle();
$pipeline->is_same('tables that are made, altered, renamed, dropped and made again in a row', 'fresher', 'gone');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'nothing is stopped') or diag($pipeline->describe);

# ---- what the source has when the stream comes to a statement may be what later ones made of it
$source->sql('create table shop.away (id int primary key, v int)', 'insert into shop.away values (1, 1)');
settle();
$pipeline->stop;
$source->sql('create table shop.other (id int primary key, v int)', 'insert into shop.other values (7, 7)', 'rename table shop.away to shop._away_old, shop.other to shop.away', 'insert into shop.away values (8, 8)', 'rename table shop.away to shop.away2',
	'insert into shop.away2 values (9, 9)', 'create table shop.first (id int primary key)', 'insert into shop.first values (1)', 'rename table shop.first to shop.second', 'insert into shop.second values (2)', 'alter table shop.second add column v int default 4',
	'insert into shop.second values (3, 3)');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.nothing')});
$pipeline->start;
settle();
$pipeline->is_same("a table that is to be copied anew and has another name by then", 'away2');
$pipeline->is_same('a table that joined before the stream came to its making', 'second');
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ') from pg_stat_cdc_table where source_table in ('away', 'first', 'other') or state <> 'streaming'}), '', 'nothing is left of the names between') or diag($pipeline->describe);

unlike($postgres->log_text, qr/"shop\.away"[^\n]*is stopped/, 'nor was it stopped on the way');

# ---- many tables are made while others are written
my $dbh = $source->connect;
my $many = $ENV{CDC_TEST_TABLES} // 120;
for my $i (1 .. $many)
{
	$dbh->do("create table shop.many_$i (id int primary key, v int)");
	$dbh->do("insert into shop.many_$i values ($i, $i)");
	$dbh->do("update shop.altered set v = $i");
}
ok($postgres->poll(qq{select v >= $many / 2 from shop.altered where id = 1}, 't'), 'the others are followed meanwhile');
ok($postgres->poll(qq{select count(*) from pg_stat_cdc_table where source_table like 'many%' and state = 'streaming'}, $many, 120), "$many tables join") or diag($postgres->{last});
settle();
is($postgres->psql(join(' + ', 'select 0', map { "(select count(*) from shop.many_$_ where id = $_)" } 1 .. $many)), $many, 'with their rows');
is($pipeline->status('failures'), '0', 'the worker was never replaced');
$dbh->do('truncate shop.many_' . $_) for 1 .. 20;
$dbh->do('drop table ' . join(', ', map { "shop.many_$_" } 21 .. $many));
$dbh->do('insert into shop.many_1 values (0, 0)');
settle();
is($postgres->psql(q{select count(*), (select count(*) from shop.many_1), (select count(*) from shop.many_2) from pg_class where relname like 'many\_%' and relkind = 'r'}), '20|1|0', 'they are emptied and dropped');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
