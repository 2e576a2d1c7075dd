-- cdc_add_table, cdc_remove_table, cdc_resync_table: messages, the list of patterns, ROLLBACK, rights.
CREATE EXTENSION cdc_bridge;
CREATE SERVER table_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR PUBLIC SERVER table_shop OPTIONS (username 'repl', password 'secret');
CREATE ROLE regress_cdc_carol LOGIN;
CREATE VIEW list AS SELECT tables FROM cdc_bridge.pipeline;

-- what cannot be
SELECT cdc_add_table('nowhere', 'shop.a');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_add_table(NULL, 'shop.a');
SELECT cdc_create_pipeline('only_out', 'table_shop', '{!shop.a}', target_schema => 'public');
SELECT cdc_create_pipeline('bad', 'table_shop', '{shop.*,!shop}', target_schema => 'public');
SELECT cdc_create_pipeline('shop_in', 'table_shop', '{shop.a,shop.b}', target_schema => 'public');
SELECT cdc_add_table('shop_in', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_add_table('shop_in', 'shop');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_add_table('shop_in', '!shop.a');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_remove_table('shop_in', 'shop.c');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_remove_table('shop_in', 'shop.*');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_remove_table('shop_in', '!shop.a');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_resync_table('shop_in', 'shop.a');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM list;

-- the list
SELECT cdc_add_table('shop_in', 'shop.c');
SELECT cdc_add_table('shop_in', 'shop.c');
SELECT * FROM list;
SELECT cdc_add_table('shop_in', 'shop.*');
SELECT cdc_add_table('shop_in', 'shop.*');
SELECT * FROM list;
\set VERBOSITY terse
SELECT cdc_remove_table('shop_in', 'shop.c');
SELECT * FROM list;
SELECT cdc_remove_table('shop_in', 'shop.d');
SELECT * FROM list;
SELECT cdc_add_table('shop_in', 'shop.d');
SELECT * FROM list;
SELECT cdc_remove_table('shop_in', '!shop.c');
SELECT cdc_remove_table('shop_in', 'shop.a');
SELECT cdc_remove_table('shop_in', 'shop.b');
SELECT cdc_remove_table('shop_in', '!shop.a');
SELECT cdc_remove_table('shop_in', '!shop.b');
SELECT * FROM list;
\set VERBOSITY default
SELECT cdc_remove_table('shop_in', 'shop.*');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_drop_pipeline('shop_in');

-- a name with the characters that mean something; a pattern that leaves several out
SELECT cdc_create_pipeline('shop_in', 'table_shop', '{shop.*,!shop.tmp_*}', target_schema => 'public');
\set VERBOSITY terse
SELECT cdc_remove_table('shop_in', 'shop.a\*b');
SELECT * FROM list;
SELECT cdc_add_table('shop_in', 'shop.a\*b');
SELECT * FROM list;
\set VERBOSITY default
SELECT cdc_add_table('shop_in', 'shop.tmp_1');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
SELECT cdc_add_table('shop_in', 'shop.tmp_*');
SELECT * FROM list;
\set VERBOSITY default

-- tables of a pipeline that has some: they leave, or are to be copied anew; ROLLBACK undoes it
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, n, 'shop', 't' || n, 'public', 't' || n
FROM cdc_bridge.pipeline, generate_series(1, 3) n;
INSERT INTO cdc_bridge.table_state (pipeline_id, table_id, state, generation, target, row_estimate, rows_copied, chunks)
SELECT pipeline_id, n, 'streaming', 1, 0, 0, 0, 0 FROM cdc_bridge.pipeline, generate_series(1, 3) n;
CREATE VIEW tables AS SELECT t.source_table, s.resync_wanted, p.tables_asked - p.tables_done > 0 AS asked
FROM cdc_bridge.table_state s JOIN cdc_bridge.pipeline_state p USING (pipeline_id) LEFT JOIN cdc_bridge.pipeline_table t USING (pipeline_id, table_id)
ORDER BY table_id;
UPDATE cdc_bridge.pipeline_state SET tables_done = tables_asked;
SELECT cdc_add_table('shop_in', 'shop.t1');
BEGIN;
\set VERBOSITY terse
SELECT cdc_resync_table('shop_in', 'shop.t1');
SELECT cdc_remove_table('shop_in', 'shop.t2');
SELECT * FROM tables;
ROLLBACK;
UPDATE cdc_bridge.pipeline_state SET tables_done = tables_asked;
SELECT * FROM tables;
SELECT * FROM list;
SELECT cdc_resync_table('shop_in', 'shop.t*');
SELECT * FROM tables;
\set VERBOSITY default

-- rights
SET ROLE regress_cdc_carol;
SELECT cdc_add_table('shop_in', 'shop.x');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_remove_table('shop_in', 'shop.x');
SELECT cdc_resync_table('shop_in', 'shop.t1');
RESET ROLE;
GRANT EXECUTE ON FUNCTION cdc_add_table, cdc_remove_table, cdc_resync_table TO regress_cdc_carol;
SET ROLE regress_cdc_carol;
SELECT cdc_add_table('shop_in', 'shop.x');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_remove_table('shop_in', 'shop.x');
SELECT cdc_resync_table('shop_in', 'shop.t1');
RESET ROLE;
SELECT cdc_drop_pipeline('shop_in');
SELECT * FROM tables;

DROP VIEW list, tables;
DROP EXTENSION cdc_bridge CASCADE;
DROP ROLE regress_cdc_carol;
