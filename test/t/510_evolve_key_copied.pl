# Rows that are there cannot have the source's new key until a copy takes their place: the table goes on by itself, and its rows stay readable.
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
	'create table moved (id int not null, k2 int not null default 0, v varchar(20), primary key (k2, id))',
	'insert into moved (id, v) values ' . join(', ', map { "($_, 'v$_')" } 1 .. 2000),
	'create table timed (at datetime primary key, v int)', q{insert into timed values ('2020-01-01 10:00:00', 1), ('2020-01-01 11:00:00', 2), ('2020-01-02 12:00:00', 3)});
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 100}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;

sub key
{
	my ($table) = @_;
	return $postgres->psql("select string_agg(attname, ',' order by n) from pg_constraint, unnest(conkey) with ordinality as k (attnum, n) join pg_attribute a using (attnum) "
		  . "where conrelid = 'shop.$table'::regclass and attrelid = conrelid and contype = 'p'");
}

sub settled
{
	my ($table, $key, $name) = @_;
	$pipeline->wait_for_catchup->wait_for_tables->wait_for_catchup;
	is($pipeline->table_status($table, "concat_ws(' ', state, last_error, last_error_detail)"), 'streaming', "$name: the table streams");
	$pipeline->is_same("$name: rows are equal", $table);
	is(key($table), $key, "$name: and so is the key");
	return;
}

# ---- while it is copied, another column becomes the key: the one that came has the same value in all rows that are there
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 500}')});
$pipeline->wait_for_state('streaming');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.moved')});
$postgres->poll(q{select state in ('snapshot', 'catchup') from pg_stat_cdc_table where source_table = 'moved'}, 't') or die $pipeline->describe;
$source->sql('alter table shop.moved change id pk int not null, drop primary key, add primary key (pk)', q{update shop.moved set v = 'changed' where pk < 50});
$postgres->poll(q{select count(*) from pg_attribute where attrelid = 'shop.moved'::regclass and attname = 'pk' and not attisdropped}, '1') or die $pipeline->describe;
is($postgres->psql('select count(v) from shop.moved'), '2000', 'D31: the rows stay readable meanwhile');
# once more, while the key waits
$source->sql('alter table shop.moved add column w int default 5');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
settled('moved', 'pk', 'D31: another key while the table is copied');
$source->sql('update shop.moved set v = \'again\' where pk = 7', 'delete from shop.moved where pk = 8');
settled('moved', 'pk', '... and afterwards');

# ---- a column of the key gets a type whose values are not known here, and would all be one
$source->sql('alter table shop.timed modify at time not null', q{insert into shop.timed values ('13:00:00', 4)}, q{update shop.timed set v = 20 where at = '11:00:00'});
settled('timed', 'at', 'D31: rows that would have one key');
like($postgres->log_text, qr/Its rows do not fit \(could not create unique index/, 'and the log says why they were copied');

# ---- a key of the target that was dropped by hand comes back with a copy
$postgres->psql('alter table shop.timed drop constraint timed_pkey');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.timed')});
$postgres->poll(q{select count(*) from pg_constraint where conrelid = 'shop.timed'::regclass and contype = 'p'}, '1') or die $pipeline->describe;
settled('timed', 'at', 'a key that was dropped here');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
