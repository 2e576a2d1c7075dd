# Option transforms, "target": "append": every change is a row, numbered within its source transaction; a copy that meets the stream at one
# place, while writes go on; keys that change, filters, ALTER, TRUNCATE and DROP; kills; what is refused.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop');

# Rows in the order in which they came about.
sub rows
{
	my ($table, $columns, $where) = @_;
	$pipeline->wait_for_catchup;
	return $postgres->psql(qq{select coalesce(string_agg(cdc_operation || ' ' || concat_ws('|', $columns), ', ' order by split_part(split_part(cdc_position, ':', 1), '.', 2)::int nulls first, split_part(cdc_position, ':', 2)::bigint nulls first,
		cdc_sequence, cdc_operation, id), '') from shop.$table where $where});
}

$source->sql('create database shop', sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user),
	'create table shop.item (id int primary key, name varchar(20) not null, code int, unique key code (code))', q{insert into shop.item values (1, 'a', 1), (2, 'b', 2)},
	'create table shop.part (id int, v varchar(10), status varchar(10) not null, primary key (id))', q{insert into shop.part values (1, 'x', 'open'), (2, 'y', 'draft')},
	'create table shop.plain (id int primary key, v int)', 'insert into shop.plain values (1, 1)', 'create table shop.counter (id int primary key, n int not null)', 'insert into shop.counter values (1, 0), (2, 0)');

# writes go on while the copy is made: each row of the log is one step of the counter
my $writer = fork();
if ($writer == 0)
{
	my $session = $source->connect;
	while (1) { $session->do('update shop.counter set n = n + 1 where id = 1'); }
}
$pipeline->{options} = q({"transforms": [{"tables": "shop.part", "projection": "id, upper(v) AS v", "filter": "status <> 'draft'", "target": "append"}, {"tables": ["shop.*", "!shop.plain"], "target": "append"}]});
$pipeline->setup;
poll_until(sub { ($source->query_rows('select n from shop.counter where id = 1'))[0][0] > 20 }, 30) or die 'nobody writes';
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
ok($postgres->poll(q{select count(*) > 20 from shop.counter where id = 1}, 't'), 'changes come while somebody writes');
kill('KILL', $writer);
waitpid($writer, 0);
my $steps = ($source->query_rows('select n from shop.counter where id = 1 for update'))[0][0];

is(rows('item', 'id, name, code, cdc_sequence', 'true'), 'copy 1|a|1, copy 2|b|2', 'copied rows');
is($postgres->psql(q{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attnum) from pg_attribute where attrelid = 'shop.item'::regclass and attnum > 0}),
	'id integer!, name character varying(20)!, code integer, cdc_operation text!, cdc_commit_time timestamp with time zone, cdc_position text, cdc_sequence bigint', 'the columns of such a target');
is($postgres->psql(q{select count(*) from pg_index where indrelid = 'shop.item'::regclass and indisunique}), '0', 'no index is unique');
$pipeline->wait_for_catchup;
is($postgres->psql(qq{select min(n) filter (where cdc_operation = 'copy') = min(n) and max(n) = $steps and min(n) > 0 and count(*) = max(n) - min(n) + 1 and count(distinct n) = count(*) from shop.counter where id = 1}), 't', 'copy and stream meet at one place: no step is missing, none is twice')
  or diag($postgres->psql('select min(n), max(n), count(*), count(distinct n) from shop.counter where id = 1'));

# ---- the stream
$source->sql(q{insert into shop.item values (3, 'c', 3)}, q{update shop.item set name = 'A' where id = 1}, 'delete from shop.item where id = 2');
is(rows('item', 'id, name, code, cdc_sequence', q{cdc_operation <> 'copy'}), 'insert 3|c|3|1, update 1|A|1|1, delete 2|b|2|1', 'insert, update, delete');
is($postgres->psql(q{select count(*) from shop.item where cdc_operation <> 'copy' and cdc_commit_time between now() - interval '1 hour' and now() + interval '1 minute' and cdc_position ~ ':[0-9]+$'}), '3', 'with time and place');
$source->sql('start transaction', q{insert into shop.item values (9, 'x', 9)}, q{update shop.item set name = 'y' where id = 9}, 'update shop.item set id = 10 where id = 9', 'delete from shop.item where id = 10', q{insert into shop.item values (10, 'z', 9)}, 'commit');
is(rows('item', 'id, name, cdc_sequence', 'id in (9, 10)'), 'insert 9|x|1, update 9|y|2, delete 9|y|3, insert 10|y|3, delete 10|y|4, insert 10|z|5', 'one transaction: nothing is collapsed, a key that changes is two rows');
is($postgres->psql(q{select collapsed, conflicts, state from pg_stat_cdc_table where source_table = 'item'}), 'f|0|streaming', 'not collapsed, no conflict');

# ---- a filter
$source->sql(q{update shop.part set status = 'draft' where id = 1}, q{update shop.part set status = 'open' where id = 2}, q{update shop.part set v = 'yy' where id = 2}, q{update shop.part set v = 'xx' where id = 1}, 'update shop.part set id = 5 where id = 2', 'delete from shop.part');
is(rows('part', 'id, v', 'true'), 'copy 1|X, delete 1|X, insert 2|Y, update 2|YY, delete 2|YY, insert 5|YY, delete 5|YY', 'rows that leave the filter and come in');

# ---- restarts and kills bring nothing twice
for my $round (1 .. 3)
{
	$source->sql(map { "update shop.counter set n = n + 1 where id = 2" } 1 .. 40);
	$postgres->psql(q{select pg_terminate_backend(pid) from pg_stat_activity where backend_type like 'cdc_bridge%' and application_name like '%shop_in%'});
}
$pipeline->wait_for_state('streaming');
$pipeline->wait_for_catchup;
is($postgres->psql('select count(*), count(distinct n), max(n) from shop.counter where id = 2'), '121|121|120', 'each change once, over kills');

# ---- changes of the table's shape, TRUNCATE, DROP
$source->sql('alter table shop.item add column extra int default 5', q{insert into shop.item values (20, 't', 20, 6)}, 'alter table shop.item drop primary key, add primary key (id, name)', q{update shop.item set name = 'u' where id = 20});
is(rows('item', 'id, name, extra', 'id in (3, 20)'), 'insert 3|c|5, insert 20|t|6, delete 20|t|6, insert 20|u|6', 'a new column, and another key');
is($pipeline->table_status('item', 'state'), 'streaming', 'it goes on') or diag($pipeline->describe);
my $count = $postgres->psql('select count(*) from shop.item');
$source->sql('truncate table shop.item', q{insert into shop.item values (30, 'v', 30, 7)}, 'drop table shop.counter', 'insert into shop.plain values (2, 2)');
is(rows('item', 'id, extra', 'id >= 30'), 'insert 30|7', 'after TRUNCATE');
is($postgres->psql('select count(*) from shop.item'), $count + 1, 'TRUNCATE leaves what was');
is($postgres->psql('select count(*) from shop.counter where id = 2'), '121', 'and so does DROP');
$pipeline->is_verified('a mirror beside them', 'plain');
like($pipeline->verify('item'), qr/failed: table "item" cannot be compared/, 'there is nothing to compare a log with');
like($pipeline->verify_mode('count', 'item'), qr/failed: table "item" cannot be compared/, 'nor to count');

# ---- a change that does not fit is kept aside, and has its place in the order when it is replayed
$pipeline->stop;
$postgres->psql(q{alter table shop.item add constraint small check (code < 1000 or cdc_operation = 'delete'); select cdc_alter_pipeline('shop_in', options => '{"on_error": "dead_letter"}')});
$pipeline->start->wait_for_state('streaming');
$source->sql('start transaction', q{insert into shop.item values (60, 'w', 60, 1)}, q{insert into shop.item values (61, 'big', 1000, 1)}, q{insert into shop.item values (62, 'w', 62, 1)}, 'update shop.item set code = 2000 where id = 60', 'commit');
is(rows('item', 'id, cdc_sequence', 'id >= 60'), 'insert 60|1, insert 62|3', 'a change that does not fit becomes a dead letter') or diag($pipeline->describe);
$postgres->psql('alter table shop.item drop constraint small');
my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $request", 't');
is(rows('item', 'id, cdc_sequence', 'id >= 60'), 'insert 60|1, insert 61|2, insert 62|3, update 60|4', 'and comes into its place');

# ---- a target that is there
$postgres->psql('create schema own; create table own.plain (id int, v int, cdc_operation text, cdc_commit_time timestamptz, cdc_position text, cdc_sequence int)');
$postgres->psql(q{select cdc_create_pipeline('own', source => 'shop', tables => '{shop.plain}', target_schema => 'own', options => '{"transforms": [{"tables": "shop.*", "target": "append"}]}'); select cdc_start_pipeline('own')});
$pipeline->{name} = 'own';
$pipeline->wait_for_tables;
like($pipeline->table_status('plain', 'last_error_detail'), qr/Column "cdc_sequence" is of type integer in the target, and its kind gives bigint/, 'the columns have to be of their types') or diag($pipeline->describe);

# ---- another kind asks for another copy
$pipeline->{name} = 'shop_in';
$pipeline->stop;
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"transforms": [{"tables": "shop.plain", "target": "append"}], "on_error": null}')});
$pipeline->start->wait_for_state('streaming');
$source->sql(q{delete from shop.item where id = 60}, 'insert into shop.plain values (50, 50)');
$pipeline->wait_for_catchup;
like($pipeline->table_status('item', 'last_error'), qr/was copied for a target of kind "append"/, 'a history does not become a mirror by itself') or diag($pipeline->describe);
like($pipeline->table_status('plain', 'last_error_detail'), qr/was copied for a target of another kind/, 'nor a mirror a history') or diag($pipeline->describe);
$postgres->psql(q{drop table shop.item, shop.plain; select cdc_resync_table('shop_in', 'shop.item'); select cdc_resync_table('shop_in', 'shop.plain')});
ok($postgres->poll(q{select count(*) = 2 from pg_stat_cdc_table where pipeline = 'shop_in' and source_table in ('item', 'plain') and state = 'streaming'}, 't'), 'without their targets they are copied as they are to be') or diag($pipeline->describe);
$pipeline->is_verified('a mirror again', 'item');
is(rows('plain', 'id, v', 'true'), 'copy 1|1, copy 2|2, copy 50|50', 'and a history');

done_testing();
