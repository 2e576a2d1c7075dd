-- Option transforms: what is refused when it is given.
CREATE EXTENSION cdc_bridge;
CREATE SERVER transforms_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'localhost');
CREATE USER MAPPING FOR CURRENT_USER SERVER transforms_shop OPTIONS (username 'u');
CREATE FUNCTION pg_temp.try(transforms text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text; detail text; hint text; context text;
BEGIN
	PERFORM cdc_create_pipeline('transforms', 'transforms_shop', '{shop.*}', options => jsonb_build_object('transforms', transforms::jsonb));
	PERFORM cdc_drop_pipeline('transforms');
	RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
	RETURN concat_ws(E'\n', message, detail, hint, CASE WHEN context LIKE '% of member %' THEN split_part(context, E'\n', 1) END);
END
$$;
\pset format unaligned
\pset tuples_only on

-- the form of the option
SELECT pg_temp.try('{}');
SELECT pg_temp.try('["shop.*"]');
SELECT pg_temp.try('[{"filter": "true"}]');
SELECT pg_temp.try('[{"tables": "orders"}]');
SELECT pg_temp.try('[{"tables": []}]');
SELECT pg_temp.try('[{"tables": ["!shop.a", "!shop.b"]}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": ""}]');
SELECT pg_temp.try('[{"tables": ["shop.a", 1]}]');
SELECT pg_temp.try('[{"tables": "shop.a", "where": "true"}]');
SELECT pg_temp.try('[{"tables": "shop.a"}, {"tables": "shop.b", "filter": 5}]');
SELECT pg_temp.try('[{"tables": "shop.a", "key": "id"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "partition_key": ["id"]}]');

-- what stands in a projection
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a,"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a FROM b"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a; DROP TABLE b"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "DISTINCT a"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a + 1"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "*, *"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a.*"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "a, b AS a"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "(SELECT 1) AS a"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "projection": "upper((SELECT x FROM y)) AS a"}]');

-- and in a filter
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "a = "}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "a = 1, b"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "a = 1 AS b"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "*"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "EXISTS (SELECT 1)"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "filter": "a IN (1, 2) ORDER BY 1"}]');

SELECT pg_temp.try('[{"tables": "shop.a", "soft_delete": true}]');

-- kinds of targets
SELECT pg_temp.try('[{"tables": "shop.a", "target": "none"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": true}]');
SELECT pg_temp.try('[{"tables": "shop.a", "deleted_column": "gone"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": "soft_delete", "deleted_column": "cdc_deleted_at"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": "soft_delete", "deleted_column": 5}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": "append", "key": ["id"]}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": "last_writer"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "version_column": "v"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "part": "a"}]');
SELECT pg_temp.try('[{"tables": "shop.a", "target": "partial", "part": ["a"]}]');
SELECT pg_temp.try('[{"tables": "shop.d", "target": "last_writer", "version_column": "v"}, {"tables": "shop.c", "target": "append"}, {"tables": "shop.a", "target": "mirror"}, {"tables": "shop.e", "target": "partial"}, {"tables": "shop.f", "target": "partial", "part": "f"}, {"tables": "shop.b", "target": "soft_delete", "deleted_column": "gone"}]');

-- what is taken: names are looked up when there is a table
SELECT pg_temp.try('[]');
SELECT pg_temp.try('[{"tables": "shop.a"}]');
SELECT pg_temp.try('[{"tables": ["shop.*", "!shop.b"], "projection": "*, a + 1 AS b, cdc_table", "filter": "a IN (1, 2) AND b IS DISTINCT FROM ''x''", "key": ["id", "cdc_table"], "description": "a test"}]');

-- what an outgoing pipeline says of it
CREATE SERVER transforms_out FOREIGN DATA WRAPPER cdc_file OPTIONS (directory '/tmp');
SELECT cdc_create_pipeline('transforms', sink => 'transforms_out', tables => '{public.*}', options => '{"transforms": [{"tables": "shop.a", "filter": "a b"}]}');
SELECT cdc_create_pipeline('transforms', sink => 'transforms_out', tables => '{public.*}', options => '{"transforms": [{"tables": "shop.a", "target": "soft_delete"}]}');
DROP EXTENSION cdc_bridge CASCADE;
