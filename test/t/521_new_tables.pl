# Tables that are made, emptied and dropped at the source while the pipeline runs: they join, are truncated and leave by themselves.
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
sub history { my ($where) = @_; return $postgres->psql("select source_table, array_to_string(kinds, ','), result, coalesce(array_to_string(commands, '; '), '') from cdc_schema_history where $where order by change_no"); }
sub tables { return $postgres->psql(q{select string_agg(source_schema || '.' || source_table, ' ' order by source_schema, source_table) from pg_stat_cdc_table where state = 'streaming'}); }
sub settle { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; return $pipeline; }

$source->sql('create database shop', 'create database other', 'create table shop.base (id int primary key, v int)', 'insert into shop.base values (1, 1), (2, 2)',
	'create table other.model (id int primary key, name varchar(20) not null default \'x\')', 'insert into other.model values (5, \'five\')');
$pipeline->{tables} = '{shop.*,!shop.private*}';
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

# ---- D8, D10, S14, S15: CREATE TABLE in every form
$source->sql('create table shop.plain (id int primary key, v int)', 'insert into shop.plain values (1, 1)', 'update shop.plain set v = 2',
	'create table shop.like_it like other.model', 'insert into shop.like_it values (1, \'one\')',
	'create table shop.selected (id int primary key) as select id from shop.base', 'insert into shop.selected values (9)',
	'create table if not exists shop.perhaps (id int primary key)', 'insert into shop.perhaps values (3)',
	'create table shop.private_notes (id int primary key)', 'create table other.not_ours (id int primary key)', 'create database shop1', 'create table shop1.alike (id int primary key)',
	'create view shop.looks as select * from shop.base', 'create temporary table shop.fleeting (id int primary key)');
$source->sql('create sequence shop.counter', 'create or replace table shop.replaced (id int primary key)', 'insert into shop.replaced values (4)') if $source->is_mariadb;
settle();
is(tables(), join(' ', map { "shop.$_" } sort('base', 'plain', 'like_it', 'selected', 'perhaps', $source->is_mariadb ? 'replaced' : ())),
	'S14, S15: new tables that the patterns mean join by themselves, and nothing else does') or diag($pipeline->describe);
$pipeline->is_same("D8: $_ has the source's rows", $_) for qw(base plain like_it selected perhaps);
is($postgres->psql(q{select count(*) from shop.selected}), '3', 'D8: rows of CREATE TABLE ... AS SELECT are there');
is(history(q{source_table = 'plain'}), 'plain|create_table|applied|', 'it is noted in the history');
$source->sql('insert into shop.plain values (2, 2)', 'insert into shop.like_it (id) values (2)');
# D10: the table is there, with other columns
$source->sql('create table if not exists shop.plain (a int, b int, c int, primary key (a))', 'insert into shop.plain values (3, 3)');
settle();
$pipeline->is_same('D10: CREATE TABLE IF NOT EXISTS of a table that is there changes nothing', 'plain');
is(history(q{source_table = 'plain' and change_no > 1 and statement like '%if not exists%'}), '', 'D10: nor is it noted');

# ---- D20: TRUNCATE
$source->sql('truncate table shop.plain', 'insert into shop.plain values (7, 7)', 'use shop', 'truncate like_it', 'truncate other.model');
settle();
is($postgres->psql('select id from shop.plain'), '7', 'D20: TRUNCATE, and rows after it');
is($postgres->psql('select count(*) from shop.like_it'), '0', 'D20: by the session\'s default schema');
is(history(q{kinds = '{truncate_table}'}), "plain|truncate_table|applied|TRUNCATE ONLY shop.plain\nlike_it|truncate_table|applied|TRUNCATE ONLY shop.like_it", 'D20: both are noted, and no other table');
is($postgres->psql(q{select statement from cdc_schema_history where source_table = 'plain' and kinds = '{truncate_table}'}), 'truncate table shop.plain', 'with the statement');
# somebody reads the target: the stream waits, and says for whom
my $reader = $postgres->hold('select count(*) from shop.plain');
$source->sql('truncate shop.plain', 'insert into shop.base values (3, 3)');
my $pid = $postgres->psql(q{select pid from pg_stat_activity where state = 'idle in transaction'});
ok($postgres->poll(qq{select last_error || ' ' || last_error_detail from pg_stat_cdc_table where source_table = 'plain'},
	qq{target of source table "shop.plain" waits to be altered Sessions that use it: $pid. The stream of the whole pipeline waits for them.}, 60), 'the table\'s row says who is in the way')
  or diag($postgres->{last});
is($postgres->psql(q{select count(*) from shop.base where id = 3}), '0', 'the stream waits for a session that reads the target');
$postgres->release($reader);
settle();
is($postgres->psql('select count(*) from shop.plain'), '0', 'and goes on when it is done');
is($pipeline->table_status('plain', 'last_error'), '', 'the notice goes');

# ---- a foreign key of the target is in the way
$source->sql('create table shop.parent (id int primary key)', 'insert into shop.parent values (1)', 'create table shop.apart (id int primary key)', 'insert into shop.apart values (1)');
settle();
$postgres->psql('create table refers (id int references shop.parent)');
$source->sql('truncate shop.parent', 'insert into shop.apart values (2)');
$pipeline->wait_for_catchup;
$pipeline->wait_for_table_state('parent', 'stopped');
like($pipeline->table_status('parent', 'last_error'), qr/cannot truncate a table referenced in a foreign key constraint/, 'what cannot be carried out stops its table');
is(history(q{source_table = 'parent' and kinds = '{truncate_table}'}), 'parent|truncate_table|stopped|', 'and is noted so');
is($postgres->psql('select count(*) from shop.apart'), '2', 'the others go on');
$postgres->psql('drop table refers');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.parent')});
settle();
$pipeline->is_same('it is mended by a new copy', 'parent');

# ---- DROP: what the pipeline made goes, what it found stays
$postgres->psql(q{create table shop.found (id int primary key)});
$source->sql('create table shop.found (id int primary key)', 'insert into shop.found values (1)', 'create table shop.seen (id int primary key)', 'insert into shop.seen values (1)');
settle();
$postgres->psql('create view on_seen as select * from shop.seen');
$source->sql('drop table shop.plain, shop.like_it, other.not_ours', 'drop table shop.found', 'drop table if exists shop.nothing', 'drop table shop.seen', 'insert into shop.base values (4, 4)');
$pipeline->wait_for_catchup;
$pipeline->wait_for_table_state('seen', 'stopped');
is($postgres->psql(q{select to_regclass('shop.plain'), to_regclass('shop.like_it'), to_regclass('shop.found')}), '||shop.found', 'DROP TABLE drops what the pipeline made, and no more');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table in ('plain', 'like_it', 'found')}), '0', 'the tables leave');
like($pipeline->table_status('seen', 'last_error_detail'), qr/view \S*on_seen depends on table shop\.seen/, 'one that something depends on stops');
is(history(q{kinds = '{drop_table}' and source_table <> 'replaced'}), "plain|drop_table|applied|DROP TABLE shop.plain\nlike_it|drop_table|applied|DROP TABLE shop.like_it\nfound|drop_table|applied|\nseen|drop_table|stopped|", 'each is noted');
# a successor of the same name
$source->sql('create table shop.plain (id int primary key, other text)', q{insert into shop.plain values (1, 'new life')}, 'create table shop.found (id int primary key)', 'insert into shop.found values (2)');
$pipeline->wait_for_catchup->wait_for_table_state('plain', 'streaming');
$pipeline->wait_for_table_state('found', 'stopped');
is($postgres->psql('select id, other from shop.plain'), '1|new life', 'a table of the same name joins with its own shape');
is($pipeline->table_status('found', 'last_error'), 'target table "shop.found" exists and has rows', 'rows of a former life do not mix with those of another');
$postgres->psql(q{select cdc_remove_table('shop_in', 'shop.found'); select cdc_remove_table('shop_in', 'shop.seen')});
$source->sql('drop table shop.found', 'create table shop.found (id int primary key)');
settle();
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table = 'found'}), '0', 'a table that was removed stays out');

# ---- CREATE OR REPLACE drops and makes
if ($source->is_mariadb)
{
	$source->sql('create or replace table shop.base (id int primary key, v int)', 'insert into shop.base values (50, 50)');
	settle();
	is($postgres->psql('select id, v from shop.base'), '50|50', 'D10: CREATE OR REPLACE TABLE: only the new rows are there');
}

# ---- DROP DATABASE
$postgres->psql(q{select cdc_add_table('shop_in', 'shop1.*')});
settle();
$source->sql('drop database shop1', 'insert into shop.perhaps values (77)');
settle();
is($postgres->psql(q{select to_regclass('shop1.alike'), (select count(*) from pg_stat_cdc_table where source_schema = 'shop1')}), '|0', 'DROP DATABASE drops its tables');

# ---- what the options leave out
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes_exclude": ["create_table", "truncate_table"]}')});
settle();
$source->sql('create table shop.unwanted (id int primary key)', 'truncate shop.perhaps', 'insert into shop.perhaps values (1000)');
settle();
is($postgres->psql(q{select count(*) > 1 from shop.perhaps}), 't', 'an excluded TRUNCATE leaves the rows');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table = 'unwanted'}), '0', 'a table of an excluded CREATE does not join');
like($postgres->log_text, qr/source table "shop\.unwanted" fits the patterns of pipeline "shop_in" and is not mirrored/, 'the log tells');
is(history(q{result = 'ignored'}), "unwanted|create_table|ignored|\nperhaps|truncate_table|ignored|", 'both are noted');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes_exclude": null, "schema_changes": "lenient"}')});
settle();
$source->sql('truncate shop.perhaps', 'drop table shop.plain', 'create table shop.late (id int primary key)', 'insert into shop.late values (1)');
settle();
is($postgres->psql(q{select (select count(*) > 1 from shop.perhaps), (select count(*) from shop.plain), (select count(*) from shop.late)}), 't|1|1', 'lenient: TRUNCATE and DROP do nothing to the target, new tables join');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table = 'plain'}), '0', 'lenient: a dropped table leaves');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes": "exception"}')});
settle();
$source->sql('truncate shop.late', 'create table shop.never (id int primary key)');
$pipeline->wait_for_table_state('late', 'stopped');
like($pipeline->table_status('late', 'last_error'), qr/source table "shop\.late" was changed by TRUNCATE/, 'exception: the table stops');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_table = 'never'}), '0', 'exception: no table joins by itself');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
