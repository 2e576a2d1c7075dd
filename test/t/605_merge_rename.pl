# Merged tables that are told from each other by their names get new ones, and rows are written under these at once.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop', options => '{"schema_changes": "lenient",
	"routes": [{"source": "shop.*", "table": "parts", "merge": true}],
	"transforms": [{"tables": "shop.*", "projection": "cdc_table AS part, *", "key": ["part", "id"]}]}')->setup;
my @tables = map { "o$_" } 1 .. 6;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, a int)", "insert into shop.$_ values (1, 1), (2, 2)") } @tables);
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$source->sql(map { ("insert into shop.$_ values (5, 5)", "rename table shop.$_ to shop.r$_", "insert into shop.r$_ values (3, 3)", "update shop.r$_ set a = 9 where id = 1") } @tables);
my $rows = q{select string_agg(part || ' ' || list, ', ' order by part) from (select part, string_agg(id || '=' || a, ' ' order by id) as list from shop.parts group by part) p};
ok($postgres->poll($rows, join(', ', map { "r$_ 1=9 2=2 3=3 5=5" } @tables), 60), 'each table has its rows under its new name, once') or diag($postgres->psql($rows) . "\n" . $pipeline->describe);
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'stopped'}), '0', 'none stops') or diag($pipeline->describe);
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
