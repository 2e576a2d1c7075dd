# A row that a copy reads again, because the stream changed it in part before it was there, and that does not fit the target: it becomes a dead
# letter, and the rows that were read with it are written.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, a int, b int)', 'insert into shop.t values ' . join(', ', map { "($_, 0, " . ($_ == 299 ? 500 : 0) . ')' } 1 .. 300));
# few rows each second: the last ones come much later
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => '{"on_error": "dead_letter", "snapshot_chunk_rows": 50, "snapshot_workers": 1, "max_rows_per_second": 20}')->setup->start;
$pipeline->wait_for_state('snapshot');
ok($postgres->poll(q{select count(*) > 0 from cdc_bridge.snapshot_chunk where state = 'done'}, 't'), 'the copy is under way');
$postgres->psql('alter table shop.t add constraint small check (b < 100)');

my $session = $source->connect;
$session->do(q{set session binlog_row_image = 'MINIMAL'});
$session->do('update shop.t set a = 1 where id in (297, 298, 299)');
my $letters = q{select string_agg(operation || ' ' || state || ' ' || after::text, ', ' order by dead_letter_id) from cdc_dead_letters};
my $snapshot = 'snapshot waiting {"a": "1", "b": "500", "id": "299"}';
ok($postgres->poll($letters, $snapshot), 'a row that is read again and does not fit is a letter') or diag($postgres->psql($letters), $pipeline->describe);
is($postgres->psql(q{select string_agg(id || ':' || a, ' ' order by id) from shop.t where id > 296 and a > 0}), '297:1 298:1', 'those that were read with it are there');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"max_rows_per_second": 0}')});
$pipeline->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('t', 'state'), 'streaming', 'the table is handed over without it');
is($pipeline->table_status('t', 'dead_letters'), '1', 'and it is counted');

$session->do('update shop.t set a = 7 where id = 299');
$pipeline->wait_for_catchup;
is($postgres->psql($letters), $snapshot . ', update waiting {"a": "7"}', 'a later change in part of the row waits behind it');
$postgres->psql('alter table shop.t drop constraint small');
$postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
ok($postgres->poll(q{select string_agg(distinct state, ', ') from cdc_dead_letters}, 'replayed'), 'both are replayed in order') or diag($postgres->psql('select state, error, error_detail from cdc_dead_letters'));
$pipeline->is_mirrored('both sides are equal');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
