-- Options of servers, user mappings and pipelines: errors name the valid ones, the nearest first.
CREATE EXTENSION cdc_bridge;

CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (hots 'db1');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port 'many');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '0');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (port '99999999999999999999');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (sslmode 'prefer');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (heartbeat_interval '5');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (get_server_public_key 'perhaps');
-- lists of hosts: one port for all of them, or one for each
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1,,db2');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1,db2', port '3306,3307,3308');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306,3307');
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1,db2', port '3306,70000');
CREATE SERVER options_hosts FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1, db2,db3', port '3306', failover_delay '0');
ALTER SERVER options_hosts OPTIONS (SET port '3306,3307');
ALTER SERVER options_hosts OPTIONS (SET port '3306, 3307,3308');
DROP SERVER options_hosts;
-- an option of the user mapping
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', password 'secret');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER options_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3307', sslmode 'verify-full');
ALTER SERVER options_shop OPTIONS (SET port '-1');
ALTER SERVER options_shop OPTIONS (SET port '3308', ADD server_id '77');

CREATE USER MAPPING FOR CURRENT_USER SERVER options_shop OPTIONS (usr 'repl');
CREATE USER MAPPING FOR CURRENT_USER SERVER options_shop OPTIONS (username 'repl', host 'db1');
CREATE USER MAPPING FOR CURRENT_USER SERVER options_shop OPTIONS (username 'repl', password 'secret');

-- nothing on the wrapper itself, and no foreign tables
ALTER FOREIGN DATA WRAPPER cdc_mysql OPTIONS (ADD host 'db1');
CREATE FOREIGN TABLE options_table (a integer) SERVER options_shop;

-- pipelines
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_chunk_row": 5}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_chunk_rows": 0}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_chunk_rows": 1.5}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_chunk_rows": [5]}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_chunk_rows": null}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"tinyint1_as_boolean": "maybe"}');
-- policies: words, and JSON's null where "null" is one of them
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"zero_dates": "null"}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"zero_date": "replace"}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"nul_bytes": "null"}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"nul_bytes": null}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"invalid_bytes": true}');
-- schema changes: words, and kinds in arrays
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"schema_changes": "follow"}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"schema_changes_exclude": "drop_column"}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"schema_changes_exclude": ["drop_column", "drop_colum"]}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"schema_changes_include": [5]}');
\echo :LAST_ERROR_SQLSTATE
-- the start of a pipeline
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot": "schema-only"}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"on_existing": null}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"snapshot_workers": 17}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"on_existing": "truncate", "snapshot": "never"}');
\echo :LAST_ERROR_SQLSTATE
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '[]');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}', options => '{"a": {"snapshot_chunk_rows": 5}}');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}',
	options => '{"snapshot_chunk_rows": 500, "batch_max_ms": "50", "tinyint1_as_boolean": true}');
SELECT cdc_drop_pipeline('options');
SELECT cdc_create_pipeline('options', 'options_shop', '{shop.*}',
	options => '{"zero_date": null, "nul_bytes": "strip", "invalid_bytes": "replace"}');
SELECT cdc_drop_pipeline('options');

-- file names on the database server are for superusers
CREATE ROLE regress_cdc_options;
GRANT USAGE ON FOREIGN DATA WRAPPER cdc_mysql TO regress_cdc_options;
SET ROLE regress_cdc_options;
CREATE SERVER options_own FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', ssl_ca '/etc/passwd');
\echo :LAST_ERROR_SQLSTATE
CREATE SERVER options_own FOREIGN DATA WRAPPER cdc_mysql OPTIONS (socket '/run/mysqld/mysqld.sock');
CREATE SERVER options_own FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR regress_cdc_options SERVER options_own OPTIONS (username 'repl', password_file '/etc/passwd');
DROP SERVER options_own;
RESET ROLE;
REVOKE USAGE ON FOREIGN DATA WRAPPER cdc_mysql FROM regress_cdc_options;
DROP ROLE regress_cdc_options;

SELECT kind, subject, name, type, "default", allowed, unit FROM cdc_list_options();
SELECT count(*) FROM cdc_list_options() WHERE coalesce(description, '') = '';

\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
