-- Who may do what, and who sees what.
CREATE EXTENSION cdc_bridge;
CREATE ROLE regress_cdc_ann LOGIN;
CREATE ROLE regress_cdc_bob LOGIN;
CREATE ROLE regress_cdc_watcher IN ROLE pg_monitor;
CREATE SERVER privileges_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR PUBLIC SERVER privileges_shop OPTIONS (username 'repl', password 'secret');

-- nobody may call what changes something, or connects elsewhere
SET ROLE regress_cdc_ann;
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_start_pipeline('ann_in', 'privileges_shop', '{shop.*}');
SELECT cdc_stop_pipeline('ann_in');
SELECT cdc_drop_pipeline('ann_in');
SELECT cdc_alter_pipeline('ann_in');
SELECT cdc_set_position('ann_in', 'binlog.000001:4');
SELECT cdc_skip_transaction('ann_in');
SELECT cdc_reset_stats();
SELECT * FROM cdc_check_pipeline('ann_in');
SELECT * FROM cdc_check('privileges_shop');
SELECT * FROM cdc_bridge.pipeline;
INSERT INTO cdc_bridge.pipeline_state VALUES (1, 1, true, 'streaming');
SELECT nextval('cdc_bridge.pipeline_id_seq');
RESET ROLE;

-- the right to call is not enough
GRANT EXECUTE ON FUNCTION cdc_create_pipeline, cdc_start_pipeline, cdc_stop_pipeline, cdc_drop_pipeline, cdc_check
	TO regress_cdc_ann, regress_cdc_bob;
SET ROLE regress_cdc_ann;
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM cdc_check('privileges_shop');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER privileges_shop TO regress_cdc_ann, regress_cdc_bob;
CREATE SCHEMA privileges_target;
SET ROLE regress_cdc_ann;
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{"privileges\\_target.*"}');
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{shop.*}', target_schema => 'privileges_target');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{shop.*}', target_schema => 'privileges_new');
\set VERBOSITY default
RESET ROLE;
GRANT CREATE ON SCHEMA privileges_target TO regress_cdc_ann, regress_cdc_bob;
SET ROLE regress_cdc_ann;
SELECT cdc_create_pipeline('ann_in', 'privileges_shop', '{shop.*}', target_schema => 'privileges_target');
RESET ROLE;

-- each role sees its own
SET ROLE regress_cdc_bob;
SELECT cdc_create_pipeline('bob_in', 'privileges_shop', '{shop.*}', target_schema => 'privileges_target');
SELECT pipeline, owner FROM pg_stat_cdc_pipeline;
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001
AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
SELECT pipeline FROM pg_stat_cdc_pipeline WHERE pg_temp.leak(pipeline);
SELECT cdc_start_pipeline('ann_in');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_stop_pipeline('ann_in');
SELECT cdc_drop_pipeline('ann_in');
CALL cdc_wait_for_pipeline('ann_in', 'stopped');
SELECT * FROM cdc_bridge.position_1_1;
RESET ROLE;

-- and those of roles whose privileges it has; pg_monitor sees all, but may not touch
INSERT INTO cdc_bridge.position_1_1 VALUES (1, true, 'server-1', 'mysql-bin.000001', 4, '', now());
INSERT INTO cdc_bridge.pipeline_table VALUES (1, 1, 'shop', 'orders', 'privileges_target', 'orders');
SET ROLE regress_cdc_watcher;
SELECT pipeline, owner, applied_offset FROM pg_stat_cdc_pipeline ORDER BY 1;
SELECT pipeline, source_table, state FROM pg_stat_cdc_table;
SELECT pipeline, "offset" FROM cdc_bridge.position;
SELECT cdc_drop_pipeline('ann_in');
RESET ROLE;
SET ROLE regress_cdc_bob;
SELECT pipeline, source_table, state FROM pg_stat_cdc_table;
SELECT pipeline, "offset" FROM cdc_bridge.position;
RESET ROLE;
GRANT regress_cdc_ann TO regress_cdc_bob;
SET ROLE regress_cdc_bob;
SELECT pipeline, owner FROM pg_stat_cdc_pipeline ORDER BY 1;
SELECT pipeline, source_table, state FROM pg_stat_cdc_table;
BEGIN;
SELECT cdc_start_pipeline('ann_in');
SELECT pipeline, state FROM pg_stat_cdc_pipeline ORDER BY 1;
ROLLBACK;
SELECT cdc_drop_pipeline('ann_in');
RESET ROLE;

SET ROLE regress_cdc_bob;
SELECT cdc_drop_pipeline('bob_in');
DROP FUNCTION pg_temp.leak;
RESET ROLE;
DROP SCHEMA privileges_target;
\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
DROP ROLE regress_cdc_ann, regress_cdc_bob, regress_cdc_watcher;
