# Option on_error "stop": what would stop a table stops the pipeline, before the source transaction in question and before any
# of it is applied; mended, it goes on from there.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "stop"}')->setup;
$source->sql('create database shop', 'create table shop.strict (id int primary key, v int)', 'insert into shop.strict values (1, 1), (2, 200)',
	'create table shop.fine (id int primary key, v int)', 'insert into shop.fine values (1, 1)');
$postgres->psql('create schema shop; create table shop.strict (id int primary key, v int check (v < 100))');

# ---- a row of the copy
$pipeline->start->wait_for_state('failed');
is($pipeline->status('last_error_sqlstate'), '23514', 'a row that cannot be copied stops the pipeline');
like($pipeline->status('last_error'), qr/^source table "shop\.strict" cannot be copied: /, 'the error names the table');
like($pipeline->status('last_error_hint'), qr/cdc_start_pipeline\(\)/, 'and says how to go on');
ok($postgres->poll("select coalesce(ingest_pid, 0) from pg_stat_cdc_pipeline", '0'), 'the stream ends too');
is($pipeline->table_status('strict', 'state'), 'snapshot', 'its table is not stopped');
$postgres->psql('alter table shop.strict drop constraint strict_v_check');
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('mended, the copy goes on', 'strict', 'fine');

# ---- a change of the stream, in the middle of a transaction of two tables
$postgres->psql('alter table shop.strict add check (v < 1000)');
$source->sql('insert into shop.fine values (2, 2)', 'start transaction', 'insert into shop.fine values (3, 3)', 'insert into shop.strict values (3, 3000)',
	'insert into shop.fine values (4, 4)', 'commit', 'insert into shop.fine values (5, 5)');
$pipeline->wait_for_state('failed');
is($pipeline->status('last_error_sqlstate'), '23514', 'a change that cannot be applied stops the pipeline');
like($pipeline->status('last_error'), qr/^source table "shop\.strict" cannot be followed: /, 'the error names the table');
unlike($pipeline->status("last_error || coalesce(last_error_detail, '')"), qr/3000/, 'and shows no value');
like($pipeline->status('last_error_position'), qr/\.\d+:\d+$/, 'and the transaction');
is($postgres->psql('select id from shop.fine order by id'), "1\n2", 'what came before is there, nothing of the transaction');
is($pipeline->table_status('strict', 'state'), 'streaming', 'no table is stopped');
my $position = $pipeline->status('last_error_position');
$pipeline->start->wait_for_status('last_error_position', qr/./);
$pipeline->wait_for_state('failed');
is($pipeline->status('last_error_position'), $position, 'started without having been mended it meets the same change');
$postgres->psql('update shop.fine set v = v; alter table shop.strict drop constraint strict_v_check');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('mended, it goes on with that transaction', 'strict', 'fine');

# ---- a change of shape that nobody follows
$postgres->psql('alter table shop.strict drop column v');
$source->sql('update shop.strict set v = 7 where id = 1', 'insert into shop.fine values (6, 6)');
$pipeline->wait_for_state('failed');
like($pipeline->status('last_error'), qr/"shop\.strict" cannot be followed/, 'a target without the column');
is($postgres->psql('select count(*) from shop.fine where id = 6'), '0', 'nothing behind it');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"on_error": "stop_table"}')});
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
is($pipeline->table_status('strict', 'state'), 'stopped', 'with the other option the table stops and the others go on');
$pipeline->is_same('they do', 'fine');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
