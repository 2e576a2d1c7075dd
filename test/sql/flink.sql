-- Pipelines of Flink CDC: what has a counterpart, and texts that mean harm.
CREATE EXTENSION cdc_bridge;
\set VERBOSITY default
SELECT kind, item, status, detail FROM cdc_import_flink_pipeline($$
source:
  type: mysql
  name: MySQL Source
  hostname: 127.0.0.1
  port: 3306
  username: admin
  password: it's secret
  tables: adb.\.*, bdb.user_table_[0-9]+, [app|web].order_\.*, cdb.a\.b, cat.ddb.x\.+
  tables.exclude: adb.tbl, adb.t[12]
  server-id: 5401
  server-time-zone: UTC
  connect.timeout: 90s
  heartbeat.interval: 2 min
  jdbc.properties.useSSL: true
  scan.startup.mode: latest-offset
  schema-change.enabled: true
  scan.newly-added-table.enabled: true
  odd.one: 1
  scan.parse.online.schema.changes.enabled: true
sink:
  type: doris
  fenodes: 127.0.0.1:8030
  include.schema.changes: [column, create.table, sideways]
transform:
  - source-table: adb.web_order, adb.`x
    projection: \*, `product name` AS "p""n", CAST(a AS STRING) AS b, DATE_FORMAT(ts, 'yyyy') AS y, CONCAT(`a`, '`x` STRING') AS c, __schema_name__ || __table_name__ AS o
    filter: id == 5 AND __data_event_type__ = '+I' AND my.f(id) > 0
    primary-keys: id, b
    partition-keys: b
    converter-after-transform: SOFT_DELETE
route:
  - source-table: mydb.default.app_order_\.*
    sink-table: odsdb.default.app_order
  - source-table: adb.(a|b)_([0-9]{2})
    sink-table: ods.$1_$x_<>
    replace-symbol: <>
    description: shards
pipeline:
  name: " Sync ALL!! "
  parallelism: 40
  local-time-zone: UTC
other: {}
$$);
SELECT item, sql FROM cdc_import_flink_pipeline($$
source: {type: mysql, hostname: "a'b", username: u, tables: 'x.y', scan.startup.mode: specific-offset, scan.startup.specific-offset.file: bin.000003, scan.startup.specific-offset.pos: 4}
$$, name => 'it''s', target_schema => 'T "1"') WHERE sql IS NOT NULL;
-- what it makes is one document of options, whatever stands in it
SELECT (regexp_match(sql, 'options => E?''(.*)''\)'))[1] AS options FROM cdc_import_flink_pipeline($$
source: {type: mysql, tables: 'x.y'}
transform: [{source-table: x.y, projection: "a, '\"' || b AS c", description: "line\nbreak \\ and \" quote", converter-after-transform: soft_delete}]
$$) WHERE item = 'pipeline' AND kind = 'script';

-- not a pipeline
SELECT * FROM cdc_import_flink_pipeline(NULL);
SELECT * FROM cdc_import_flink_pipeline('');
SELECT * FROM cdc_import_flink_pipeline('just text');
SELECT * FROM cdc_import_flink_pipeline('- a');
SELECT * FROM cdc_import_flink_pipeline('pipeline: {name: x}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: postgres}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql}');
SELECT * FROM cdc_import_flink_pipeline('source: [mysql]');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: {a: b}}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: orders}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: "a.b.c.d"}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: "a.[b"}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: "a."}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: "a.b\\"}');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: a.b}' || E'\nroute: [{source-table: a.b}]');
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql, tables: a.b}' || E'\ntransform: [{projection: a}]');
-- not a YAML text that is read
SELECT * FROM cdc_import_flink_pipeline('source: {type: mysql');
SELECT * FROM cdc_import_flink_pipeline(E'a: b\n\tc: d');
SELECT * FROM cdc_import_flink_pipeline(E'source: {type: mysql}\nsource: {type: mysql}');
SELECT * FROM cdc_import_flink_pipeline(E'a: &x [1, 2]\nb: *x');
SELECT * FROM cdc_import_flink_pipeline(E'b: *x');
SELECT * FROM cdc_import_flink_pipeline('a: !!python/object:os.system x');
SELECT * FROM cdc_import_flink_pipeline(E'--- {a: 1}\n--- {b: 2}');
SELECT * FROM cdc_import_flink_pipeline('{[a]: b}');
SELECT * FROM cdc_import_flink_pipeline('a: "\0"');
SELECT * FROM cdc_import_flink_pipeline(repeat('[', 100));
SELECT * FROM cdc_import_flink_pipeline('a: ' || repeat('[', 20000));
SELECT * FROM cdc_import_flink_pipeline('a: [' || repeat('1,', 60000) || ']');
SELECT * FROM cdc_import_flink_pipeline('a: ' || repeat('x', 2000000));

-- it is not for everybody
CREATE ROLE regress_flink;
SET ROLE regress_flink;
SELECT * FROM cdc_import_flink_pipeline('a: b');
RESET ROLE;
DROP ROLE regress_flink;
DROP EXTENSION cdc_bridge;
