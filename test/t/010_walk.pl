# The README's walk: a schema is mirrored, changes follow, the pipeline is stopped, started and dropped.
# cells: mariadb-15 mariadb-18 mysql-15 mysql-18 mariadb118-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_shop create_shop fill_shop);
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
create_shop($source);
fill_shop($source, 2000);

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
is($postgres->psql("select string_agg(status, ',') from cdc_check('shop') where status not in ('ok', 'warning', 'info')"), '', 'the check of the source finds no error');
is($postgres->psql("select string_agg(status, ',') from cdc_check() where status not in ('ok', 'warning', 'info')"), '', 'the check of this server finds no error');

$pipeline->start;
$postgres->psql("call cdc_wait_for_pipeline('shop_in', state => 'streaming')");
is($pipeline->state, 'streaming', 'cdc_wait_for_pipeline waits');
$pipeline->wait_for_tables;
$pipeline->wait_for_catchup;
$pipeline->is_same('the snapshot equals the source');
is($postgres->psql('select count(*) from pg_stat_cdc_table'), 6, 'six tables are told in the view');
is($postgres->psql('select bool_and(percent = 100) from pg_stat_cdc_snapshot'), 't', 'the snapshot is told as complete');

srand(10);
my $dbh = $source->connect;
change_shop($dbh, 2000) for 1 .. 300;
$pipeline->wait_for_catchup;
$pipeline->is_same('inserts, updates and deletes arrive');

# an idle stream shows one change soon: the time that a poll every few milliseconds sees includes the start of psql
$source->sql("update shop.product set title = 'at once' where sku = 'SKU-0000001'");
ok($postgres->poll("select title from shop.product where sku = 'SKU-0000001'", 'at once', 5), 'one change on an idle stream is visible soon');

is($postgres->psql("select count(*) from pg_class c join pg_index i on i.indrelid = c.oid where relnamespace = 'shop'::regnamespace and indisprimary"),
	6, 'every target table has its primary key');

$pipeline->stop;
is($pipeline->state, 'stopped', 'a stopped pipeline says so');
unlike($postgres->log_text, qr/cdc_bridge \w+( worker)? +FATAL/, 'a worker that is asked to leave does so without a FATAL in the log');
change_shop($dbh, 2000) for 1 .. 50;
ok(!$pipeline->same_rows, 'a stopped pipeline does not apply');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('after another start it goes on where it was');

# restarts in order, of either side
$postgres->restart;
change_shop($dbh, 2000) for 1 .. 50;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('it comes back by itself after a restart of PostgreSQL');
$source->restart;
$dbh = $source->connect;
change_shop($dbh, 2000) for 1 .. 50;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('it comes back by itself after a restart of the source');

# what a transaction undoes has not happened
$postgres->psql("begin; select cdc_stop_pipeline('shop_in'); rollback");
$source->sql("update shop.product set title = 'still streaming' where sku = 'SKU-0000002'");
ok($postgres->poll("select title from shop.product where sku = 'SKU-0000002'", 'still streaming'), 'a stop that is rolled back does not stop');

$pipeline->stop->drop;
is($postgres->psql('select count(*) from pg_stat_cdc_pipeline'), 0, 'a dropped pipeline is gone');
isnt($postgres->psql('select count(*) from shop.orders'), 0, 'its target tables stay');
is($postgres->psql('select count(*) from pg_replication_origin'), 0, 'its replication origins are gone');
$postgres->psql('drop extension cdc_bridge cascade');
is($postgres->psql("select count(*) from pg_namespace where nspname = 'cdc_bridge'"), 0, 'the extension leaves nothing behind');

done_testing();
