# cdc_verify() of partitioned targets, at any depth, with a leaf whose columns stand in another order.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.sale (id int not null, region varchar(10) not null, day date not null, amount decimal(10,2), primary key (region, day, id))',
	map { sprintf("insert into shop.sale values (%d, '%s', '2024-%02d-01', %d.5)", $_, (qw(north south east))[ $_ % 3 ], 1 + $_ % 6, $_) } 1 .. 300);
$postgres->psql(join(";\n", 'create schema shop',
	'create table shop.sale (id int not null, region text not null, day date not null, amount numeric(10,2), primary key (region, day, id)) partition by list (region)',
	q{create table shop.sale_north partition of shop.sale for values in ('north') partition by range (day)},
	q{create table shop.sale_north_1 partition of shop.sale_north for values from ('2024-01-01') to ('2024-04-01')},
	'create table shop.sale_north_2 (gone int, amount numeric(10,2), day date not null, region text not null, id int not null, primary key (region, day, id))',
	'alter table shop.sale_north_2 drop column gone',
	q{alter table shop.sale_north attach partition shop.sale_north_2 for values from ('2024-04-01') to ('2025-01-01')},
	'create table shop.sale_rest partition of shop.sale default'));

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 50}')->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is($pipeline->table_status('sale', 'state'), 'streaming', 'the partitioned target streams');
cmp_ok($postgres->psql('select count(*) from shop.sale_north_2'), '>', 10, 'with rows in the leaf of another shape');

$pipeline->is_verified('nothing is found');
is($postgres->psql("select rows_source || ' ' || rows_target from pg_stat_cdc_verify where request = $pipeline->{verify_request}"), '300 300', 'all rows were looked at');
is($pipeline->verify_mode('count'), '', 'nor by counting');

# ids divisible by 3 are in the north; months 4 to 6 are those of ids whose remainder by 6 is 3, 4, 5
$postgres->psql(join(';', "update shop.sale set amount = amount + 0.01 where id = 3", "update shop.sale set amount = null where id = 6", 'delete from shop.sale where id = 9',
	"insert into shop.sale values (1000, 'north', '2024-05-05', 1), (1001, 'west', '2024-05-05', 1)", 'update shop.sale set amount = 0 where id = 2'));
is($pipeline->verify, join("\n", 'sale: 1 missing, 2 extra, 3 different, 0 unsettled, done',
	sort('sale: different {east,2024-03-01,2} {amount}', 'sale: different {north,2024-01-01,6} {amount}', 'sale: different {north,2024-04-01,3} {amount}',
		'sale: extra {north,2024-05-05,1000}', 'sale: extra {west,2024-05-05,1001}', 'sale: missing {north,2024-04-01,9}')) . "\n", 'each planted difference is found');
is($pipeline->verify_mode('count'), "sale: 0 missing, 1 extra, 0 different, 0 unsettled, done\n", 'counting sees one row too many');

done_testing();
