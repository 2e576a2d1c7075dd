-- cdc_verify and its sisters, without any worker: rights, arguments, errors.
CREATE EXTENSION cdc_bridge;
CREATE ROLE regress_cdc_ann LOGIN;
CREATE ROLE regress_cdc_bob LOGIN;
CREATE ROLE regress_cdc_watcher IN ROLE pg_monitor;
CREATE SERVER verify_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR PUBLIC SERVER verify_shop OPTIONS (username 'repl', password 'secret');
GRANT USAGE ON FOREIGN SERVER verify_shop TO regress_cdc_ann;
CREATE SCHEMA verify_target;
GRANT CREATE ON SCHEMA verify_target TO regress_cdc_ann;
GRANT EXECUTE ON FUNCTION cdc_create_pipeline TO regress_cdc_ann;
SET ROLE regress_cdc_ann;
SELECT cdc_create_pipeline('ann_in', 'verify_shop', '{shop.*}', target_schema => 'verify_target');
RESET ROLE;
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 1, 'shop', 'orders', 'verify_target', 'orders' FROM cdc_bridge.pipeline;
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 2, 'shop', 'items', 'verify_target', 'items' FROM cdc_bridge.pipeline;

-- not for everybody
SET ROLE regress_cdc_ann;
SELECT cdc_verify('ann_in');
SELECT cdc_cancel_verify(1);
SELECT * FROM cdc_verify_differences(1);
RESET ROLE;
GRANT EXECUTE ON FUNCTION cdc_verify, cdc_cancel_verify, cdc_verify_differences TO regress_cdc_ann, regress_cdc_bob, regress_cdc_watcher;
SET ROLE regress_cdc_bob;
SELECT cdc_verify('ann_in');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- arguments
SELECT cdc_verify(NULL);
SELECT cdc_verify('nobody_in');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_verify('ann_in', mode => 'quick');
SELECT cdc_verify('ann_in', '{}');
SELECT cdc_verify('ann_in', '{shop.orders,NULL}');
SELECT cdc_verify('ann_in', '{shop.orders,shop.payment}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_cancel_verify(NULL);
SELECT cdc_cancel_verify(99);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM cdc_verify_differences(99);
CALL cdc_wait_for_verify(99);
CALL cdc_wait_for_verify(NULL);

-- the owner's request, which waits because the pipeline is stopped; ROLLBACK undoes it
SET ROLE regress_cdc_ann;
BEGIN;
SELECT cdc_verify('ann_in') AS request;
CALL cdc_wait_for_verify(1);
ROLLBACK;
SELECT * FROM pg_stat_cdc_verify;
SELECT cdc_verify('ann_in', '{shop.o*}', 'sample') AS request;
SELECT request, pipeline, mode, request_state, source_table, state, pid, requested_by FROM pg_stat_cdc_verify;
CALL cdc_wait_for_verify(2);
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM cdc_verify_differences(2);
RESET ROLE;

-- who sees what: a monitor the counts, but no key of a row
SET ROLE regress_cdc_bob;
SELECT count(*) FROM pg_stat_cdc_verify;
SELECT * FROM cdc_verify_differences(2);
SELECT cdc_cancel_verify(2);
CALL cdc_wait_for_verify(2);
RESET ROLE;
SET ROLE regress_cdc_watcher;
SELECT count(*) FROM pg_stat_cdc_verify;
SELECT * FROM cdc_verify_differences(2);
RESET ROLE;

-- cancelled once
SET ROLE regress_cdc_ann;
SELECT cdc_cancel_verify(2);
SELECT cdc_cancel_verify(2);
SELECT request_state, state, finished_at IS NOT NULL AS finished FROM pg_stat_cdc_verify;
CALL cdc_wait_for_verify(2);
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- results, as a worker leaves them
INSERT INTO cdc_bridge.verify_table SELECT pipeline_id, 2, 1, 'shop', 'orders', 'verify_target', 'orders', 'done', NULL, 10, 10, 1, 1, 1, 0, 1, 0, 10, 'rows', 'bl.000001', 1234, now(), now()
	FROM cdc_bridge.pipeline;
INSERT INTO cdc_bridge.verify_difference SELECT pipeline_id, 2, 1, n, kind, key::text[], columns::text[], 1 FROM cdc_bridge.pipeline,
	(VALUES (1, 'missing', '{1}', NULL), (2, 'extra', '{2}', NULL), (3, 'different', '{3}', '{a,"b c"}')) AS v(n, kind, key, columns);
SELECT source_table, state, rows_source, rows_target, missing, extra, different, unsettled, position_file, position_offset FROM pg_stat_cdc_verify;
SELECT * FROM cdc_verify_differences(2);

-- a request that failed says why
UPDATE cdc_bridge.verify_request SET state = 'failed', last_error = 'something went wrong',
	last_error_sqlstate = '55000', last_error_hint = 'Look into the log.';
CALL cdc_wait_for_verify(2);

-- not dumped, and gone with the pipeline
SELECT count(*) FROM pg_extension, unnest(extconfig) AS c WHERE c::regclass::text LIKE '%verify%';
SELECT cdc_drop_pipeline('ann_in');
SELECT (SELECT count(*) FROM cdc_bridge.verify_request) + (SELECT count(*) FROM cdc_bridge.verify_table) +
	(SELECT count(*) FROM cdc_bridge.verify_difference) AS left_over;

DROP EXTENSION cdc_bridge CASCADE;
DROP SCHEMA verify_target;
DROP ROLE regress_cdc_ann, regress_cdc_bob, regress_cdc_watcher;
