# Merged tables: a column that all have dropped, targets that are partitioned, and a dump that is restored.
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
	options => "{\"batch_max_ms\": 0, \"schema_changes\": \"evolve\", $routes, $transforms}")->setup } 0 .. 1;
my ($pipeline, $other) = @pipelines;
sub settle { $_->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup for @pipelines; return; }
sub rows { my ($what, $table) = @_; return $postgres->psql("select coalesce(string_agg(concat_ws('/', right(server, 1), right(shard, 1), $what), ' ' order by server, shard, id), '') from merged.$table"); }
sub columns { my ($table) = @_; return $postgres->psql("select string_agg(attname, ' ' order by attname) from pg_attribute where attrelid = 'merged.$table'::regclass and attnum > 0 and not attisdropped"); }

# ---- told before the start
sub told
{
	my ($options) = @_;
	$postgres->psql("select cdc_create_pipeline('told', source => 'server_0', tables => '{shop_*.*}', options => '{$routes$options}')");
	my $lines = $postgres->psql(q{select "check" || ' ' || status || ': ' || detail || ' ' || coalesce(hint, '') from cdc_check_pipeline('told') where status <> 'ok' and "check" ~ '^(routes|table|transform)' order by 1});
	$postgres->psql(q{select cdc_drop_pipeline('told')});
	return $lines;
}
$source->sql(map { "create database shop_$_" } 1, 2);
$source->sql(map { "create table shop_$_.orders (id int primary key)" } 1, 2);
my $untold = told('');
like($untold, qr/^table shop_1\.orders error: .*does not tell its rows from those of others.*"key": \["shard", "id"\].*^table shop_2\.orders error/ms, 'R1: cdc_check_pipeline tells before the start that a key does not tell rows');
like(told(', "transforms": [{"tables": "shop_*.*", "projection": "cdc_schema AS shard, *"}]'), qr/^transform of shop_1\.orders error: .*does not tell its rows/m, 'R1: also where the column is not in the key');
like(told(', "transforms": [{"tables": "shop_*.*", "projection": "cdc_table AS source, *", "key": ["source", "id"]}]'), qr/^routes error: Rows of source tables "shop_1\.orders" and "shop_2\.orders" could not be told apart/, 'R1: and where it says the same of two tables');
is(told(', "transforms": [{"tables": "shop_*.*", "projection": "cdc_schema || cdc_table AS source, *", "key": ["source", "id"]}]'), '', 'nothing is said of a key that does');
is(told(q{, "transforms": [{"tables": "shop_1.*", "projection": "''north'' AS source, *", "key": ["source", "id"]}, {"tables": "shop_2.*", "projection": "''south'' AS source, *", "key": ["source", "id"]}]}), '', 'nor of constants');
$source->sql(map { "drop database shop_$_" } 1, 2);

# ---- a partitioned target, made beforehand
$postgres->psql(<<'SQL');
create schema merged;
create table merged.parted (server text, shard text, id int, v int, primary key (server, shard, id)) partition by list (shard);
create table merged.parted_1 partition of merged.parted for values in ('shop_1');
create table merged.parted_rest partition of merged.parted default;
SQL
$source->sql('create database shop_1', 'create database shop_2', map { ("create table shop_$_.orders (id int primary key, v int, old int, mine int)", "insert into shop_$_.orders values (1, $_, 1, 1)",
	"create table shop_$_.parted (id int primary key, v int)", "insert into shop_$_.parted values (1, $_), (2, $_)") } 1, 2);
$second->sql('create database shop_1', 'create table shop_1.orders (id int primary key, v int, old int)', 'insert into shop_1.orders values (1, 3, 1)', 'create table shop_1.parted (id int primary key, v int)', 'insert into shop_1.parted values (1, 3)');
$_->start for @pipelines;
settle();
is(rows('id, v', 'parted'), '0/1/1/1 0/1/2/1 0/2/1/2 0/2/2/2 1/1/1/3', 'R1: shards of two servers are copied into a partitioned target') or diag($pipeline->describe . $other->describe);
$source->sql('update shop_1.parted set v = 10 where id = 1', 'delete from shop_2.parted where id = 1', 'insert into shop_2.parted values (3, 3)');
$second->sql('update shop_1.parted set id = 7');
settle();
is(rows('id, v', 'parted'), '0/1/1/10 0/1/2/1 0/2/2/2 0/2/3/3 1/1/7/3', 'and followed');
is($postgres->psql('select count(*) from merged.parted_1'), '3', 'in its partitions');
$source->sql('alter table shop_1.parted add w int, modify v bigint', 'insert into shop_1.parted values (4, 5000000000, 4)', 'truncate table shop_2.parted');
settle();
is(rows('id, v, w', 'parted'), '0/1/1/10 0/1/2/1 0/1/4/5000000000/4 1/1/7/3', 'R4, R5: a column, a wider type, TRUNCATE of a shard');
$postgres->psql(q{delete from merged.parted where server = 'server_0' and id = 1; select cdc_resync_table('in_0', 'shop_1.parted')});
ok($postgres->poll(q{select count(*) from merged.parted where server = 'server_0' and shard = 'shop_1' and id = 1}, '1', 30), 'R5: a new copy of a shard');
settle();
is(rows('id', 'parted'), '0/1/1 0/1/2 0/1/4 1/1/7', 'of its own rows');

# ---- a column that all have dropped
$postgres->psql('alter table merged.orders add column own int default 5');
$source->sql('alter table shop_1.orders drop column old, drop column mine', 'insert into shop_1.orders values (2, 2)');
settle();
is(columns('orders'), 'id mine old own server shard v', 'a column that others have stays');
$source->sql('alter table shop_2.orders drop column mine', 'insert into shop_2.orders values (2, 2, 2)');
settle();
is(columns('orders'), 'id old own server shard v', 'one that all have dropped goes with the last of them');
is($postgres->psql(q{select array_to_string(commands, '; ') from cdc_schema_history where source_schema = 'shop_2' and source_table = 'orders' and kinds = '{drop_column}'}), 'ALTER TABLE merged.orders DROP COLUMN mine', 'and the history says so');
$source->sql('alter table shop_2.orders drop column old');
settle();
is(columns('orders'), 'id old own server shard v', 'one that a table of another pipeline has stays');
$second->sql('alter table shop_1.orders drop column old', 'insert into shop_1.orders values (9, 9)');
settle();
is(columns('orders'), 'id own server shard v', 'until that drops it too; what no source ever had stays');
is(rows('id, v', 'orders'), '0/1/1/1 0/1/2/2 0/2/1/2 0/2/2/2 1/1/1/3 1/1/9/9', 'all go on') or diag($pipeline->describe);
$postgres->psql(q{select cdc_alter_pipeline('in_0', options => '{"schema_changes_exclude": ["drop_column"]}'), cdc_alter_pipeline('in_1', options => '{"schema_changes": null}')});
$source->sql('alter table shop_1.orders drop column v', 'alter table shop_2.orders drop column v');
settle();
$second->sql('alter table shop_1.orders drop column v');
settle();
is(columns('orders'), 'id own server shard v', 'by default, and where the kind is excluded, it stays');

# ---- kinds of changes that are left out
$postgres->psql(q{select cdc_alter_pipeline('in_0', options => '{"schema_changes_exclude": ["add_column", "rename_column", "alter_type", "alter_nullability"]}')});
$source->sql('create table shop_1.kinds (id int primary key, v int not null, name varchar(10))', q{insert into shop_1.kinds values (1, 1, 'one')}, 'create table shop_2.kinds (id int primary key, v int not null, name varchar(10))', q{insert into shop_2.kinds values (1, 1, 'eins')});
settle();
my $types = sub { return $postgres->psql(q{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attname) from pg_attribute where attrelid = 'merged.kinds'::regclass and attnum > 0 and not attisdropped}) };
my $as_before = 'id integer!, name character varying(10), server text!, shard text!, v integer!';
is($types->(), $as_before, 'a new table');
$source->sql('alter table shop_1.kinds add w int default 4', 'insert into shop_1.kinds values (2, 2, \'two\', 2)', 'alter table shop_1.kinds change name title varchar(10)', 'insert into shop_1.kinds values (3, 3, \'three\', 3)',
	'alter table shop_1.kinds modify v smallint not null, modify title varchar(10) not null', 'insert into shop_1.kinds values (4, 4, \'four\', 4)', 'alter table shop_1.kinds modify v smallint', 'insert into shop_1.kinds values (5, 5, \'five\', 5)');
settle();
is($types->(), $as_before, 'kinds that are excluded leave the target as it is');
is(rows(q{id, v, coalesce(name, '-')}, 'kinds'), '0/1/1/1/one 0/1/2/2/two 0/1/3/3/- 0/1/4/4/- 0/1/5/5/- 0/2/1/1/eins', 'what it lacks is left out, all else goes on') or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(distinct result, ',') from cdc_schema_history where source_table = 'kinds' and source_schema = 'shop_1' and not kinds && '{create_table}'}), 'ignored', 'and the history says so');
$source->sql('alter table shop_2.kinds modify v bigint not null', 'insert into shop_2.kinds values (2, 5000000000, \'zwei\')', 'insert into shop_1.kinds (id, v, title) values (6, 6, \'six\')');
$pipeline->wait_for_catchup;
ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 'kinds' and source_schema = 'shop_2'}, 'stopped', 30), 'values that do not fit stop their table') or diag($pipeline->describe);
is($postgres->psql(q{select count(*) from merged.kinds where id = 6}), '1', 'and not the others');
$postgres->psql(q{select cdc_alter_pipeline('in_0', options => '{"schema_changes_exclude": null}')});
$postgres->psql(q{select cdc_resync_table('in_0', 'shop_' || i || '.kinds') from generate_series(1, 2) i});
ok($postgres->poll(q{select count(*) from merged.kinds where shard = 'shop_2' and v = 5000000000}, '1', 60), 'without them a new copy has all') or diag($pipeline->describe);
settle();
$source->sql('drop table shop_1.kinds, shop_2.kinds');
settle();

# ---- a dump that is restored: one goes on from a position with its rows, the other copies its own anew
$_->stop for @pipelines;
my %position = map { $_ => $postgres->psql("select file || ':' || \"offset\" from cdc_bridge.position where pipeline = 'in_$_'") } 0, 1;
my $dump = $postgres->dir . '/dump.sql';
system($postgres->bindir . "/pg_dump -h '" . $postgres->host . "' -p " . $postgres->port . " -U postgres -d postgres > '$dump'") == 0 or die "pg_dump failed\n";
$source->sql('insert into shop_1.orders values (30)', 'delete from shop_2.orders where id = 1', 'insert into shop_2.parted values (31, 1)');
$second->sql('insert into shop_1.orders values (32)', 'delete from shop_1.parted');
$postgres->psql('create database restored');
system($postgres->bindir . "/psql -qX -v ON_ERROR_STOP=1 -h '" . $postgres->host . "' -p " . $postgres->port . " -U postgres -d restored -f '$dump' > '" . $postgres->dir . "/restore.log' 2>&1") == 0
  or die 'the dump cannot be restored: ' . `cat '@{[$postgres->dir]}/restore.log'`;
{
	local $postgres->{database} = 'restored';
	is(rows('id', 'orders'), '0/1/1 0/1/2 0/2/1 0/2/2 1/1/1 1/1/9', 'a restored dump has the rows');
	$postgres->psql("select cdc_set_position('in_0', '$position{0}')");
	$postgres->psql(q{select cdc_start_pipeline('in_0')});
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	is(rows('id', 'orders'), '0/1/1 0/1/2 0/1/30 0/2/2 1/1/1 1/1/9', 'a pipeline with a position goes on with its own rows') or diag($pipeline->describe);
	is($postgres->psql("select count(*) from pg_stat_cdc_table where pipeline = 'in_0' and rows_copied > 0"), '0', 'and copies none');
	$postgres->psql(q{select cdc_alter_pipeline('in_1', options => '{"on_existing": "truncate"}')});
	$postgres->psql(q{select cdc_start_pipeline('in_1')});
	$other->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	is(rows('id', 'orders'), '0/1/1 0/1/2 0/1/30 0/2/2 1/1/1 1/1/9 1/1/32', 'the other copies its own anew, and touches no others') or diag($other->describe);
	is(rows('id', 'parted'), '0/1/1 0/1/2 0/1/4 0/2/31', 'in a partitioned target, too');
	$source->sql('update shop_1.parted set id = 5 where id = 4');
	$second->sql('insert into shop_1.parted (id) values (6)');
	settle();
	is(rows('id', 'parted'), '0/1/1 0/1/2 0/1/5 0/2/31 1/1/6', 'and both follow');
	$_->stop for @pipelines;
}

done_testing();
