# A table whose definition is missing in the catalog stops, in the snapshot as in the stream; the others go on. One that stops while
# it is copied says that it is incomplete, and nothing of its copy stays in the catalog.
# cells: mariadb-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(copied streamed whole));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup->stop;

my $of = q{where s.pipeline_id = t.pipeline_id and s.table_id = t.table_id and t.source_table =};
$postgres->psql("update cdc_bridge.table_state s set definition = null, state = 'snapshot' from cdc_bridge.pipeline_table t $of 'copied'");
$postgres->psql("update cdc_bridge.table_state s set definition = null from cdc_bridge.pipeline_table t $of 'streamed'");
$source->sql('insert into shop.streamed values (2, 2)', 'insert into shop.whole values (2, 2)');
$pipeline->start->wait_for_state('streaming');
for my $table (qw(copied streamed))
{
	$pipeline->wait_for_table_state($table, 'stopped', 60);
	is($pipeline->table_status($table, 'last_error'), qq{definition of source table "shop.$table" is missing}, "table $table is stopped and says why");
	is($pipeline->table_status($table, 'last_error_sqlstate'), '55000', "table $table: SQLSTATE");
}
$pipeline->wait_for_catchup;
$pipeline->is_same('the other table goes on', 'whole');

# Truncated when its copy is not complete: the log's end, the high mark, lies behind the TRUNCATE.
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes": "exception"}')});
$pipeline->stop;
$postgres->psql("update cdc_bridge.table_state s set state = 'snapshot', snapshot_finished_at = null from cdc_bridge.pipeline_table t $of 'whole'");
$postgres->psql("insert into cdc_bridge.snapshot_deleted select pipeline_id, table_id, '\\x01' from cdc_bridge.pipeline_table where source_table = 'whole'");
$postgres->psql("insert into cdc_bridge.snapshot_chunk select pipeline_id, table_id, 1, 1, null, '{1}', 'done', 1, 2, 16, 1 from cdc_bridge.pipeline_table where source_table = 'whole'");
$source->sql('insert into shop.whole values (3, 3)', 'truncate table shop.whole');
$pipeline->start->wait_for_table_state('whole', 'stopped', 60);
like($pipeline->table_status('whole', 'last_error_detail'), qr/^Such changes are not followed: option "schema_changes" is "exception"\. The copy was not complete; the target does not show/, 'stopped while it is copied: the detail says so');
is($postgres->psql('select (select count(*) from cdc_bridge.snapshot_deleted), (select count(*) from cdc_bridge.snapshot_chunk)'), '0|0',
	'the rows of its copy are gone');
is($pipeline->table_status('whole', 'rows_copied'), '2', 'how far it came is kept');
unlike($postgres->log_text, qr/terminated by signal/, 'no process crashed');

done_testing();
