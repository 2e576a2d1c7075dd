# What the random statements of 581 found, each arranged.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'use shop',
	'create table filled (id int primary key, a int, c decimal(6,2))', 'insert into filled values (1, null, null), (2, 5, 1.5)',
	map { ("create table $_ (id int primary key, k2 int not null default 0, a varchar(20))", "insert into $_ (id, a) values " . join(', ', map { "($_, 'a$_')" } 1 .. 2000)) } 'renamed', 'replaced');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 100}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;

sub settled
{
	my ($name, $table) = @_;
	$pipeline->wait_for_catchup->wait_for_tables->wait_for_catchup;
	is($pipeline->table_status($table, "state || coalesce(last_error, '')"), 'streaming', "$name: the table streams");
	$pipeline->is_same("$name: rows are equal", $table);
	return;
}

# ---- rows with NULL in a column that becomes NOT NULL, without strict mode: MariaDB gives them the default that the column had, when it need
# not write the table anew
$source->sql("set sql_mode = ''", 'alter table shop.filled modify a int default 15', 'alter table shop.filled modify a int not null');
$source->sql('alter table shop.filled modify c decimal(6,2) not null default 7', 'set sql_mode = default');
settled('D14: NOT NULL without strict mode', 'filled');

# ---- NULL stays NULL where a type becomes narrower
$source->sql('alter table shop.filled add d int, add e decimal(10,3), add f year', 'alter table shop.filled modify d smallint, modify e decimal(5,1), modify f tinyint');
settled('D29: narrower types of rows with NULL', 'filled');

# ---- a column of the key gets another name while the table is copied anew: the old rows keep their key until the copy takes their place
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 500}')});
$pipeline->wait_for_state('streaming');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.renamed')});
$postgres->poll(q{select state in ('snapshot', 'catchup') from pg_stat_cdc_table where source_table = 'renamed'}, 't') or die $pipeline->describe;
$source->sql('alter table shop.renamed rename column id to pk', 'update shop.renamed set a = \'changed\' where pk < 50');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
settled('D31: a key column is renamed while the table is copied', 'renamed');
is($postgres->psql(q{select string_agg(attname, ',') from pg_index join pg_attribute on attrelid = indrelid and attnum = any (indkey) where indrelid = 'shop.renamed'::regclass and indisprimary}), 'pk', 'and is the key here');

# ---- and a column that is NOT NULL makes place for one of its name that is not
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 500}')});
$pipeline->wait_for_state('streaming');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.replaced')});
$postgres->poll(q{select state in ('snapshot', 'catchup') from pg_stat_cdc_table where source_table = 'replaced'}, 't') or die $pipeline->describe;
$source->sql('alter table shop.replaced rename column k2 to k3', 'alter table shop.replaced add column k2 date', 'insert into shop.replaced (id, k2) values (3000, \'2020-02-02\')');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
settled('D11: another column of the same name, while the table is copied', 'replaced');

done_testing();
