# Merged tables that are told from each other by their names exchange these: their rows in the target follow.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"batch_max_ms": 0,
	"routes": [{"source": "shop.part_*", "table": "parts", "merge": true}],
	"transforms": [{"tables": "shop.part_*", "projection": "cdc_table AS part, *", "key": ["part", "id"]}]}')->setup;
my $rows = q{select string_agg(part || ' ' || id || ' ' || note, ', ' order by part, id) from shop.parts};
$source->sql('create database shop', map { ("create table shop.part_$_ (id int primary key, note varchar(9))", "insert into shop.part_$_ values (1, '$_'), (2, '$_')") } qw(a b c));
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql($rows), 'part_a 1 a, part_a 2 a, part_b 1 b, part_b 2 b, part_c 1 c, part_c 2 c', 'three tables share a target');

$source->sql('rename table shop.part_a to shop.part_x, shop.part_b to shop.part_a, shop.part_x to shop.part_b', q{insert into shop.part_a values (3, 'b')}, 'delete from shop.part_b where id = 1');
ok($postgres->poll($rows, 'part_a 1 b, part_a 2 b, part_a 3 b, part_b 2 a, part_c 1 c, part_c 2 c', 60), 'two exchange their names in one statement, and their rows follow') or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_table}), 'part_a streaming, part_b streaming, part_c streaming', 'no table stops') or diag($pipeline->describe);

$source->sql('rename table shop.part_a to shop.part_x, shop.part_b to shop.part_a, shop.part_c to shop.part_b, shop.part_x to shop.part_c', q{update shop.part_c set note = 'new' where id = 3});
ok($postgres->poll($rows, 'part_a 2 a, part_b 1 c, part_b 2 c, part_c 1 b, part_c 2 b, part_c 3 new', 60), 'three in a circle') or diag($pipeline->describe);
$source->sql(map { "insert into shop.part_$_ values (9, 'end')" } qw(a b c));
ok($postgres->poll(q{select count(*) from shop.parts where note = 'end'}, '3', 60), 'and their changes find them') or diag($pipeline->describe);
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
