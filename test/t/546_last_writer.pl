# Option transforms, "target": "last_writer": of two rows under one key the higher version stays, by the stream, for deletes and keys that change,
# and by the copy into a target that has rows; what is refused.
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

sub rows
{
	my ($table, $columns) = @_;
	$pipeline->wait_for_catchup;
	return $postgres->psql(qq{select coalesce(string_agg(concat_ws('|', $columns), ' ' order by id), '') from shop.$table});
}
sub conflicts { return $pipeline->table_status($_[0], 'conflicts'); }

$source->sql('create database shop', 'create table shop.item (id int primary key, v varchar(20), ver int)', q{insert into shop.item values (1, 'a', 5), (2, 'b', 5), (3, 'c', 5), (4, 'd', null), (5, 'e', 5)},
	'create table shop.part (id int primary key, v varchar(20), changed timestamp(6) not null, status varchar(10) not null)', q{insert into shop.part values (1, 'x', '2026-01-01 10:00:00', 'open'), (2, 'y', '2026-01-01 10:00:00', 'open')},
	'create table shop.there (id int primary key, v varchar(20), ver int)', q{insert into shop.there values (1, 's1', 5), (2, 's2', 5), (3, 's3', 5), (4, 's4', 5)});
$postgres->psql(q{create schema shop; create table shop.there (id int primary key, v varchar(20), ver int); insert into shop.there values (1, 'here', 4), (2, 'here', 6), (3, 'here', null), (9, 'here', 1)});
$pipeline->{options} = q({"on_existing": "append", "transforms": [{"tables": "shop.part", "projection": "*, extract(epoch from changed) AS at", "filter": "status <> 'draft'", "target": "last_writer", "version_column": "at"},
	{"tables": "shop.*", "target": "last_writer", "version_column": "ver"}]});
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;

is(rows('there', 'id, v, ver'), '1|s1|5 2|here|6 3|s3|5 4|s4|5 9|here|1', 'the copy: a row that is here with a higher version stays');
is(rows('item', 'id, v'), '1|a 2|b 3|c 4|d 5|e', 'copied rows');

# ---- updates
$postgres->psql(q{update shop.item set v = 'here', ver = 8 where id in (1, 2, 4); update shop.item set v = 'here', ver = null where id = 3});
$source->sql(q{update shop.item set v = 'A', ver = 7 where id = 1}, q{update shop.item set v = 'B', ver = 8 where id = 2}, q{update shop.item set v = 'C' where id = 3}, q{update shop.item set v = 'D' where id = 4}, q{update shop.item set v = 'E', ver = 6 where id = 5});
is(rows('item', 'id, v, ver'), '1|here|8 2|B|8 3|C|5 4|here|8 5|E|6', 'an older update is passed over, an equal one counts, NULL is the oldest');
is(conflicts('item'), '2', 'what is passed over is counted');
$source->sql(q{update shop.item set v = 'A2', ver = 9 where id = 1});
is(rows('item', 'id, v, ver'), '1|A2|9 2|B|8 3|C|5 4|here|8 5|E|6', 'a newer one counts again');
is($postgres->psql(q{select collapsed from pg_stat_cdc_table where source_table = 'item'}), 'f', 'changes are not collapsed');
$source->sql('start transaction', q{update shop.item set v = 'x', ver = 20 where id = 2}, q{update shop.item set v = 'y', ver = 10 where id = 2}, 'commit');
is(rows('item', 'id, v, ver'), '1|A2|9 2|x|20 3|C|5 4|here|8 5|E|6', 'a version that goes down at the source is passed over, also within one transaction');

# ---- deletes, keys that change, inserts
$postgres->psql(q{update shop.item set v = 'here', ver = 30 where id in (3, 5); insert into shop.item values (40, 'here', 30), (41, 'here', 1)});
$source->sql('delete from shop.item where id in (1, 3)', 'update shop.item set id = 50 where id = 5', q{insert into shop.item values (40, 's', 29), (41, 's', 2)});
is(rows('item', 'id, v, ver'), '2|x|20 3|here|30 4|here|8 5|here|30 40|here|30 41|s|2 50|E|6', 'a delete, an old key and an insert that are older are passed over');
$postgres->psql('delete from shop.item where id = 50');
$source->sql(q{update shop.item set v = 'again', ver = 1 where id = 50});
is(rows('item', 'id, v, ver'), '2|x|20 3|here|30 4|here|8 5|here|30 40|here|30 41|s|2 50|again|1', 'a row that was deleted here has no version');

# ---- a computed version, under a filter
$postgres->psql(q{update shop.part set v = 'here', at = at + 60 where id = 1});
$source->sql(q{update shop.part set status = 'draft', changed = '2026-01-01 10:00:30' where id in (1, 2)});
is(rows('part', 'id, v'), '1|here', 'a row that leaves the filter stays when it is newer here');
$source->sql(q{update shop.part set v = 'back', status = 'open', changed = '2026-01-01 10:02:00'});
is(rows('part', 'id, v'), '1|back 2|back', 'and newer ones come back');

# ---- what is refused
$source->sql('create database bad', 'create table bad.keyless (v int)', 'create table bad.t (id int primary key, g point)');
sub refused
{
	my ($table, $column) = @_;
	$postgres->psql("select cdc_create_pipeline('bad', source => 'shop', tables => '{bad.$table}', target_schema => 'bad', options => " . CdcBridge::Pipeline::quote(qq({"transforms": [{"tables": "bad.*", "projection": "*, point(1, 2) AS p", "target": "last_writer", "version_column": "$column"}]})) . ')');
	my $found = $postgres->psql(q{select string_agg(concat_ws(' ', detail, hint), e'\n') from cdc_check_pipeline('bad') where status = 'error'});
	$postgres->psql(q{select cdc_drop_pipeline('bad')});
	return $found;
}
like(refused('keyless', 'v'), qr/has no key, so nothing says which two rows/, 'a table without a key');
like(refused('t', 'nothing'), qr/the projection has no column of that name/, 'no such column');
like(refused('t', 'p'), qr/of type point, which has no order/, 'a type without an order');

done_testing();
