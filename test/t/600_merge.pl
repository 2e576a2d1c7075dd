# Merged tables: source tables of several schemas and two servers share one target, and each touches its own rows only.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my @sources = map { CdcBridge::Source->new } 1 .. 2;
my ($source, $second) = @sources;
my $postgres = CdcBridge::Postgres->new;
my $routes = '"routes": [{"source": "shop_*.*", "schema": "merged", "table": "$2", "merge": true}]';
my $transforms = '"transforms": [{"tables": "shop_*.*", "projection": "cdc_server AS server, cdc_schema AS shard, *", "key": ["server", "shard", "id"]}]';
my @pipelines = map { CdcBridge::Pipeline->new(source => $sources[$_], postgres => $postgres, name => "in_$_", server => "server_$_", schema => 'merged', tables => '{shop_*.*}',
	options => "{\"batch_max_ms\": 0, $routes, $transforms}")->setup } 0 .. 1;
my ($pipeline, $other) = @pipelines;
sub settle { $_->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup for @_ ? @_ : @pipelines; return; }
sub rows { my ($what, $table) = @_; return $postgres->psql("select coalesce(string_agg(concat_ws('/', right(server, 1), right(shard, 1), $what), ' ' order by server, shard, id), '') from merged.$table"); }
sub types { my ($table) = @_; return $postgres->psql(qq{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attname) from pg_attribute
	where attrelid = 'merged.$table'::regclass and attnum > 0 and not attisdropped}); }
sub history { my ($where) = @_; return $postgres->psql("select array_to_string(kinds, ','), result, coalesce(array_to_string(commands, '; '), '') from cdc_schema_history where $where order by change_no"); }

# ---- R2: shards that differ in the order of columns, in types, and in which columns they have
$source->sql('create database shop_1', 'create database shop_2',
	'create table shop_1.orders (id int primary key, price decimal(10,2) not null, name varchar(10), flag tinyint(1), at date, own int not null default 7, unique key (name))',
	'create table shop_2.orders (name varchar(30) not null, id bigint primary key, price decimal(20,4), flag varchar(5), at datetime, born int)',
	q{insert into shop_1.orders values (1, 1.25, 'one', 1, '2026-01-02', 70), (2, 2.50, 'two', 0, null, 71)},
	q{insert into shop_2.orders values ('one', 1, 3.1234, 'maybe', '2026-01-02 03:04:05', 80)});
$second->sql('create database shop_1', 'create table shop_1.orders (id int unsigned primary key, price int, name char(4))', q{insert into shop_1.orders values (1, 5, 'ein'), (9, 6, null)});
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is(types('orders'), 'at timestamp(0) without time zone, born integer, flag text, id bigint!, name character varying(30), own integer!, price numeric(20,4), server text!, shard text!',
	'R2: the target has room for the types of all') or diag($pipeline->describe);
is(rows('id, price, name, flag, own', 'orders'), '0/1/1/1.2500/one/1/70 0/1/2/2.5000/two/0/71 0/2/1/3.1234/one/maybe/7', 'R1: equal keys of two shards are two rows; a column that a shard lacks has its default');
# ---- a second server
$other->start->wait_for_state('streaming')->wait_for_tables;
is(rows('id, price, name', 'orders'), '0/1/1/1.2500/one 0/1/2/2.5000/two 0/2/1/3.1234/one 1/1/1/5.0000/ein 1/1/9/6.0000', 'R1: tables of another pipeline with the same keys');
is($postgres->psql(q{select count(*) from pg_index where indrelid = 'merged.orders'::regclass and indisunique}), '1', 'what is unique in one table is not unique in all');
# ---- the stream
$source->sql(q{insert into shop_1.orders (id, price, name) values (3, 3, 'three')}, 'update shop_1.orders set price = 9 where id = 1', 'delete from shop_2.orders where id = 1', q{insert into shop_2.orders (id, name) values (1, 'again')});
$second->sql('update shop_1.orders set id = 2 where id = 9', 'update shop_1.orders set price = 0 where id = 1');
settle();
is(rows('id, price', 'orders'), '0/1/1/9.0000 0/1/2/2.5000 0/1/3/3.0000 0/2/1 1/1/1/0.0000 1/1/2/6.0000', 'changes find their own rows');

# ---- R3, R4: changes of shape, in any order, and a shard that comes late
$source->sql('alter table shop_1.orders add column note varchar(5)', q{update shop_1.orders set note = 'short' where id = 1}, 'alter table shop_2.orders add column note varchar(20) not null default \'none given\'',
	q{insert into shop_2.orders (id, name, note) values (2, 'b', 'a longer one')}, 'alter table shop_1.orders drop column own', q{insert into shop_1.orders (id, price) values (4, 4)},
	'alter table shop_2.orders rename column born to birth', 'update shop_2.orders set birth = 5 where id = 2');
settle();
is(rows(q{id, coalesce(note, '-')}, 'orders'), '0/1/1/short 0/1/2/- 0/1/3/- 0/1/4/- 0/2/1/none given 0/2/2/a longer one 1/1/1/- 1/1/2/-', 'R4: a column that one shard adds, and another with a default') or diag($pipeline->describe);
is($postgres->psql(q{select own from merged.orders where id = 1 and shard = 'shop_1' and server = 'server_0'}), '70', 'R4: a column that one shard drops stays');
is($postgres->psql(q{select birth from merged.orders where id = 2 and shard = 'shop_2'}), '5', 'a column that gets another name is added');
like(types('orders'), qr/birth integer, born integer,.*note character varying\(20\)/, 'R3: and the old one is kept; types are wide enough for all');
$source->sql('create database shop_3', 'create table shop_3.orders (id decimal(25,0) primary key, price double, note text)', 'insert into shop_3.orders values (12345678901234567890, 0.5, repeat(\'x\', 100))');
settle($pipeline);
is($postgres->psql(q{select id || ' ' || price || ' ' || length(note) from merged.orders where shard = 'shop_3'}), '12345678901234567890 0.5 100', 'R3: a shard that joins later, with wider types') or diag($pipeline->describe);

# ---- R5, D20: TRUNCATE, a new copy, DROP: own rows only
my $before = rows('id', 'orders');
$source->sql('truncate table shop_2.orders', q{insert into shop_2.orders (id, name) values (7, 'g')});
settle();
($before =~ s{ 0/2/1 0/2/2}{ 0/2/7}) or die $before;
is(rows('id', 'orders'), $before, 'R5, D20: TRUNCATE of a shard deletes its own rows');
is(history(q{kinds = '{truncate_table}'}), "truncate_table|applied|DELETE FROM ONLY merged.orders WHERE shard = 'shop_2' AND server = 'server_0'", 'and is noted');
$postgres->psql(q{delete from merged.orders where server = 'server_1' and id = 1; insert into merged.orders (server, shard, id) values ('server_1', 'shop_1', 99)});
$postgres->psql(q{select cdc_resync_table('in_1', 'shop_1.orders')});
$second->sql('insert into shop_1.orders (id) values (10)');
settle();
is(rows('id', 'orders'), "$before 1/1/10", 'a new copy of a shard makes its own rows those of its source, and touches no others');
$source->sql('rename table shop_2.orders to shop_2.t, shop_2.t to shop_2.orders', 'drop table shop_3.orders', 'alter table shop_1.orders rename to shop_1.orders_old', 'create table shop_1.orders (id int primary key)', 'insert into shop_1.orders values (50)');
$pipeline->wait_for_catchup;
ok($postgres->poll(q{select count(*) from pg_stat_cdc_table where source_schema = 'shop_3'}, '0', 30), 'R5: a shard that is dropped leaves');
is($postgres->psql(q{select count(*) from merged.orders where shard = 'shop_3'}), '1', 'R5: and its rows stay, unless schema_changes says otherwise');

# ---- comparisons: own rows
$source->sql(map { ("create table shop_$_.items (id int primary key, v int)", "insert into shop_$_.items values (1, $_), (2, $_), (3, $_)") } 1, 2);
settle($pipeline);
$pipeline->{schema} = 'shop_2';
is($pipeline->verify('items'), '', 'cdc_verify() compares a shard with its own rows, and takes none of the others for its own');
is($pipeline->verify_mode('count', 'items'), '', 'and counts these');
$postgres->psql(q{insert into merged.items (server, shard, id) values ('server_0', 'shop_2', 77); delete from merged.items where shard = 'shop_2' and id < 3});
like($pipeline->verify('items'), qr/items: 2 missing, 1 extra, 0 different.*77/s, 'it finds rows that are missing, and one too many');
like($pipeline->verify_mode('count', 'items'), qr/items: 1 missing, 0 extra/, 'and their number');
like($pipeline->verify('orders'), qr/cannot be compared/, 'a key that is wider in the target is not compared, and it says so');

# ---- R7, R1: what is refused, and told
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where source_schema = 'shop_1' and source_table = 'orders_old' and pipeline = 'in_0'}), '1', 'a shard that gets another name goes on');
like($pipeline->table_status('orders', q{string_agg(last_error, '') filter (where state = 'stopped')}), qr/could not be told apart in target "merged.orders"/, 'R1: a table with the same name that comes after it cannot be told from it, and is refused');
$postgres->psql(q{select cdc_alter_pipeline('in_1', options => '{"transforms": null}')});
$second->sql('create table shop_1.plain (id int primary key)', 'create table shop_1.log (a int)');
$other->wait_for_catchup;
ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 'plain'}, 'stopped', 60), 'R1: a table whose key does not tell its rows is refused') or diag($other->describe);
like($postgres->psql(q{select last_error || ' ' || last_error_hint from pg_stat_cdc_table where source_table = 'plain'}), qr/does not tell its rows from those of others.*"projection": "cdc_schema AS shard, \*", "key": \["shard", "id"\]/, 'with a projection to paste');
like($postgres->psql_error(q{select cdc_create_pipeline('both', source => '{server_0,server_1}', tables => '{*.*}')}), qr/HINT: .*source => 's1'.*"merge"/s, 'several sources in one pipeline: the hint says how');

$_->stop for @pipelines;
done_testing();
