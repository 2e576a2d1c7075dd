-- cdc_create_pipeline, cdc_start_pipeline, cdc_stop_pipeline, cdc_drop_pipeline: messages, ROLLBACK.
-- Nothing is started and committed here: no worker is to look for a server that does not exist.
CREATE EXTENSION cdc_bridge;
CREATE SERVER pipeline_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306');
CREATE FOREIGN DATA WRAPPER pipeline_other;
CREATE SERVER pipeline_other FOREIGN DATA WRAPPER pipeline_other;

-- no user mapping yet
CREATE ROLE regress_cdc_owner SUPERUSER;
SET ROLE regress_cdc_owner;
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
CREATE USER MAPPING FOR CURRENT_USER SERVER pipeline_shop OPTIONS (username 'repl', password 'secret');

-- definitions that are wrong or incomplete
SELECT cdc_create_pipeline(NULL, source => 'pipeline_shop', tables => '{shop.*}');
SELECT cdc_create_pipeline('', source => 'pipeline_shop', tables => '{shop.*}');
SELECT cdc_create_pipeline(repeat('x', 64), source => 'pipeline_shop', tables => '{shop.*}');
SELECT cdc_create_pipeline('shop_in');
SELECT cdc_create_pipeline('shop_in', source => 'shp', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_other', tables => '{shop.*}');
SELECT cdc_create_pipeline('shop_in', source => '{s1,s2}', tables => '{shop.*}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{orders}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*,.x}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*,NULL}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*}', target_schema => 'cdc_bridge');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{information_schema.*}');
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*}', target_schema => '');

-- sinks
SELECT cdc_create_pipeline('shop_out', sink => 'lake', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('shop_out', source => 'pipeline_shop', sink => 'lake', tables => '{shop.*}');

-- pipelines that do not exist
SELECT cdc_start_pipeline('shop_in');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_stop_pipeline('shop_in');
SELECT cdc_drop_pipeline('shop_in');

-- create, and what there is then
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*,shop2.ord?rs}', target_schema => 'target',
	options => '{"batch_max_ms": 50}');
SELECT pipeline, pipeline_id, owner, source, state, ingest_pid, tables, lag, applied_file, transactions, last_error
FROM pg_stat_cdc_pipeline;
SELECT name, owner, source, sink, tables, target_schema, options FROM cdc_bridge.pipeline;
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'cdc_bridge' AND relname LIKE 'position\_%' ORDER BY 1;
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_start_pipeline('shop_in', source => 'pipeline_shop', tables => '{shop.*}');
SELECT cdc_stop_pipeline('shop_in');

-- a definition made and started in one go leaves nothing after ROLLBACK
BEGIN;
SELECT cdc_start_pipeline('other', source => 'pipeline_shop', tables => '{other.*}');
SELECT cdc_start_pipeline('other');
SELECT pipeline, pipeline_id, state FROM pg_stat_cdc_pipeline ORDER BY 2;
SELECT cdc_stop_pipeline('other');
SELECT pipeline, pipeline_id, state FROM pg_stat_cdc_pipeline ORDER BY 2;
ROLLBACK;
SELECT pipeline, state FROM pg_stat_cdc_pipeline;
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'cdc_bridge' AND relname LIKE 'position\_%' ORDER BY 1;

-- nor does a drop
BEGIN;
SELECT cdc_drop_pipeline('shop_in');
SELECT count(*) FROM pg_stat_cdc_pipeline;
SELECT cdc_create_pipeline('shop_in', source => 'pipeline_shop', tables => '{new.*}');
SAVEPOINT s;
SELECT cdc_start_pipeline('shop_in');
ROLLBACK TO s;
SELECT pipeline, state FROM pg_stat_cdc_pipeline;
ROLLBACK;
SELECT name, tables FROM cdc_bridge.pipeline;
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'cdc_bridge' AND relname LIKE 'position\_%';

-- not in a read-only transaction
BEGIN READ ONLY;
SELECT cdc_drop_pipeline('shop_in');
ROLLBACK;

-- a pipeline as a dump brings it: stopped, and complete again when it is started
DELETE FROM cdc_bridge.pipeline_state;
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 1, 'shop', 'orders', 'shop', 'orders' FROM cdc_bridge.pipeline;
SELECT pipeline, state, tables, tables_stopped FROM pg_stat_cdc_pipeline;
BEGIN;
SELECT cdc_start_pipeline('shop_in');
SELECT pipeline, state, tables FROM pg_stat_cdc_pipeline;
ROLLBACK;

-- a position as the worker writes it
INSERT INTO cdc_bridge.position_1_1 VALUES
	(1, true, 'server-1', 'mysql-bin.000001', 4, '', now()),
	(2, false, 'server-1', 'mysql-bin.000001', 99, NULL, now());
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;
INSERT INTO cdc_bridge.position_1_2 VALUES
	(3, true, 'server-1', 'mysql-bin.000002', 4, '0-1-5', now()),
	(4, false, 'server-1', 'mysql-bin.000002', 77, '0-1-6,1-2-3', now());
SELECT pipeline, identity, file, "offset", gtids FROM cdc_bridge.position;
SELECT pipeline, applied_file, applied_offset, applied_gtids FROM pg_stat_cdc_pipeline;

SELECT cdc_drop_pipeline('shop_in');
SELECT (SELECT count(*) FROM cdc_bridge.pipeline) AS pipelines, (SELECT count(*) FROM cdc_bridge.pipeline_state) AS states,
	(SELECT count(*) FROM cdc_bridge.pipeline_table) AS tables;
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'cdc_bridge' AND relname LIKE 'position\_%';

RESET ROLE;
\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
DROP FOREIGN DATA WRAPPER pipeline_other CASCADE;
DROP ROLE regress_cdc_owner;
