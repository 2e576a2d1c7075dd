-- Option routes: what is refused when it is given. test/t has it applied to tables.
CREATE EXTENSION cdc_bridge;
CREATE SERVER routes_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1', port '3306');
CREATE USER MAPPING FOR PUBLIC SERVER routes_shop OPTIONS (username 'repl', password 'secret');
CREATE FUNCTION routes(text) RETURNS void LANGUAGE sql AS $$
	SELECT cdc_create_pipeline('routes_in', source => 'routes_shop', tables => '{shop.*}', options => ('{"routes": ' || $1 || '}')::jsonb) $$;

SELECT routes('{"source": "shop.*"}');
\echo :LAST_ERROR_SQLSTATE
SELECT routes('["shop.*"]');
\echo :LAST_ERROR_SQLSTATE
SELECT routes('[{"source": "shop.*"}, {"source": "shop.*", "shema": "x"}]');
SELECT routes('[{"schema": "x"}]');
SELECT routes('[{"source": "shop.*", "merge": "yes"}]');
SELECT routes('[{"source": "shop.*", "source_regex": "shop.*"}]');
SELECT routes('[{"source": 5}]');
SELECT routes('[{"source": ["shop.*", 5]}]');
SELECT routes('[{"source": "shop"}]');
SELECT routes('[{"source": ["!shop.a"]}]');
SELECT routes('[{"source": []}]');
SELECT routes('[{"source": "shop.orders "}]');
SELECT routes('[{"source": "shop.*********************************"}]');
SELECT routes('[{"source_regex": "shop.(orders"}]');
SELECT routes('[{"source_regex": "shop.(orders", "schema": null}]');
SELECT routes('[{"source": "*.*", "schema": 5}]');
SELECT routes('[{"source": "*.*", "schema": ""}]');
SELECT routes('[{"source": "*.*", "case": "title"}]');
SELECT routes('[{"source": "*.*", "table": "$3"}]');
SELECT routes('[{"source": ["*.*", "shop.*"], "table": "$2"}]');
SELECT routes('[{"source": "shop.\\*", "table": "$1"}]');
SELECT routes('[{"source_regex": "(?:shop)\\.(.*)", "table": "$2"}]');
SELECT routes('[{"source": "*.*", "table": "$0"}]');
SELECT routes('[{"source": "*.*", "table": "$99999999999"}]');
SELECT routes('[{"source": "*.*", "table": "a$b"}]');
SELECT routes('[{"source": "*.*", "table": "${1"}]');
SELECT routes('[{"source": "*.*", "table": "a$"}]');
SELECT routes('[{"source": "*.*", "schema": "pg_catalog"}]');
SELECT routes('[{"source": "*.*", "schema": "cdc_bridge"}]');

SELECT routes('[{"source": "shop.*", "schema": "a$$b", "table": "${table}$schema", "case": "upper", "prefix": "p", "suffix": "s"}, {"source_regex": "(?i)(a)|(b)", "table": "$2"}]');
SELECT options FROM cdc_bridge.pipeline;
SELECT cdc_alter_pipeline('routes_in', options => '{"routes": [{"source": "x"}]}');
SELECT cdc_alter_pipeline('routes_in', options => '{"routes": [{"source": "*.*", "schema": "pg_toast"}]}');
SELECT cdc_alter_pipeline('routes_in', options => '{"routes": null}');
SELECT options FROM cdc_bridge.pipeline;

-- rights: where routes lead, not where the tables would go without
CREATE ROLE regress_cdc_router LOGIN;
CREATE SCHEMA routed AUTHORIZATION regress_cdc_router;
REVOKE CREATE ON DATABASE contrib_regression FROM PUBLIC;
GRANT USAGE ON FOREIGN SERVER routes_shop TO regress_cdc_router;
GRANT EXECUTE ON FUNCTION cdc_create_pipeline, cdc_add_table TO regress_cdc_router;
SET ROLE regress_cdc_router;
SELECT cdc_create_pipeline('routed_in', source => 'routes_shop', tables => '{shop.orders}', options => '{"routes": [{"source": "shop.o*", "schema": "routed"}]}');
SELECT cdc_add_table('routed_in', 'shop.items');
SELECT cdc_create_pipeline('elsewhere_in', source => 'routes_shop', tables => '{shop.orders}', options => '{"routes": [{"source": "shop.*", "schema": "nowhere"}]}');
RESET ROLE;

SELECT cdc_drop_pipeline('routes_in'), cdc_drop_pipeline('routed_in');
DROP FUNCTION routes;
SET client_min_messages = warning;
DROP EXTENSION cdc_bridge CASCADE;
DROP SCHEMA routed;
DROP ROLE regress_cdc_router;
