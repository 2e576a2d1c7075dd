# Option transforms, "target": "soft_delete": rows that the source deletes stay with a mark, by the stream, with a filter, over changes of the
# key, TRUNCATE and DROP; alive again; cdc_verify(); new copies; unique values that others have now; what is refused.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop');

# All rows of a target by their first column: '+' alive, '-' deleted, '!' a time that does not go with it.
sub rows
{
	my ($table, $columns) = @_;
	$pipeline->wait_for_catchup;
	return $postgres->psql(qq{select coalesce(string_agg(case when cdc_deleted then '-' else '+' end || case when cdc_deleted = (cdc_deleted_at is null)
		or cdc_deleted_at not between now() - interval '1 hour' and now() + interval '1 minute' then '!' else '' end || concat_ws('|', $columns), ' ' order by id, concat_ws('|', $columns)), '') from shop.$table});
}

$source->sql('create database shop', 'create table shop.item (id int primary key, name varchar(20) not null, code int, unique key code (code))', q{insert into shop.item values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)},
	'create table shop.part (id int, sub int, v varchar(10), status varchar(10) not null, primary key (id, sub))', q{insert into shop.part values (1, 1, 'x', 'open'), (1, 2, 'y', 'draft'), (2, 1, 'z', 'open')},
	'create table shop.other (id int primary key, v int)', 'insert into shop.other values (1, 1), (2, 2)', 'create table shop.made (id int primary key, v int)', 'insert into shop.made values (1, 1), (2, 2)');
# a target that is there: partitioned, and one partition has its columns in another order
$source->sql('create table shop.cut (id int primary key, v varchar(20), n int)', q{insert into shop.cut values (1, 'a', 1), (11, 'b', 2), (12, 'c', 3)});
$postgres->psql(q{create schema shop; create table shop.cut (id int primary key, v varchar(20), n int, cdc_deleted boolean not null, cdc_deleted_at timestamptz, own int default 7) partition by range (id);
	create table shop.cut_low partition of shop.cut for values from (0) to (10); create table shop.cut_high (own int default 8, cdc_deleted_at timestamptz, n int, id int not null, cdc_deleted boolean not null, v varchar(20));
	alter table shop.cut attach partition shop.cut_high for values from (10) to (100)});
$pipeline->{options} = q({"transforms": [{"tables": "shop.part", "projection": "*, upper(v) AS v", "filter": "status <> 'draft'", "target": "soft_delete"},
	{"tables": "shop.other", "target": "soft_delete", "deleted_column": "Gone", "deleted_at_column": "gone_at"}, {"tables": "shop.*", "target": "soft_delete"}]});
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;

is(rows('item', 'id, name'), '+1|a +2|b +3|c', 'copied rows are alive');
is($postgres->psql(q{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attnum) from pg_attribute where attrelid = 'shop.item'::regclass and attnum > 0}),
	'id integer!, name character varying(20)!, code integer, cdc_deleted boolean!, cdc_deleted_at timestamp with time zone', 'the columns of such a target');

# ---- the stream
$source->sql(q{update shop.item set name = 'A' where id = 1}, 'delete from shop.item where id = 2', q{insert into shop.item values (4, 'd', null)});
is(rows('item', 'id, name, code'), '+1|A|1 -2|b|2 +3|c|3 +4|d', 'a deleted row stays with a mark, and with its values');
is($postgres->psql('select collapsed, conflicts from pg_stat_cdc_table where source_table = ' . CdcBridge::Pipeline::quote('item')), 'f|0', 'its changes are not collapsed, and no conflict');
$source->sql(q{insert into shop.item values (2, 'back', 2)});
is(rows('item', 'id, name'), '+1|A +2|back +3|c +4|d', 'a row that comes again is alive');
$source->sql('start transaction', 'delete from shop.item where id = 2', q{insert into shop.item values (5, 'e', 2)}, 'update shop.item set id = 30 where id = 3', 'update shop.item set id = 3, code = 9 where id = 30', 'delete from shop.item where id = 4', q{insert into shop.item values (4, 'D', 7)},
	q{insert into shop.item values (6, 'f', 6)}, 'delete from shop.item where id = 6', 'commit');
is(rows('item', 'id, name, code'), '+1|A|1 -2|back|2 +3|c|9 +4|D|7 +5|e|2 -6|f|6 -30|c|3', 'within one transaction: old keys are marked, and a unique value has another row now');
is($pipeline->table_status('item', 'conflicts'), '0', 'none of this is a conflict');
is($postgres->psql(q{select count(*) from pg_index where indrelid = 'shop.item'::regclass and indisunique and not indisprimary}), '0', 'no secondary index is unique');

# ---- under a filter
is(rows('part', 'id, sub, v'), '+1|1|X +2|1|Z', 'a filter: the copy');
$source->sql(q{update shop.part set status = 'draft' where id = 2}, q{update shop.part set status = 'open' where sub = 2}, 'delete from shop.part where id = 1 and sub = 1');
is(rows('part', 'id, sub, v'), '-1|1|X +1|2|Y -2|1|Z', 'a row that leaves the filter is marked, one that comes in is alive');
$source->sql(q{update shop.part set status = 'open', v = 'zz' where id = 2});
is(rows('part', 'id, sub, v'), '-1|1|X +1|2|Y +2|1|ZZ', 'one that comes back is alive');

# ---- columns of other names, somebody else's changes
$source->sql('delete from shop.other where id = 1');
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(id || ' ' || "Gone" || ' ' || (gone_at is not null), ', ' order by id) from shop.other}), '1 true true, 2 false false', 'other names for the columns');
$postgres->psql('delete from shop.other where id = 2');
$source->sql('delete from shop.other where id = 2');
$pipeline->wait_for_catchup;
is($pipeline->table_status('other', 'conflicts'), '1', 'a deleted row that was not there is a conflict');

# ---- images in part, and the partitioned target
$source->sql('set session binlog_row_image = minimal', q{update shop.cut set v = 'B' where id = 11}, 'delete from shop.cut where id = 1', 'update shop.cut set id = 13 where id = 12', 'delete from shop.cut where id = 11', q{insert into shop.cut values (11, 'again', 5)}, 'update shop.cut set n = 6 where id = 11');
is(rows('cut', 'id, v, n, own'), '-1|a|1|7 +11|again|6|8 -12|c|3|8 +13|c|3|8', 'a partitioned target, and images that have only the key');
is($pipeline->table_status('cut', 'conflicts'), '0', 'without a conflict');

# ---- cdc_verify(): a marked row counts as none
$pipeline->is_verified('marked rows are none');
is($pipeline->verify_mode('count', 'item'), '', 'nor are they counted');
$postgres->psql('update shop.item set cdc_deleted = true, cdc_deleted_at = now() where id = 1; update shop.item set cdc_deleted = false, cdc_deleted_at = null where id = 30');
like($pipeline->verify('item'), qr/^item: 1 missing, 1 extra, 0 different.*^item: extra \{30\}.*^item: missing \{1\}/ms, 'a mark too many, and one too few');
like($pipeline->verify_mode('count', 'part'), qr/cannot be compared by their number/, 'under a filter nothing is counted');

# ---- a new copy keeps marked rows, and marks what the source does not have
$postgres->psql(q{insert into shop.item (id, name, cdc_deleted) values (77, 'nobody', false)});
my $file = $postgres->psql(q{select pg_relation_filenode('shop.item')});
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.item')});
ok($postgres->poll("select pg_relation_filenode('shop.item') <> $file", 't'), 'a new copy is in place');
is(rows('item', 'id, name'), '+1|A -2|back +3|c +4|D +5|e -6|f -30|c -77|nobody', 'a new copy');
is($postgres->psql('select count(*) from shop.item where cdc_deleted and cdc_deleted_at < (select cdc_deleted_at from shop.item where id = 77)'), '2', 'marks keep their time');

# ---- changes of the table's shape, TRUNCATE, DROP
$source->sql('alter table shop.item add column extra int default 5, alter column name set default ' . CdcBridge::Pipeline::quote('n'), 'update shop.item set extra = 6 where id = 1', 'delete from shop.item where id = 3');
is(rows('item', 'id, extra'), '+1|6 -2|5 -3|5 +4|5 +5|5 -6|5 -30|5 -77|5', 'a new column');
$source->sql('truncate table shop.item', q{insert into shop.item values (5, 'after', 5, 5)});
is(rows('item', 'id, name'), '-1|A -2|back -3|c -4|D +5|after -6|f -30|c -77|nobody', 'TRUNCATE marks all rows');
$source->sql('drop table shop.made', 'insert into shop.other values (3, 3)');
is(rows('made', 'id, v'), '-1|1 -2|2', 'DROP TABLE marks all rows, and leaves the table');
is($postgres->psql(q{select result, commands[1] ~ '^UPDATE ONLY shop.made SET cdc_deleted = true' from cdc_bridge.schema_history where source_table = 'made'}), 'applied|t', 'the history has the statement');

# ---- over a restart
$pipeline->stop;
$source->sql('delete from shop.part where sub = 2', q{insert into shop.part values (9, 9, 'n', 'open')}, 'delete from shop.part where id = 9');
$pipeline->start->wait_for_state('streaming');
is(rows('part', 'id, sub, v'), '-1|1|X -1|2|Y +2|1|ZZ -9|9|N', 'after a restart');

# ---- what is refused
$source->sql('create database bad', 'create table bad.keyless (v int)', 'create table bad.named (id int primary key, cdc_deleted int)', 'create table bad.s_1 (id int primary key)');
sub refused
{
	my ($table, $rule, $routes) = @_;
	$postgres->psql("select cdc_create_pipeline('bad', source => 'shop', tables => '{bad.$table}', target_schema => 'bad', options => " . CdcBridge::Pipeline::quote(qq({"transforms": [$rule]$routes})) . ')');
	my $found = $postgres->psql(q{select string_agg(concat_ws(' ', detail, hint), e'\n') from cdc_check_pipeline('bad') where status = 'error'});
	$postgres->psql(q{select cdc_drop_pipeline('bad')});
	return $found;
}
like(refused('keyless', '{"tables": "bad.*", "target": "soft_delete"}', ''), qr/has no key, so nothing says which row/, 'a table without a key');
like(refused('named', '{"tables": "bad.*", "target": "soft_delete"}', ''), qr/Its rows have a column "cdc_deleted".*"deleted_column"/, 'a column that is called so');

$postgres->psql(q{select cdc_create_pipeline('shared', source => 'shop', tables => '{bad.s_1}', options => '{"routes": [{"source": "bad.s_*", "schema": "bad", "table": "s", "merge": true}],
	"transforms": [{"tables": "bad.*", "projection": "cdc_table AS shard, *", "key": ["shard", "id"], "target": "soft_delete"}]}'); select cdc_start_pipeline('shared')});
ok($postgres->poll(q{select count(*) > 0 from pg_stat_cdc_pipeline p left join pg_stat_cdc_table t using (pipeline) where pipeline = 'shared' and concat(p.last_error, t.last_error) ~ 'of kind "soft_delete" cannot be shared'}, 't'), 'a target that several tables share')
  or diag($postgres->psql(q{select p.state, p.last_error, t.state, t.last_error from pg_stat_cdc_pipeline p left join pg_stat_cdc_table t using (pipeline) where pipeline = 'shared'}));

done_testing();
