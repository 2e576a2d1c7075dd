-- Option column_types: what is refused when it is given. test/t has it applied to tables.
CREATE EXTENSION cdc_bridge;
CREATE SERVER types_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306');
CREATE USER MAPPING FOR PUBLIC SERVER types_shop OPTIONS (username 'repl', password 'secret');
CREATE FUNCTION types(text) RETURNS void LANGUAGE sql AS $$
	SELECT cdc_create_pipeline('types_in', source => 'types_shop', tables => '{shop.*}', options => ('{"column_types": ' || $1 || '}')::jsonb) $$;
CREATE DOMAIN public.amount AS numeric(10, 2);

SELECT types('"text"');
\echo :LAST_ERROR_SQLSTATE
SELECT types('null');
SELECT types('["shop.orders.flags"]');
SELECT types('{"shop.orders": "text"}');
\echo :LAST_ERROR_SQLSTATE
SELECT types('{"shop.orders.flags.x": "text"}');
SELECT types('{"shop..flags": "text"}');
SELECT types('{"shop.orders.flags": 1}');
SELECT types('{"shop.orders.flags": "nosuchtype"}');
SELECT types('{"shop.orders.flags": "amount"}');
SELECT types('{"shop.orders.flags": "anyelement"}');
\set VERBOSITY sqlstate
SELECT types('{"shop.orders.flags": "text; DROP TABLE x"}');
\set VERBOSITY default
\echo :LAST_ERROR_SQLSTATE
SELECT types('{"shop.orders.flags": "text", "shop.*.status": "varchar(20)", "*.*.is\\_*": "boolean", "a\\.b.c.d": "public.amount"}');
SELECT options FROM cdc_bridge.pipeline;
SELECT cdc_alter_pipeline('types_in', options => '{"column_types": {"shop.orders.flags": "nosuchtype"}}');
SELECT cdc_alter_pipeline('types_in', options => '{"column_types": {"*.*.*": "text"}}');
SELECT options FROM cdc_bridge.pipeline;
SELECT cdc_alter_pipeline('types_in', options => '{"column_types": null}');
SELECT options FROM cdc_bridge.pipeline;
SELECT type, "default", allowed FROM cdc_list_options() WHERE name = 'column_types';

SELECT cdc_drop_pipeline('types_in');
DROP FUNCTION types;
DROP DOMAIN amount;
SET client_min_messages = warning;
DROP EXTENSION cdc_bridge CASCADE;
