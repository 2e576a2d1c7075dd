# A row that a copy reads again, because the stream changed it in part before it was there, is changed in part once more between that read
# and its writing: what was read lacks the second change, so it is not written, and the row is read once more.
# cells: mariadb-15

use strict;
use warnings;

use CdcBridge::FakeServer;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $fake = CdcBridge::FakeServer->new(upstream => $source);
$source->sql('create database shop', 'create table shop.t (id int primary key, a int, b int)', 'insert into shop.t values ' . join(', ', map { "($_, 0, 0)" } 1 .. 300));
# few rows each second: the last ones come much later
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { host => $fake->host, port => $fake->port },
	options => '{"snapshot_chunk_rows": 50, "snapshot_workers": 1, "max_rows_per_second": 20}')->setup->start;
$pipeline->wait_for_state('snapshot');
ok($postgres->poll(q{select count(*) > 0 from cdc_bridge.snapshot_chunk where state = 'done'}, 't'), 'the copy is under way');

my $session = $source->connect;
$session->do(q{set session binlog_row_image = 'MINIMAL'});
# rows that are read again are asked for in no order, chunks in order
$fake->hold('FROM `shop`\.`t` WHERE (?!.*ORDER BY)');
$session->do('update shop.t set a = 1 where id in (298, 299)');
$fake->wait_until_held;
my $entries = q{select string_agg(encode(key, 'hex') || ' ' || "offset", ', ' order by key) from cdc_bridge.snapshot_reread};
my $before = $postgres->psql($entries);
$session->do('update shop.t set b = 2 where id = 299');
ok($postgres->poll("select ($entries) <> '$before'", 't'), 'the row is changed once more while what was read of it is on its way') or diag($before);
$fake->let_go;
ok($postgres->poll('select id || $$:$$ || a || $$:$$ || b from shop.t where id = 298', '298:1:0'), 'the other row is written');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_tables->wait_for_catchup;
is($postgres->psql('select a, b from shop.t where id = 299'), '1|2', 'and this one is read once more');
$pipeline->is_mirrored('both sides are equal');

done_testing();
