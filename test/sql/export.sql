-- Outgoing pipelines: their servers, their options, which tables they take. Nothing runs here: test/t has pipelines that ship.
CREATE EXTENSION cdc_bridge;

-- servers
CREATE SERVER export_files FOREIGN DATA WRAPPER cdc_file;
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER export_files FOREIGN DATA WRAPPER cdc_file OPTIONS (directory 'here');
CREATE SERVER export_files FOREIGN DATA WRAPPER cdc_file OPTIONS (directory '/tmp/export', directroy '/tmp');
CREATE SERVER export_files FOREIGN DATA WRAPPER cdc_file OPTIONS (directory '/tmp/export', file_max_kb '0');
CREATE SERVER export_files FOREIGN DATA WRAPPER cdc_file OPTIONS (directory '/tmp/export', file_max_kb '1024');
CREATE USER MAPPING FOR PUBLIC SERVER export_files OPTIONS (username 'me');
CREATE SERVER export_null FOREIGN DATA WRAPPER cdc_null OPTIONS (directory '/tmp');
CREATE SERVER export_null FOREIGN DATA WRAPPER cdc_null;
CREATE SERVER export_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');

-- sides
SELECT cdc_create_pipeline('shop_out', sink => 'export_shop', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('shop_in', source => 'export_files', tables => '{shop.*}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', target_schema => 'elsewhere');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files');

-- options
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"batch_max_ms": 20}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"format": "avro"}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"flush_max_ms": -1}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"actions": "insert,upsert"}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"schemas": true, "numeric": "number"}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"publication_names": "a b"}');
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"streaming": true}');
SELECT name, "default", description FROM cdc_list_options() WHERE kind = 'pipeline' AND subject = 'outgoing' ORDER BY name COLLATE "C";
SELECT name, "default", description FROM cdc_list_options() WHERE kind = 'server' AND subject IN ('cdc_file', 'cdc_null') ORDER BY name COLLATE "C";

-- tables: what tells which row a change means
CREATE SCHEMA shop;
CREATE TABLE shop.keyless (n int);
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE shop.keyless REPLICA IDENTITY NOTHING;
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}');
ALTER TABLE shop.keyless REPLICA IDENTITY FULL;
CREATE TABLE shop.chosen (n int NOT NULL UNIQUE);
ALTER TABLE shop.chosen REPLICA IDENTITY USING INDEX chosen_n_key;
CREATE UNLOGGED TABLE shop.not_logged (n int);
SELECT cdc_create_pipeline('shop_out', sink => 'export_files', tables => '{shop.*}', options => '{"format": "json"}');
SELECT name, source, sink, tables, options FROM cdc_bridge.pipeline;

-- what is for pipelines with a source
SELECT cdc_set_position('shop_out', at => '{}');
SELECT cdc_verify('shop_out');

-- who may
CREATE ROLE regress_cdc_reader;
GRANT USAGE ON SCHEMA shop TO regress_cdc_reader;
GRANT EXECUTE ON FUNCTION cdc_create_pipeline, cdc_drop_pipeline TO regress_cdc_reader;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.*}');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER export_null TO regress_cdc_reader;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.*}');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT SELECT ON ALL TABLES IN SCHEMA shop TO regress_cdc_reader;
CREATE TABLE shop.wide (id int PRIMARY KEY, "A b" text, c text);
GRANT SELECT (id) ON shop.wide TO regress_cdc_reader;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.*}');
RESET ROLE;
GRANT SELECT ON shop.wide TO regress_cdc_reader;
ALTER TABLE shop.wide ENABLE ROW LEVEL SECURITY;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.*}');
RESET ROLE;
ALTER TABLE shop.wide DISABLE ROW LEVEL SECURITY;

-- partitions under the name of their root: whose rights count
CREATE TABLE shop.parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE shop.parted_1 PARTITION OF shop.parted FOR VALUES FROM (0) TO (10);
GRANT SELECT ON shop.parted TO regress_cdc_reader;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.parted*}');
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.parted*}', options => '{"publish_via_partition_root": true}');
SELECT cdc_drop_pipeline('other_out');
RESET ROLE;
GRANT SELECT ON shop.parted_1 TO regress_cdc_reader;
SET ROLE regress_cdc_reader;
SELECT cdc_create_pipeline('other_out', sink => 'export_null', tables => '{shop.*}');
SELECT pipeline, owner, sink, state, slot_name FROM pg_stat_cdc_export;
RESET ROLE;
SELECT pipeline, owner, sink, state, slot_name FROM pg_stat_cdc_export ORDER BY pipeline;
SELECT cdc_drop_pipeline('other_out');
SELECT cdc_drop_pipeline('shop_out');
DROP SCHEMA shop CASCADE;
DROP OWNED BY regress_cdc_reader;
DROP ROLE regress_cdc_reader;
DROP EXTENSION cdc_bridge CASCADE;
