-- cdc_set_position, cdc_skip_transaction, cdc_reset_stats: what they refuse, what they write.
CREATE EXTENSION cdc_bridge;
CREATE SERVER position_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306');
CREATE USER MAPPING FOR PUBLIC SERVER position_shop OPTIONS (username 'repl', password 'secret');
SELECT cdc_create_pipeline('shop_in', source => 'position_shop', tables => '{shop.*}');

-- exactly one of the two, and well formed
SELECT cdc_set_position(NULL, 'binlog.000001:4');
SELECT cdc_set_position('shop_in');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_set_position('shop_in', at => 'binlog.000001:4', gtids => '0-1-1');
SELECT cdc_set_position('shop_in', gtids => '0-1-1', anew => true);
SELECT cdc_set_position('shop_in', gtids => '0-1-1', server => 'mariadb:1:0');
SELECT cdc_set_position('shop_in', at => 'binlog.000001:4', server => '*');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_set_position('nothing', at => 'binlog.000001:4');
\echo :LAST_ERROR_SQLSTATE

-- nothing to go on with
SELECT cdc_set_position('shop_in', at => 'binlog.000001:4');
\echo :LAST_ERROR_SQLSTATE

-- a pipeline as it is after a dump was restored: tables, but no state
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 1, 'shop', 'orders', 'shop', 'orders' FROM cdc_bridge.pipeline;
DELETE FROM cdc_bridge.pipeline_state;
SELECT pipeline, state, tables FROM pg_stat_cdc_pipeline;
SELECT cdc_set_position('shop_in', anew => true);
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_set_position('shop_in', at => 'binlog.000001');
SELECT cdc_set_position('shop_in', at => 'binlog.000001:3');
SELECT cdc_set_position('shop_in', at => '/etc/passwd:4');
SELECT cdc_set_position('shop_in', gtids => 'nonsense');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_set_position('shop_in', at => 'binlog.000002:1000');
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;
SELECT enabled, state FROM cdc_bridge.pipeline_state;

-- forwards, backwards, by GTIDs, to another family
SELECT cdc_set_position('shop_in', at => 'binlog.000010:4');
SELECT cdc_set_position('shop_in', at => 'binlog.000009:4');
SELECT cdc_skip_transaction('shop_in', at => 'mysql-bin.000012:345');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_set_position('shop_in', gtids => '1-1-7, 0-1-42');
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;
SELECT cdc_set_position('shop_in', gtids => '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5');
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT cdc_set_position('shop_in', at => 'binlog.000099:4');
ROLLBACK;
SELECT file, "offset", gtids FROM cdc_bridge.position;

-- not while it should run, not while tables are being copied
UPDATE cdc_bridge.pipeline_state SET enabled = true, state = 'failed';
SELECT cdc_set_position('shop_in', at => 'binlog.000001:4');
\echo :LAST_ERROR_SQLSTATE
UPDATE cdc_bridge.pipeline_state SET enabled = false, state = 'stopped';
INSERT INTO cdc_bridge.table_state (pipeline_id, table_id, state, generation, target, row_estimate, rows_copied, chunks)
	SELECT pipeline_id, 1, 'snapshot', 1, 0, 0, 0, 0 FROM cdc_bridge.pipeline;
SELECT cdc_set_position('shop_in', at => 'binlog.000001:4');
\echo :LAST_ERROR_SQLSTATE
DELETE FROM cdc_bridge.table_state;

-- one transaction to pass over
SELECT cdc_skip_transaction('shop_in');
\echo :LAST_ERROR_SQLSTATE
UPDATE cdc_bridge.pipeline_state SET failed_transaction = 'binlog.000012:345';
SELECT cdc_skip_transaction('shop_in');
SELECT cdc_skip_transaction('shop_in', at => 'binlog.000012:345');
SELECT cdc_skip_transaction('shop_in', at => 'x');
SELECT cdc_skip_transaction('shop_in', at => 'binlog.000012:345', gtid => '0-1-43');
SELECT cdc_skip_transaction('shop_in', gtid => '0-1-43');
SELECT cdc_skip_transaction('shop_in', gtid => '0-1-43,1-1-9');
SELECT cdc_skip_transaction('shop_in', gtid => '0-1-42');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_skip_transaction('shop_in', gtid => '3e11fa47-71ca-11e1-9e33-c80aa9429562:5');
SELECT skip_id, position, gtid, requested_by = current_user::regrole AS mine, skipped_at FROM cdc_bridge.skipped_transaction ORDER BY 1;
SELECT transactions_skipped, stats_reset FROM pg_stat_cdc_pipeline;

-- the same with MySQL's GTIDs
SELECT cdc_drop_pipeline('shop_in');
SELECT count(*) FROM cdc_bridge.skipped_transaction;
SELECT cdc_create_pipeline('shop_in', source => 'position_shop', tables => '{shop.*}');
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 1, 'shop', 'orders', 'shop', 'orders' FROM cdc_bridge.pipeline;
SELECT cdc_set_position('shop_in', gtids => E'3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:7,\n3e11fa47-71ca-11e1-9e33-c80aa9429563:1');
SELECT cdc_skip_transaction('shop_in', gtid => '3e11fa47-71ca-11e1-9e33-c80aa9429562:6');
SELECT cdc_skip_transaction('shop_in', gtid => '3e11fa47-71ca-11e1-9e33-c80aa9429562:5');
SELECT cdc_skip_transaction('shop_in', gtid => '3e11fa47-71ca-11e1-9e33-c80aa9429562:8-9');
SELECT gtid FROM cdc_bridge.skipped_transaction;

-- in the log of another server, which makes what was noted of the former one void (a request by GTID is not); all anew
SELECT cdc_skip_transaction('shop_in', at => 'binlog.000002:400');
SELECT cdc_set_position('shop_in', at => 'mysql-bin.000003:120', server => 'mariadb:2:0');
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;
SELECT position, gtid FROM cdc_bridge.skipped_transaction;
SELECT cdc_set_position('shop_in', anew => true);
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;

-- counters
SELECT cdc_reset_stats('nothing');
SELECT cdc_reset_stats('shop_in');
SELECT cdc_reset_stats();

SELECT cdc_drop_pipeline('shop_in');
SET client_min_messages = warning;
DROP EXTENSION cdc_bridge CASCADE;
