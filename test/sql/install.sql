-- What CREATE EXTENSION makes: everything has a comment, nothing that changes something is for PUBLIC.
CREATE EXTENSION cdc_bridge;

-- members without a comment; types of tables and views are not objects of their own
CREATE VIEW member AS
SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_depend d
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
WHERE e.extname = 'cdc_bridge' AND d.classid <> 'pg_type'::regclass;

SELECT object FROM member
WHERE coalesce(obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)), '') = '' ORDER BY 1;
SELECT object FROM member ORDER BY object COLLATE "C";

-- columns of views without a comment
SELECT c.relname, a.attname
FROM member m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind = 'v'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE col_description(c.oid, a.attnum) IS NULL ORDER BY 1, 2;

-- functions that PUBLIC may call: only what reads, and filters by role in C
SELECT p.oid::regprocedure FROM member m
JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE has_function_privilege('public', p.oid, 'EXECUTE') ORDER BY p.oid::regprocedure::text COLLATE "C";

-- relations that PUBLIC may use in any way: only views
SELECT c.oid::regclass, c.relkind FROM member m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind <> 'S'
WHERE has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
ORDER BY c.oid::regclass::text COLLATE "C";

-- views on which a cheap function of the reader's could be run before the rows are filtered
SELECT c.oid::regclass FROM member m
JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind = 'v'
WHERE c.reloptions IS NULL OR NOT 'security_barrier=true' = ANY (c.reloptions);

-- what a dump carries
SELECT x.oid::regclass FROM pg_extension e, unnest(e.extconfig) AS x(oid) WHERE e.extname = 'cdc_bridge'
ORDER BY x.oid::regclass::text COLLATE "C";

-- the views work when there is nothing to show
SELECT count(*) FROM pg_stat_cdc_pipeline;
SELECT count(*) FROM pg_stat_cdc_table;
SELECT count(*) FROM pg_stat_cdc_snapshot;
SELECT count(*) FROM cdc_bridge.position;

DROP VIEW member;
DROP EXTENSION cdc_bridge;
SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc_bridge';

-- functions and views go where the user wants them, tables do not; the same session finds the new ones
CREATE SCHEMA elsewhere;
CREATE EXTENSION cdc_bridge SCHEMA elsewhere;
SELECT count(*) FROM elsewhere.pg_stat_cdc_pipeline;
SELECT count(*) > 0 AS has_options FROM elsewhere.cdc_list_options();
CREATE SERVER install_shop FOREIGN DATA WRAPPER cdc_mysql;
CREATE USER MAPPING FOR CURRENT_USER SERVER install_shop OPTIONS (username 'repl');
SELECT elsewhere.cdc_create_pipeline('install', source => 'install_shop', tables => '{shop.*}');
SELECT pipeline, pipeline_id, state FROM elsewhere.pg_stat_cdc_pipeline;

-- position tables are members of the extension and have comments too
SELECT c.relname, obj_description(c.oid, 'pg_class'), r.rolname = e.rolname AS owner_is_right
FROM pg_depend d
JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = x.oid
JOIN pg_roles r ON r.oid = c.relowner
JOIN pg_roles e ON e.oid = x.extowner
WHERE c.relname LIKE 'position\_%' ORDER BY 1;

\set VERBOSITY terse
DROP EXTENSION cdc_bridge CASCADE;
\set VERBOSITY default
SELECT count(*) FROM pg_class WHERE relname LIKE 'position\_%';
DROP SCHEMA elsewhere;
