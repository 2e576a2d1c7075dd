-- cdc_alter_pipeline: what it changes, what it refuses. Nothing runs here: test/t has a running pipeline take a change up.
CREATE EXTENSION cdc_bridge;
CREATE SERVER alter_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306');
CREATE SERVER alter_other FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db2', port '3306');
CREATE USER MAPPING FOR PUBLIC SERVER alter_shop OPTIONS (username 'repl', password 'secret');
SELECT cdc_create_pipeline('shop_in', source => 'alter_shop', tables => '{shop.*}', options => '{"batch_max_ms": 50, "zero_date": null}');
CREATE VIEW alter_definition AS SELECT name, source, target_schema, options FROM cdc_bridge.pipeline;

-- NULL leaves everything as it is
SELECT cdc_alter_pipeline('shop_in');
SELECT * FROM alter_definition;
SELECT cdc_alter_pipeline(NULL);
SELECT cdc_alter_pipeline('nothing');
\echo :LAST_ERROR_SQLSTATE

-- options are merged; a JSON null takes one out, the word null is a value
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_rows": 10}');
SELECT options FROM alter_definition;
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": null, "zero_date": "null"}');
SELECT options FROM alter_definition;
SELECT cdc_alter_pipeline('shop_in', options => '{"zero_date": null, "batch_max_rows": null, "nul_bytes": null}');
SELECT options FROM alter_definition;
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max": null}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": -1}');
SELECT cdc_alter_pipeline('shop_in', options => '[1]');
SELECT cdc_alter_pipeline('shop_in', options => '{"tinyint1_as_boolean": true}');

-- where it goes, where it comes from
SELECT cdc_alter_pipeline('shop_in', target_schema => 'cdc_bridge');
SELECT cdc_alter_pipeline('shop_in', target_schema => 'elsewhere');
SELECT cdc_alter_pipeline('shop_in', source => 'nowhere');
SELECT cdc_alter_pipeline('shop_in', source => 'alter_other');
CREATE USER MAPPING FOR PUBLIC SERVER alter_other OPTIONS (username 'repl', password 'secret');
SELECT cdc_alter_pipeline('shop_in', source => 'alter_other');
SELECT * FROM alter_definition;

-- with tables that exist
BEGIN;
INSERT INTO cdc_bridge.pipeline_table SELECT pipeline_id, 1, 'shop', 'orders', 'shop', 'orders' FROM cdc_bridge.pipeline;
SELECT cdc_alter_pipeline('shop_in', target_schema => 'later', options => '{"tinyint1_as_boolean": false, "secondary_indexes": "none"}');
ROLLBACK;

-- the owner
CREATE ROLE regress_cdc_carl LOGIN;
CREATE ROLE regress_cdc_dora LOGIN;
GRANT EXECUTE ON FUNCTION cdc_alter_pipeline, cdc_create_pipeline TO regress_cdc_carl, regress_cdc_dora;
SELECT cdc_alter_pipeline('shop_in', owner => 'regress_cdc_carl');
\echo :LAST_ERROR_SQLSTATE
GRANT USAGE ON FOREIGN SERVER alter_other TO regress_cdc_carl;
SELECT cdc_alter_pipeline('shop_in', owner => 'regress_cdc_carl');
SELECT owner FROM cdc_bridge.pipeline;
SELECT cdc_alter_pipeline('shop_in', owner => 1::oid::regrole);
SET ROLE regress_cdc_dora;
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": 1}');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SET ROLE regress_cdc_carl;
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": 1}');
SELECT cdc_alter_pipeline('shop_in', owner => 'regress_cdc_dora');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- ROLLBACK
BEGIN;
SELECT cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": 2}', target_schema => 'gone');
ROLLBACK;
SELECT * FROM alter_definition;

SELECT cdc_drop_pipeline('shop_in');
DROP VIEW alter_definition;
SET client_min_messages = warning;
DROP EXTENSION cdc_bridge CASCADE;
DROP ROLE regress_cdc_carl, regress_cdc_dora;
