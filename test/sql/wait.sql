-- cdc_wait_for_pipeline, without any worker: states are set by hand.
CREATE EXTENSION cdc_bridge;
CREATE SERVER wait_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR CURRENT_USER SERVER wait_shop OPTIONS (username 'repl', password 'secret');

CALL cdc_wait_for_pipeline('shop_in');
\echo :LAST_ERROR_SQLSTATE
CALL cdc_wait_for_pipeline(NULL);
SELECT cdc_create_pipeline('shop_in', source => 'wait_shop', tables => '{shop.*}');
CALL cdc_wait_for_pipeline('shop_in', 'done');
CALL cdc_wait_for_pipeline('shop_in', 'waiting');
CALL cdc_wait_for_pipeline('shop_in', 'stopped');
CALL cdc_wait_for_pipeline('shop_in');
\echo :LAST_ERROR_SQLSTATE

-- it says where it cannot work
BEGIN;
CALL cdc_wait_for_pipeline('shop_in', 'stopped');
ROLLBACK;
\echo :LAST_ERROR_SQLSTATE
-- a block of code outside a transaction block may commit, so this works
DO $$ BEGIN CALL cdc_wait_for_pipeline('shop_in', 'stopped'); END $$;

-- the state that a manager of this database would act on is not committed: the row says another database
UPDATE cdc_bridge.pipeline_state SET database = 0, enabled = true, state = 'streaming';
SELECT pipeline, state FROM pg_stat_cdc_pipeline;
CALL cdc_wait_for_pipeline('shop_in', timeout => '0.1 s');

-- failed: nobody runs it, whatever enabled says
UPDATE cdc_bridge.pipeline_state SET database = (SELECT oid FROM pg_database WHERE datname = current_database()),
	state = 'failed', last_error = 'source server "wait_shop" no longer has the position of pipeline "shop_in"',
	last_error_sqlstate = 'YC001', last_error_detail = 'Wanted mysql-bin.000003:154; the oldest binary log is mysql-bin.000007.',
	last_error_hint = 'Drop the pipeline and create it anew.', last_error_position = 'mysql-bin.000003:154', last_error_at = now();
CALL cdc_wait_for_pipeline('shop_in');
\echo :LAST_ERROR_SQLSTATE
CALL cdc_wait_for_pipeline('shop_in', 'failed');
CALL cdc_wait_for_pipeline('shop_in', 'stopped', '0.2 s');
\echo :LAST_ERROR_SQLSTATE
SELECT state, last_error_sqlstate, last_error_position FROM pg_stat_cdc_pipeline;

-- stopped tables are named when the wait is over
INSERT INTO cdc_bridge.pipeline_table VALUES (1, 1, 'shop', 'orders', 'shop', 'orders'), (1, 2, 'shop', 'log', 'shop', 'log');
INSERT INTO cdc_bridge.table_state (pipeline_id, table_id, state, generation, target, row_estimate, rows_copied, chunks,
	snapshot_started_at, snapshot_finished_at)
VALUES (1, 1, 'streaming', 1, 0, 200, 210, 3, now(), now());
INSERT INTO cdc_bridge.table_state (pipeline_id, table_id, state, generation, target, stop_file, stop_offset, row_estimate,
	rows_copied, chunks, last_error, last_error_sqlstate)
VALUES (1, 2, 'stopped', 1, 0, 'mysql-bin.000003', 200, 0, 0, 0, 'table "shop.log" has no primary key', 'YC006');
UPDATE cdc_bridge.pipeline_state SET state = 'streaming';
CALL cdc_wait_for_pipeline('shop_in');
UPDATE cdc_bridge.pipeline_state SET state = 'failed';
CALL cdc_wait_for_pipeline('shop_in', 'failed');
SELECT pipeline, tables, tables_snapshot, tables_streaming, tables_stopped FROM pg_stat_cdc_pipeline;
SELECT source_table, state, rows_copied, stop_position, last_error, last_error_sqlstate FROM pg_stat_cdc_table;

-- progress
UPDATE cdc_bridge.table_state SET state = 'snapshot', snapshot_finished_at = NULL, rows_copied = 0, chunks = 0 WHERE table_id = 1;
SELECT source_table, state, chunks, rows_copied, rows_estimated, percent, bar FROM pg_stat_cdc_snapshot;
INSERT INTO cdc_bridge.snapshot_chunk VALUES (1, 1, 1, 0, '{20}', NULL, 'rest', 0, 0, 0, 0), (1, 1, 1, 1, NULL, '{5}', 'done', 1, 90, 1000, 3),
	(1, 1, 1, 2, '{5}', '{9}', 'done', 2, 9, 1000, 1), (1, 1, 1, 3, '{9}', '{20}', 'open', 1, 0, 0, 0);
SELECT source_table, state, chunks, rows_copied, rows_estimated, percent, bar FROM pg_stat_cdc_snapshot;
UPDATE cdc_bridge.table_state SET row_estimate = 50 WHERE table_id = 1;
SELECT percent, bar FROM pg_stat_cdc_snapshot;
UPDATE cdc_bridge.table_state SET row_estimate = 0 WHERE table_id = 1;
SELECT rows_estimated, percent, bar FROM pg_stat_cdc_snapshot;
UPDATE cdc_bridge.table_state SET state = 'catchup', snapshot_finished_at = now(), rows_copied = 99, chunks = 2 WHERE table_id = 1;
SELECT chunks, rows_copied, percent, bar, finished_at IS NOT NULL AS finished FROM pg_stat_cdc_snapshot;

-- starting a failed pipeline forgets the error
BEGIN;
SELECT cdc_start_pipeline('shop_in');
SELECT state, last_error, last_error_at FROM pg_stat_cdc_pipeline;
ROLLBACK;
SELECT cdc_stop_pipeline('shop_in');
CALL cdc_wait_for_pipeline('shop_in', 'stopped');
SELECT state, last_error_sqlstate FROM pg_stat_cdc_pipeline;
SELECT cdc_drop_pipeline('shop_in');
SELECT count(*) FROM cdc_bridge.table_state;
SELECT count(*) FROM cdc_bridge.snapshot_chunk;

\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
