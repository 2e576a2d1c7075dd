-- cdc_check: this server, and servers that cannot be asked.
CREATE EXTENSION cdc_bridge;

-- the limit of origins has another name from PostgreSQL 18 on
SELECT CASE WHEN "check" IN ('max_replication_slots', 'max_active_replication_origins') THEN 'origins' ELSE "check" END AS "check",
	status IN ('ok', 'warning') AS fine, detail IS NOT NULL AS has_detail, hint IS NULL OR status <> 'ok' AS hint_fits
FROM cdc_check();
SELECT detail FROM cdc_check() WHERE "check" IN ('shared_preload_libraries', 'encoding');

SELECT * FROM cdc_check('nowhere');
\echo :LAST_ERROR_SQLSTATE
CREATE FOREIGN DATA WRAPPER check_other;
CREATE SERVER check_other FOREIGN DATA WRAPPER check_other;
SELECT * FROM cdc_check('check_other');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER check_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host '127.0.0.1', port '1', connect_timeout '2');
CREATE ROLE regress_cdc_check SUPERUSER LOGIN;
SET ROLE regress_cdc_check;
SELECT * FROM cdc_check('check_shop');
\echo :LAST_ERROR_SQLSTATE
CREATE USER MAPPING FOR regress_cdc_check SERVER check_shop OPTIONS (username 'repl', password 'secret');

-- nobody listens at that port: a line, not an error
SELECT "check", status, detail IS NOT NULL AS has_detail FROM cdc_check('check_shop') WHERE status = 'error';
SELECT count(*) FROM cdc_check('check_shop') WHERE detail LIKE '%secret%' OR hint LIKE '%secret%';

-- one pipeline
SELECT * FROM cdc_check_pipeline('nothing');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('check_in', source => 'check_shop', tables => '{shop.*}');
SELECT CASE WHEN "check" IN ('max_replication_slots', 'max_active_replication_origins') THEN 'origins' ELSE "check" END AS "check", status, hint
FROM cdc_check_pipeline('check_in') WHERE "check" <> 'max_worker_processes';
SELECT detail FROM cdc_check_pipeline('check_in') WHERE "check" IN ('state', 'role', 'server', 'tables');
-- its tables, when one of them is gone and one came with a dump
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, n, 'shop', 't' || n, 'shop', 't' || n FROM cdc_bridge.pipeline, generate_series(1, 3) n;
INSERT INTO cdc_bridge.table_state (pipeline_id, table_id, state, generation, target, definition, row_estimate, rows_copied, chunks, last_error, last_error_hint)
	SELECT pipeline_id, n, CASE n WHEN 2 THEN 'stopped' ELSE 'streaming' END, 1, 1, '{}', 0, 0, 0, CASE n WHEN 2 THEN 'it broke' END, CASE n WHEN 2 THEN 'Mend it.' END
	FROM cdc_bridge.pipeline, generate_series(1, 2) n;
SELECT "check", status, detail, hint FROM cdc_check_pipeline('check_in') WHERE "check" LIKE 'table%';
-- a source that its owner may not use any more
DROP USER MAPPING FOR regress_cdc_check SERVER check_shop;
SELECT "check", status, detail FROM cdc_check_pipeline('check_in') WHERE "check" IN ('server', 'connection', 'position');
SELECT cdc_drop_pipeline('check_in');
RESET ROLE;

\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
DROP FOREIGN DATA WRAPPER check_other CASCADE;
DROP ROLE regress_cdc_check;
