# A table whose definition is missing in the catalog stops, in the snapshot as in the stream; the others go on.
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
unlike($postgres->log_text, qr/terminated by signal/, 'no process crashed');

done_testing();
