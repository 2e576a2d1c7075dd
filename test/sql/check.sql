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
CREATE ROLE regress_cdc_check SUPERUSER;
SET ROLE regress_cdc_check;
SELECT * FROM cdc_check('check_shop');
\echo :LAST_ERROR_SQLSTATE
CREATE USER MAPPING FOR regress_cdc_check SERVER check_shop OPTIONS (username 'repl', password 'secret');

-- nobody listens at that port: a line, not an error
SELECT "check", status, detail IS NOT NULL AS has_detail FROM cdc_check('check_shop') WHERE status = 'error';
SELECT count(*) FROM cdc_check('check_shop') WHERE detail LIKE '%secret%' OR hint LIKE '%secret%';
RESET ROLE;

\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
DROP FOREIGN DATA WRAPPER check_other CASCADE;
DROP ROLE regress_cdc_check;
