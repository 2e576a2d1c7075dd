\echo Use "CREATE EXTENSION cdc_bridge" to load this file. \quit

-- Two schemas: functions and views that people use stand in the schema chosen at CREATE EXTENSION, what the extension
-- keeps stands in cdc_bridge. Nobody but the extension's owner has rights on the tables; the library reads and writes
-- them itself, after checks of its own.

CREATE SCHEMA cdc_bridge;
COMMENT ON SCHEMA cdc_bridge IS 'what cdc_bridge keeps: pipelines, their tables, states and positions';
-- For cdc_bridge.position; the tables themselves are granted to nobody.
GRANT USAGE ON SCHEMA cdc_bridge TO PUBLIC;

-- ---------------------------------------------------------------------------------------------------------- pipelines

CREATE SEQUENCE cdc_bridge.pipeline_id_seq AS integer;
COMMENT ON SEQUENCE cdc_bridge.pipeline_id_seq IS 'numbers of pipelines';

CREATE TABLE cdc_bridge.pipeline
(
	pipeline_id integer NOT NULL DEFAULT nextval('cdc_bridge.pipeline_id_seq'::regclass)
		CONSTRAINT pipeline_pkey PRIMARY KEY,
	name text NOT NULL CONSTRAINT pipeline_name_key UNIQUE,
	owner regrole NOT NULL,
	source text,
	sink text,
	tables text[] NOT NULL,
	target_schema text,
	options jsonb,
	created_at timestamptz NOT NULL
);
COMMENT ON TABLE cdc_bridge.pipeline IS 'definitions of pipelines; written by cdc_create_pipeline() and its sisters only';
ALTER SEQUENCE cdc_bridge.pipeline_id_seq OWNED BY cdc_bridge.pipeline.pipeline_id;

CREATE TABLE cdc_bridge.pipeline_state
(
	pipeline_id integer NOT NULL CONSTRAINT pipeline_state_pkey PRIMARY KEY,
	-- Where it was started: a copy of this database (CREATE DATABASE ... TEMPLATE) comes up stopped.
	database oid NOT NULL,
	enabled boolean NOT NULL,
	state text NOT NULL,
	last_error text,
	last_error_sqlstate text,
	last_error_detail text,
	last_error_hint text,
	last_error_position text,
	last_error_at timestamptz,
	-- Start of the source transaction that the last error fell in; NULL: in none.
	failed_transaction text,
	-- The second mark of the first run, between its end and the first chunk; NULL: none that can be relied upon.
	snapshot_mark_file text,
	snapshot_mark_offset bigint,
	snapshot_mark_gtids text,
	-- How often the list of tables was changed or a new copy was asked for, and up to which of these the worker has come.
	tables_asked integer NOT NULL DEFAULT 0,
	tables_done integer NOT NULL DEFAULT 0,
	-- Highest number of a table that has left: none is used again, counters are kept by it.
	last_left integer NOT NULL DEFAULT 0,
	-- Start of the server under which it last was allowed to run, and what tells that server from a copy of it.
	server_start timestamptz,
	fingerprint text
);
COMMENT ON TABLE cdc_bridge.pipeline_state IS 'whether a pipeline should run, the state its workers reached, the last error, and what every chunk of its snapshot has seen';

CREATE TABLE cdc_bridge.pipeline_table
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	source_schema text NOT NULL,
	source_table text NOT NULL,
	target_schema text NOT NULL,
	target_table text NOT NULL,
	-- Does the target hold all rows as of the pipeline's position? A dump has this, and not the table's state.
	complete boolean NOT NULL DEFAULT false,
	-- Did the pipeline make the target, so that it goes when the source table is dropped?
	made boolean NOT NULL DEFAULT false,
	CONSTRAINT pipeline_table_pkey PRIMARY KEY (pipeline_id, table_id),
	CONSTRAINT pipeline_table_source_key UNIQUE (pipeline_id, source_schema, source_table)
);
COMMENT ON TABLE cdc_bridge.pipeline_table IS 'source tables of a pipeline and the tables they go into';

CREATE TABLE cdc_bridge.table_state
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	state text NOT NULL,
	generation integer NOT NULL,
	-- oid, not regclass: a plain number is what a worker wants, and it does not keep pg_upgrade away.
	target oid NOT NULL,
	definition jsonb,
	high_file text,
	high_offset bigint,
	stop_file text,
	stop_offset bigint,
	row_estimate bigint NOT NULL,
	rows_copied bigint NOT NULL,
	chunks integer NOT NULL,
	last_error text,
	last_error_sqlstate text,
	last_error_detail text,
	last_error_hint text,
	last_error_at timestamptz,
	snapshot_started_at timestamptz,
	snapshot_finished_at timestamptz,
	-- A new copy was asked for and has not begun.
	resync_wanted boolean NOT NULL DEFAULT false,
	-- While a new copy goes into a shadow (target): the table that it will be put in the place of; else 0.
	swap_into oid NOT NULL DEFAULT 0,
	-- Where a table joined a stream that was running: older transactions are not its own. NULL: there from the beginning.
	join_file text,
	join_offset bigint,
	join_gtids text,
	-- May chunks be read: does every SELECT see what lies before the join position?
	chunks_allowed boolean NOT NULL DEFAULT true,
	-- What every chunk has seen, as snapshot_mark_* of the pipeline.
	mark_file text,
	mark_offset bigint,
	mark_gtids text,
	-- Of a target that several source tables share: columns of its key, and their values in this table's rows. NULL: it has the target for itself.
	own_rows jsonb,
	-- Does the target hold rows that a statement of the source removed, or replaced, and the options kept here? A new copy would not have them.
	keeps_rows boolean NOT NULL DEFAULT false,
	CONSTRAINT table_state_pkey PRIMARY KEY (pipeline_id, table_id)
);
COMMENT ON TABLE cdc_bridge.table_state IS 'state of each table of a pipeline, its declared definition, its marks and why it stopped';

CREATE TABLE cdc_bridge.snapshot_chunk
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	generation integer NOT NULL,
	chunk_no integer NOT NULL,
	-- Keys behind lower_key up to and including upper_key; NULL: from the table's beginning resp. to its end.
	lower_key text[],
	upper_key text[],
	-- 'open', 'done', or 'rest': number 0, what is not cut into chunks yet.
	state text COLLATE "C" NOT NULL,
	-- Snapshot worker that copies it or has copied it.
	worker integer NOT NULL,
	rows bigint NOT NULL,
	bytes bigint NOT NULL,
	-- How many chunks a row in state 'done' stands for: neighbours become one row.
	chunks integer NOT NULL,
	CONSTRAINT snapshot_chunk_pkey PRIMARY KEY (pipeline_id, table_id, generation, chunk_no)
);
CREATE INDEX snapshot_chunk_state_idx ON cdc_bridge.snapshot_chunk (pipeline_id, table_id, generation, state);
COMMENT ON TABLE cdc_bridge.snapshot_chunk IS 'the plan of a running snapshot and how far it is; emptied when the table streams';

CREATE TABLE cdc_bridge.snapshot_deleted
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	key bytea NOT NULL,
	CONSTRAINT snapshot_deleted_pkey PRIMARY KEY (pipeline_id, table_id, key)
);
-- A key of one zero byte says that the stream has written to the table, one of two that it took defaults from the definition, an empty one that
-- the stream notes written keys too.
COMMENT ON TABLE cdc_bridge.snapshot_deleted IS 'what the stream notes for the copy of a table, above all the keys that it deleted; emptied when the table streams';

CREATE TABLE cdc_bridge.snapshot_reread
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	key bytea NOT NULL,
	-- How the source finds the row: a condition over its key.
	condition text NOT NULL,
	-- Has it been read again?
	is_read boolean NOT NULL,
	-- Before: the source transaction of the last change in part, where it starts and its GTID. After: where the log ended then.
	file text,
	"offset" bigint,
	gtid text,
	CONSTRAINT snapshot_reread_pkey PRIMARY KEY (pipeline_id, table_id, key)
);
CREATE INDEX snapshot_reread_state_idx ON cdc_bridge.snapshot_reread (pipeline_id, table_id, is_read);
COMMENT ON TABLE cdc_bridge.snapshot_reread IS 'keys of which a copy has to read the row again, because the stream changed it in part before it was there; emptied when the table streams';

CREATE TABLE cdc_bridge.prepared_transaction
(
	pipeline_id integer NOT NULL,
	prepared_id integer NOT NULL,
	xid text COLLATE "C" NOT NULL,
	-- NULL: it was prepared before the pipeline began, and nothing of it is known.
	position text,
	prepared_at timestamptz,
	-- All tables that it changed, as schema.table; NULL: too many, or not known.
	source_tables text[],
	-- Tables of the pipeline with a higher number joined later: their changes are not kept.
	last_table_id integer NOT NULL,
	changes bigint NOT NULL,
	bytes bigint NOT NULL,
	pieces integer NOT NULL,
	CONSTRAINT prepared_transaction_pkey PRIMARY KEY (pipeline_id, prepared_id),
	CONSTRAINT prepared_transaction_xid_key UNIQUE (pipeline_id, xid)
);
COMMENT ON TABLE cdc_bridge.prepared_transaction IS 'XA transactions that were prepared while the pipeline ran and have not ended yet';

CREATE TABLE cdc_bridge.prepared_change
(
	pipeline_id integer NOT NULL,
	prepared_id integer NOT NULL,
	piece_no integer NOT NULL,
	data bytea NOT NULL,
	CONSTRAINT prepared_change_pkey PRIMARY KEY (pipeline_id, prepared_id, piece_no)
);
COMMENT ON TABLE cdc_bridge.prepared_change IS 'what the prepared XA transactions changed, to be applied at their XA COMMIT';

CREATE TABLE cdc_bridge.skipped_transaction
(
	pipeline_id integer NOT NULL,
	skip_id integer NOT NULL,
	-- One of the two: where it starts in the source's log, or its name.
	position text,
	gtid text,
	requested_by regrole NOT NULL,
	requested_at timestamptz NOT NULL,
	-- NULL: it has not come yet.
	skipped_at timestamptz,
	skipped_position text,
	skipped_changes bigint,
	CONSTRAINT skipped_transaction_pkey PRIMARY KEY (pipeline_id, skip_id)
);
COMMENT ON TABLE cdc_bridge.skipped_transaction IS 'source transactions that somebody asked to pass over, and when they were';

CREATE SEQUENCE cdc_bridge.dead_letter_id_seq;
COMMENT ON SEQUENCE cdc_bridge.dead_letter_id_seq IS 'numbers of dead letters';

CREATE TABLE cdc_bridge.dead_letter
(
	pipeline_id integer NOT NULL,
	dead_letter_id bigint NOT NULL,
	table_id integer NOT NULL,
	source_schema text NOT NULL,
	source_table text NOT NULL,
	state text NOT NULL,
	file text,
	"offset" bigint,
	gtid text,
	-- NULL: a row of a copy
	action bigint,
	operation text NOT NULL,
	before jsonb,
	after jsonb,
	error text NOT NULL,
	error_sqlstate text NOT NULL,
	error_detail text,
	error_hint text,
	changed_at timestamptz,
	created_at timestamptz NOT NULL,
	attempts integer NOT NULL,
	last_attempt_at timestamptz NOT NULL,
	settled_at timestamptz,
	reason text,
	-- the newest request that took it up
	request bigint,
	-- columns of "after" that a later change of the row, which told only a part of it, has set since
	newer text[],
	-- SHA-256 of the key that is still to be removed, resp. written; NULL: none, or a later change has decided
	old_key bytea,
	new_key bytea,
	-- outgoing: the chunk that it is shipped again in, and that the sink has not got for good yet
	chunk_no integer,
	-- outgoing: which columns its table had when it was made, as decode_letter.c tells them
	shape bytea,
	CONSTRAINT dead_letter_pkey PRIMARY KEY (pipeline_id, dead_letter_id)
);
COMMENT ON TABLE cdc_bridge.dead_letter IS 'changes that could not be applied, with all they said';
CREATE INDEX dead_letter_old_key ON cdc_bridge.dead_letter (pipeline_id, table_id, old_key);
CREATE INDEX dead_letter_new_key ON cdc_bridge.dead_letter (pipeline_id, table_id, new_key);
ALTER SEQUENCE cdc_bridge.dead_letter_id_seq OWNED BY cdc_bridge.dead_letter.dead_letter_id;

CREATE SEQUENCE cdc_bridge.dead_letter_request_seq;
COMMENT ON SEQUENCE cdc_bridge.dead_letter_request_seq IS 'numbers of requests of cdc_replay_dead_letters() and cdc_discard_dead_letters()';

CREATE TABLE cdc_bridge.dead_letter_request
(
	pipeline_id integer NOT NULL,
	request bigint NOT NULL,
	kind text NOT NULL,
	tables text[],
	ids text[],
	reason text,
	state text NOT NULL,
	requested_by oid NOT NULL,
	requested_at timestamptz NOT NULL,
	started_at timestamptz,
	finished_at timestamptz,
	-- how far it is; how often a worker began with it since it was last so far
	last_id bigint NOT NULL,
	attempts integer NOT NULL,
	settled bigint NOT NULL,
	failed bigint NOT NULL,
	left_alone bigint NOT NULL,
	CONSTRAINT dead_letter_request_pkey PRIMARY KEY (pipeline_id, request)
);
COMMENT ON TABLE cdc_bridge.dead_letter_request IS 'requests of cdc_replay_dead_letters() and cdc_discard_dead_letters(); the newest 20 finished ones of each pipeline are kept';
ALTER SEQUENCE cdc_bridge.dead_letter_request_seq OWNED BY cdc_bridge.dead_letter_request.request;

CREATE TABLE cdc_bridge.schema_history
(
	pipeline_id integer NOT NULL,
	change_no integer NOT NULL,
	table_id integer NOT NULL,
	source_schema text NOT NULL,
	source_table text NOT NULL,
	file text,
	"offset" bigint,
	gtid text,
	source_time timestamptz,
	kinds text[] NOT NULL,
	statement text,
	commands text[] NOT NULL,
	result text NOT NULL,
	error text,
	error_sqlstate text,
	error_detail text,
	error_hint text,
	created_at timestamptz NOT NULL,
	CONSTRAINT schema_history_pkey PRIMARY KEY (pipeline_id, change_no)
);
COMMENT ON TABLE cdc_bridge.schema_history IS 'changes of source tables'' shapes, and what was done to the targets';

CREATE TABLE cdc_bridge.target_index
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	index_no integer NOT NULL,
	source_index text NOT NULL,
	is_unique boolean NOT NULL,
	-- Written before the index is made: what an interrupted build left behind is found by it.
	target_index text,
	statement text,
	state text NOT NULL,
	reason text,
	last_error text,
	last_error_sqlstate text,
	last_error_detail text,
	last_error_hint text,
	started_at timestamptz,
	finished_at timestamptz,
	CONSTRAINT target_index_pkey PRIMARY KEY (pipeline_id, table_id, index_no)
);
COMMENT ON TABLE cdc_bridge.target_index IS 'what becomes of each unique and secondary index of a source table on its target';

CREATE SEQUENCE cdc_bridge.verify_request_seq;
COMMENT ON SEQUENCE cdc_bridge.verify_request_seq IS 'numbers of requests of cdc_verify()';

CREATE TABLE cdc_bridge.verify_request
(
	pipeline_id integer NOT NULL,
	request bigint NOT NULL CONSTRAINT verify_request_request_key UNIQUE,
	tables text[],
	mode text NOT NULL,
	state text NOT NULL,
	requested_by oid NOT NULL,
	requested_at timestamptz NOT NULL,
	started_at timestamptz,
	finished_at timestamptz,
	-- How often a worker began with it since a table was finished: one that never ends is given up.
	attempts integer NOT NULL,
	last_error text,
	last_error_sqlstate text,
	last_error_detail text,
	last_error_hint text,
	CONSTRAINT verify_request_pkey PRIMARY KEY (pipeline_id, request)
);
COMMENT ON TABLE cdc_bridge.verify_request IS 'comparisons of mirrored tables with their source that cdc_verify() asked for; the newest 20 finished ones of each pipeline are kept';

CREATE TABLE cdc_bridge.verify_table
(
	pipeline_id integer NOT NULL,
	request bigint NOT NULL,
	table_id integer NOT NULL,
	-- Names, so that a result can be read when the table has left the pipeline.
	source_schema text NOT NULL,
	source_table text NOT NULL,
	target_schema text NOT NULL,
	target_table text NOT NULL,
	state text NOT NULL,
	reason text,
	rows_source bigint NOT NULL,
	rows_target bigint NOT NULL,
	missing bigint NOT NULL,
	extra bigint NOT NULL,
	different bigint NOT NULL,
	unsettled bigint NOT NULL,
	chunks integer NOT NULL,
	chunks_by_sum integer NOT NULL,
	rows_read bigint NOT NULL,
	method text,
	position_file text,
	position_offset bigint,
	started_at timestamptz,
	finished_at timestamptz,
	CONSTRAINT verify_table_pkey PRIMARY KEY (pipeline_id, request, table_id)
);
COMMENT ON TABLE cdc_bridge.verify_table IS 'what a comparison found, table by table';

CREATE TABLE cdc_bridge.verify_difference
(
	pipeline_id integer NOT NULL,
	request bigint NOT NULL,
	table_id integer NOT NULL,
	number bigint NOT NULL,
	kind text NOT NULL,
	key text[] NOT NULL,
	columns text[],
	rows bigint NOT NULL,
	CONSTRAINT verify_difference_pkey PRIMARY KEY (pipeline_id, request, table_id, number)
);
COMMENT ON TABLE cdc_bridge.verify_difference IS 'rows that a comparison found missing, extra or different: their keys and the columns, no values; without a key a hash of the row';

-- ------------------------------------------------------------------------------------------------ outgoing pipelines

CREATE TABLE cdc_bridge.export_state
(
	pipeline_id integer NOT NULL CONSTRAINT export_state_pkey PRIMARY KEY,
	slot_name text NOT NULL,
	-- Of which server, and on which of its timelines: a slot of the same name elsewhere is another one.
	system_identifier text NOT NULL,
	timeline integer NOT NULL,
	-- Where the slot began; up to where it may forget although the sink has less; what the sink had then; was the sink ever opened?
	start_lsn pg_lsn NOT NULL,
	confirmed_lsn pg_lsn NOT NULL,
	sink_lsn pg_lsn NOT NULL,
	is_begun boolean NOT NULL,
	created_at timestamptz NOT NULL,
	-- The patterns under which all tables are known; the last chunk of the initial copy that is counted in export_table.
	tables text[],
	last_chunk integer NOT NULL
);
COMMENT ON TABLE cdc_bridge.export_state IS 'the replication slot of each outgoing pipeline, and how far it was confirmed';

CREATE TABLE cdc_bridge.export_table
(
	pipeline_id integer NOT NULL,
	table_id integer NOT NULL,
	relid oid NOT NULL,
	table_schema text NOT NULL,
	table_name text NOT NULL,
	state text NOT NULL CHECK (state IN ('snapshot', 'streaming', 'stopped', 'removed')),
	-- The key that the copy goes along, and how far it is: rows up to last_key; without the chunks of export_chunk.
	signature text,
	last_key text[],
	rows_copied bigint NOT NULL,
	chunks integer NOT NULL,
	-- How often a new copy was asked for, and has begun.
	copies_asked integer NOT NULL,
	copies_begun integer NOT NULL,
	started_at timestamptz NOT NULL,
	finished_at timestamptz,
	-- Stopped: changes from stop_lsn on of the transaction that ends at stop_end_lsn are left out, and all of later ones; of an error in a copy, 0.
	stop_end_lsn bigint,
	stop_lsn bigint,
	last_error text,
	last_error_sqlstate text,
	last_error_detail text,
	last_error_hint text,
	stopped_at timestamptz,
	CONSTRAINT export_table_pkey PRIMARY KEY (pipeline_id, table_id)
);
COMMENT ON TABLE cdc_bridge.export_table IS 'tables that an outgoing pipeline copies, or has copied, before it ships their changes';

CREATE TABLE cdc_bridge.export_chunk
(
	pipeline_id integer NOT NULL,
	chunk_no integer NOT NULL,
	table_id integer NOT NULL,
	-- range: rows up to last_key, NULL to the end; row: that one row again; anew: the copy begins anew; gone: the table is no more.
	kind text NOT NULL CHECK (kind IN ('range', 'row', 'anew', 'gone')),
	signature text,
	last_key text[],
	-- What it saw, and where the log ended then.
	snapshot pg_snapshot,
	lsn pg_lsn NOT NULL,
	row_count bigint NOT NULL,
	copies_begun integer NOT NULL,
	CONSTRAINT export_chunk_pkey PRIMARY KEY (pipeline_id, chunk_no)
);
COMMENT ON TABLE cdc_bridge.export_chunk IS 'chunks of initial copies that the sink has not got yet for sure, or that the stream has not passed';

-- A dump carries what was asked for, not how far it got: a restored pipeline comes up stopped and begins anew.
SELECT pg_catalog.pg_extension_config_dump('cdc_bridge.pipeline', '');
SELECT pg_catalog.pg_extension_config_dump('cdc_bridge.pipeline_table', '');
SELECT pg_catalog.pg_extension_config_dump('cdc_bridge.pipeline_id_seq', '');

-- ----------------------------------------------------------------------------------------------------------- servers

CREATE FUNCTION cdc_bridge.mysql_validator(options text[], catalog oid)
RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'cdc_mysql_validator';
COMMENT ON FUNCTION cdc_bridge.mysql_validator(text[], oid) IS 'checks the options of cdc_mysql servers and user mappings';

CREATE FOREIGN DATA WRAPPER cdc_mysql NO HANDLER VALIDATOR cdc_bridge.mysql_validator;
COMMENT ON FOREIGN DATA WRAPPER cdc_mysql IS 'MySQL and MariaDB servers as sources of cdc_bridge pipelines';

CREATE FUNCTION cdc_bridge.file_validator(options text[], catalog oid)
RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'cdc_file_validator';
COMMENT ON FUNCTION cdc_bridge.file_validator(text[], oid) IS 'checks the options of cdc_file servers';

CREATE FOREIGN DATA WRAPPER cdc_file NO HANDLER VALIDATOR cdc_bridge.file_validator;
COMMENT ON FOREIGN DATA WRAPPER cdc_file IS 'directories of this machine as sinks of cdc_bridge pipelines';

CREATE FUNCTION cdc_bridge.kafka_validator(options text[], catalog oid)
RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'cdc_kafka_validator';
COMMENT ON FUNCTION cdc_bridge.kafka_validator(text[], oid) IS 'checks the options of cdc_kafka servers and user mappings';

CREATE FOREIGN DATA WRAPPER cdc_kafka NO HANDLER VALIDATOR cdc_bridge.kafka_validator;
COMMENT ON FOREIGN DATA WRAPPER cdc_kafka IS 'Kafka clusters as sinks of cdc_bridge pipelines';

CREATE FUNCTION cdc_bridge.null_validator(options text[], catalog oid)
RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'cdc_null_validator';
COMMENT ON FUNCTION cdc_bridge.null_validator(text[], oid) IS 'checks the options of cdc_null servers';

CREATE FOREIGN DATA WRAPPER cdc_null NO HANDLER VALIDATOR cdc_bridge.null_validator;
COMMENT ON FOREIGN DATA WRAPPER cdc_null IS 'a sink of cdc_bridge pipelines that throws everything away, for measuring';

-- ---------------------------------------------------------------------------------------------------- schema changes
-- They fire only while an outgoing pipeline wants them: the library switches them on and off. As members of the extension
-- they are in no dump.

CREATE FUNCTION cdc_bridge.schema_change()
RETURNS event_trigger
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'cdc_schema_change';
COMMENT ON FUNCTION cdc_bridge.schema_change() IS 'tells outgoing pipelines, in the log, what a statement does to tables; cannot fail the statement';
REVOKE ALL ON FUNCTION cdc_bridge.schema_change() FROM PUBLIC;

CREATE EVENT TRIGGER cdc_bridge_schema_rewrite ON table_rewrite EXECUTE FUNCTION cdc_bridge.schema_change();
ALTER EVENT TRIGGER cdc_bridge_schema_rewrite DISABLE;
COMMENT ON EVENT TRIGGER cdc_bridge_schema_rewrite IS 'notes which tables a statement writes anew';
CREATE EVENT TRIGGER cdc_bridge_schema_drop ON sql_drop EXECUTE FUNCTION cdc_bridge.schema_change();
ALTER EVENT TRIGGER cdc_bridge_schema_drop DISABLE;
COMMENT ON EVENT TRIGGER cdc_bridge_schema_drop IS 'tells outgoing pipelines of tables that are dropped';
CREATE EVENT TRIGGER cdc_bridge_schema_change ON ddl_command_end EXECUTE FUNCTION cdc_bridge.schema_change();
ALTER EVENT TRIGGER cdc_bridge_schema_change DISABLE;
COMMENT ON EVENT TRIGGER cdc_bridge_schema_change IS 'tells outgoing pipelines of tables that a statement makes or alters';

-- --------------------------------------------------------------------------------------------------------- pipelines
-- Not STRICT: a NULL argument means "left out". Not for PUBLIC: a pipeline opens connections to other machines and
-- takes background workers, so a DBA decides which roles may make one.

CREATE FUNCTION @extschema@.cdc_create_pipeline(pipeline text, source text DEFAULT NULL, tables text[] DEFAULT NULL,
	target_schema text DEFAULT NULL, sink text DEFAULT NULL, options jsonb DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_create_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_create_pipeline(text, text, text[], text, text, jsonb) IS 'make a pipeline, stopped';
REVOKE ALL ON FUNCTION @extschema@.cdc_create_pipeline(text, text, text[], text, text, jsonb) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_start_pipeline(pipeline text, source text DEFAULT NULL, tables text[] DEFAULT NULL,
	target_schema text DEFAULT NULL, sink text DEFAULT NULL, options jsonb DEFAULT NULL,
	confirm_move boolean DEFAULT false)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_start_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_start_pipeline(text, text, text[], text, text, jsonb, boolean) IS 'start a pipeline; make it first when a definition is given';
REVOKE ALL ON FUNCTION @extschema@.cdc_start_pipeline(text, text, text[], text, text, jsonb, boolean) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_export_pipeline(pipeline text)
RETURNS text
LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'cdc_export_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_export_pipeline(text) IS 'the SQL script that makes a pipeline like this one elsewhere, with its server and user mapping, without secrets';

CREATE FUNCTION @extschema@.cdc_import_flink_pipeline(yaml text, name text DEFAULT NULL, target_schema text DEFAULT NULL)
RETURNS TABLE(kind text, item text, status text, detail text, sql text)
LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 50
AS 'MODULE_PATHNAME', 'cdc_import_flink_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_import_flink_pipeline(text, text, text) IS 'what of a pipeline of Flink CDC has a counterpart here, and the statements that make it';
-- It gives the text to a library.
REVOKE ALL ON FUNCTION @extschema@.cdc_import_flink_pipeline(text, text, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_stop_pipeline(pipeline text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_stop_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_stop_pipeline(text) IS 'stop a pipeline; it goes on from the same position when started again';
REVOKE ALL ON FUNCTION @extschema@.cdc_stop_pipeline(text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_add_table(pipeline text, "table" text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_add_table';
COMMENT ON FUNCTION @extschema@.cdc_add_table(text, text) IS 'let a table, or those that fit a pattern, join a pipeline';
REVOKE ALL ON FUNCTION @extschema@.cdc_add_table(text, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_remove_table(pipeline text, "table" text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_remove_table';
COMMENT ON FUNCTION @extschema@.cdc_remove_table(text, text) IS 'let a table, or those of a pattern, leave a pipeline; the target tables stay';
REVOKE ALL ON FUNCTION @extschema@.cdc_remove_table(text, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_resync_table(pipeline text, "table" text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_resync_table';
COMMENT ON FUNCTION @extschema@.cdc_resync_table(text, text) IS 'copy a table of a pipeline anew, stopped or not';
REVOKE ALL ON FUNCTION @extschema@.cdc_resync_table(text, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_drop_pipeline(pipeline text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_drop_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_drop_pipeline(text) IS 'remove a pipeline and its position; the target tables stay';
REVOKE ALL ON FUNCTION @extschema@.cdc_drop_pipeline(text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_alter_pipeline(pipeline text, target_schema text DEFAULT NULL,
	options jsonb DEFAULT NULL, source text DEFAULT NULL, owner regrole DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_alter_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_alter_pipeline(text, text, jsonb, text, regrole) IS 'change a pipeline''s definition; a running one takes it up by itself';
REVOKE ALL ON FUNCTION @extschema@.cdc_alter_pipeline(text, text, jsonb, text, regrole) FROM PUBLIC;

-- "at", because "position" would have to be quoted in a call with named arguments.
CREATE FUNCTION @extschema@.cdc_set_position(pipeline text, at text DEFAULT NULL, gtids text DEFAULT NULL,
	server text DEFAULT NULL, anew boolean DEFAULT false)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_set_position';
COMMENT ON FUNCTION @extschema@.cdc_set_position(text, text, text, text, boolean) IS 'say where in the source''s log a stopped pipeline goes on';
REVOKE ALL ON FUNCTION @extschema@.cdc_set_position(text, text, text, text, boolean) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_skip_transaction(pipeline text, at text DEFAULT NULL, gtid text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_skip_transaction';
COMMENT ON FUNCTION @extschema@.cdc_skip_transaction(text, text, text) IS 'pass over one source transaction: the one that the last error fell in, or the one named';
REVOKE ALL ON FUNCTION @extschema@.cdc_skip_transaction(text, text, text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_reset_stats(pipeline text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'cdc_reset_stats';
COMMENT ON FUNCTION @extschema@.cdc_reset_stats(text) IS 'set the counters of a pipeline, or of all that the caller owns, to zero';
REVOKE ALL ON FUNCTION @extschema@.cdc_reset_stats(text) FROM PUBLIC;

-- Without SET and SECURITY DEFINER: either would keep it from committing between two looks. It changes nothing, and
-- lets a role wait only for pipelines that it may see: EXECUTE stays with PUBLIC.
CREATE PROCEDURE @extschema@.cdc_wait_for_pipeline(pipeline text, state text DEFAULT 'streaming',
	timeout interval DEFAULT NULL)
LANGUAGE C
AS 'MODULE_PATHNAME', 'cdc_wait_for_pipeline';
COMMENT ON PROCEDURE @extschema@.cdc_wait_for_pipeline(text, text, interval) IS 'wait until a pipeline has reached a state';

-- ------------------------------------------------------------------------------------------------------------ checks

CREATE FUNCTION @extschema@.cdc_check(server text DEFAULT NULL)
RETURNS TABLE("check" text, status text, detail text, hint text)
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'cdc_check';
COMMENT ON FUNCTION @extschema@.cdc_check(text) IS 'what this server, or a source server, still needs; changes nothing';
-- With a server it connects to another machine.
REVOKE ALL ON FUNCTION @extschema@.cdc_check(text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_check_pipeline(pipeline text)
RETURNS TABLE("check" text, status text, detail text, hint text)
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 30
AS 'MODULE_PATHNAME', 'cdc_check_pipeline';
COMMENT ON FUNCTION @extschema@.cdc_check_pipeline(text) IS 'what a pipeline needs of this server, of its source and of its tables, and whether it is there; changes nothing';
REVOKE ALL ON FUNCTION @extschema@.cdc_check_pipeline(text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_list_options()
RETURNS TABLE(kind text, subject text, name text, type text, "default" text, allowed text, unit text, description text)
LANGUAGE C STABLE PARALLEL SAFE ROWS 40
AS 'MODULE_PATHNAME', 'cdc_list_options';
COMMENT ON FUNCTION @extschema@.cdc_list_options() IS 'options of servers, user mappings and pipelines';

-- ------------------------------------------------------------------------------------------------------------- views
-- The functions behind the views give each role its own pipelines (and those of roles whose privileges it has);
-- members of pg_monitor see all. So the views and functions are for PUBLIC.

CREATE FUNCTION cdc_bridge.stat_pipeline(OUT pipeline text, OUT pipeline_id integer, OUT owner regrole,
	OUT source text, OUT state text, OUT ingest_pid integer, OUT snapshot_workers integer, OUT tables integer,
	OUT tables_snapshot integer, OUT tables_streaming integer, OUT tables_stopped integer, OUT lag interval,
	OUT applied_file text, OUT applied_offset bigint, OUT applied_gtids text, OUT streamed_file text,
	OUT streamed_offset bigint, OUT transaction_start text, OUT transaction_since timestamptz,
	OUT transaction_changes bigint, OUT transaction_bytes bigint, OUT source_commit_time timestamptz, OUT last_event_at timestamptz,
	OUT transactions bigint, OUT changes bigint, OUT bytes bigint, OUT commits bigint, OUT transactions_skipped bigint,
	OUT stats_reset timestamptz, OUT failures integer,
	OUT retry_at timestamptz, OUT started_at timestamptz, OUT last_error text, OUT last_error_sqlstate text,
	OUT last_error_detail text, OUT last_error_hint text, OUT last_error_position text, OUT last_error_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'cdc_stat_pipeline';
COMMENT ON FUNCTION cdc_bridge.stat_pipeline() IS 'behind view pg_stat_cdc_pipeline';

CREATE VIEW @extschema@.pg_stat_cdc_pipeline WITH (security_barrier) AS
SELECT s.pipeline, s.pipeline_id, s.owner, s.source, s.state, s.ingest_pid, s.snapshot_workers, s.tables,
	s.tables_snapshot, s.tables_streaming, s.tables_stopped, s.lag, s.applied_file, s.applied_offset,
	s.applied_gtids, s.streamed_file, s.streamed_offset, s.transaction_start, s.transaction_since,
	s.transaction_changes, s.transaction_bytes, s.source_commit_time, s.last_event_at, s.transactions,
	s.changes, s.bytes, s.commits, s.transactions_skipped, s.stats_reset, s.failures, s.retry_at, s.started_at, s.last_error, s.last_error_sqlstate,
	s.last_error_detail, s.last_error_hint, s.last_error_position, s.last_error_at
FROM cdc_bridge.stat_pipeline() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_pipeline IS 'one row per pipeline: state, lag, position, counters, last error';
GRANT SELECT ON @extschema@.pg_stat_cdc_pipeline TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.pipeline_id IS 'its number, as in names of position tables and replication origins';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.owner IS 'role that made it and that its workers run as';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.source IS 'server that the changes come from';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.state IS 'stopped, waiting, starting, snapshot, streaming, retrying or failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.ingest_pid IS 'process that follows the source; NULL when none runs';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.snapshot_workers IS 'processes that copy tables just now';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.tables IS 'number of its tables';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.tables_snapshot IS 'of these, still being copied or catching up';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.tables_streaming IS 'of these, complete and followed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.tables_stopped IS 'of these, stopped: see pg_stat_cdc_table';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.lag IS 'how old the oldest change that is not applied here may be; 0 when caught up, NULL when not known';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.applied_file IS 'binary log file of the durable position';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.applied_offset IS 'offset of the durable position: everything before it is applied and committed here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.applied_gtids IS 'set of GTIDs that are applied; empty when the source writes none';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.streamed_file IS 'binary log file that is being read; NULL when no worker runs';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.streamed_offset IS 'offset that has been read up to';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transaction_start IS 'where the source transaction that is coming in starts in the source''s log; NULL between two';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transaction_since IS 'when it began to come in';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transaction_changes IS 'its row changes that have come so far, of mirrored tables; shown every half second';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transaction_bytes IS 'size of their row images in the binary log';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.source_commit_time IS 'when the newest applied transaction committed at the source, by the source''s clock';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_event_at IS 'when the source last sent anything, heartbeats included';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transactions IS 'source transactions applied since stats_reset, resp. since the server started';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.changes IS 'row changes applied';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.bytes IS 'size of their row images in the binary log';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.commits IS 'PostgreSQL transactions they were applied in';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.transactions_skipped IS 'source transactions passed over because of cdc_skip_transaction(), since the pipeline was made';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.stats_reset IS 'when the counters were last set to zero; NULL: not since the server started';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.failures IS 'errors in a row since the last healthy period';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.retry_at IS 'when the next attempt begins; NULL when none is planned';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.started_at IS 'when the worker that runs now began';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error IS 'message of the last error; cleared by cdc_start_pipeline()';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error_sqlstate IS 'its SQLSTATE';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error_detail IS 'its detail';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error_position IS 'position in the source''s log where it happened';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_pipeline.last_error_at IS 'when it happened';

CREATE FUNCTION cdc_bridge.stat_export(OUT pipeline text, OUT pipeline_id integer, OUT owner regrole, OUT sink text,
	OUT state text, OUT pid integer, OUT slot_name text, OUT decoded_lsn pg_lsn, OUT durable_lsn pg_lsn,
	OUT confirmed_lsn pg_lsn, OUT restart_lsn pg_lsn, OUT lag_bytes bigint, OUT retained_bytes bigint,
	OUT held_by text, OUT waits_for text, OUT transactions bigint, OUT changes bigint, OUT bytes bigint, OUT flushes bigint, OUT parallel_chunks bigint, OUT tables_stopped integer, OUT stats_reset timestamptz,
	OUT failures integer, OUT retry_at timestamptz, OUT started_at timestamptz, OUT last_error text,
	OUT last_error_sqlstate text, OUT last_error_detail text, OUT last_error_hint text, OUT last_error_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'cdc_stat_export';
COMMENT ON FUNCTION cdc_bridge.stat_export() IS 'behind view pg_stat_cdc_export';

CREATE VIEW @extschema@.pg_stat_cdc_export WITH (security_barrier) AS
SELECT s.pipeline, s.pipeline_id, s.owner, s.sink, s.state, s.pid, s.slot_name, s.decoded_lsn, s.durable_lsn,
	s.confirmed_lsn, s.restart_lsn, s.lag_bytes, s.retained_bytes, s.held_by, s.waits_for, s.transactions, s.changes, s.bytes, s.flushes, s.parallel_chunks, s.tables_stopped,
	s.stats_reset, s.failures, s.retry_at, s.started_at, s.last_error, s.last_error_sqlstate, s.last_error_detail,
	s.last_error_hint, s.last_error_at
FROM cdc_bridge.stat_export() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_export IS 'one row per outgoing pipeline: state, slot, positions in this server''s log, counters, last error';
GRANT SELECT ON @extschema@.pg_stat_cdc_export TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.pipeline_id IS 'its number, as in the name of its slot';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.owner IS 'role that made it and that its worker runs as';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.sink IS 'server that the changes go to';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.state IS 'stopped, waiting, starting, streaming, retrying or failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.pid IS 'process that decodes the log; NULL when none runs';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.slot_name IS 'its replication slot; NULL before the first run';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.decoded_lsn IS 'the log is decoded up to here, and the sink has what is shipped of it; NULL: the worker has not run since the server started';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.durable_lsn IS 'the sink has everything that committed up to here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.confirmed_lsn IS 'up to here the slot was told that all has arrived';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.restart_lsn IS 'from here on the slot holds the log back';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.lag_bytes IS 'how much of the log is not decoded yet, or not in the sink';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.retained_bytes IS 'how much of the log the slot holds back';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.held_by IS 'transaction of this server that keeps it from being let go; NULL: none that is old';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.waits_for IS 'option failover: what keeps a standby from having the log that is to be decoded; NULL: nothing';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.transactions IS 'transactions shipped since stats_reset, resp. since the server started';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.changes IS 'row changes shipped, and truncations and messages in transactions';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.bytes IS 'size of what was written for them';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.flushes IS 'how often that was made durable';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.parallel_chunks IS 'pieces of tables that more than one process read while they were copied';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.tables_stopped IS 'tables whose changes are left out since an error, see pg_stat_cdc_export_table';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.stats_reset IS 'when the counters were last set to zero; NULL: not since the server started';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.failures IS 'errors in a row since the last healthy period';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.retry_at IS 'when the next attempt begins; NULL when none is planned';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.started_at IS 'when the worker that runs now began';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.last_error IS 'message of the last error; cleared by cdc_start_pipeline()';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.last_error_sqlstate IS 'its SQLSTATE';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.last_error_detail IS 'its detail';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.last_error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export.last_error_at IS 'when it happened';

CREATE FUNCTION cdc_bridge.stat_export_table(OUT pipeline text, OUT table_schema text, OUT table_name text, OUT relid oid,
	OUT state text, OUT rows_copied bigint, OUT chunks integer, OUT started_at timestamptz, OUT finished_at timestamptz,
	OUT stop_lsn pg_lsn, OUT last_error text, OUT last_error_sqlstate text, OUT last_error_detail text, OUT last_error_hint text,
	OUT stopped_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_export_table';
COMMENT ON FUNCTION cdc_bridge.stat_export_table() IS 'behind view pg_stat_cdc_export_table';

CREATE VIEW @extschema@.pg_stat_cdc_export_table WITH (security_barrier) AS
SELECT s.pipeline, s.table_schema, s.table_name, s.relid, s.state, s.rows_copied, s.chunks, s.started_at, s.finished_at,
	s.stop_lsn, s.last_error, s.last_error_sqlstate, s.last_error_detail, s.last_error_hint, s.stopped_at
FROM cdc_bridge.stat_export_table() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_export_table IS 'one row per table that an outgoing pipeline copies, has copied, or has stopped: how far it is';
GRANT SELECT ON @extschema@.pg_stat_cdc_export_table TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.table_schema IS 'schema of the table when it was last looked at';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.table_name IS 'its name; a partition is a table of its own here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.relid IS 'its OID';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.state IS 'snapshot: its rows are being copied; streaming: they are all there; stopped: its changes are left out since an error';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.rows_copied IS 'rows that the sink got';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.chunks IS 'in so many pieces, each with a snapshot of its own';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.started_at IS 'when the copy was asked for, or began anew';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.finished_at IS 'when all of it was in the sink; NULL: not yet';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.stop_lsn IS 'place in the log from which on its changes are left out; NULL: it is not stopped';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.last_error IS 'why it is stopped';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.last_error_sqlstate IS 'SQLSTATE of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.last_error_detail IS 'detail of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.last_error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_export_table.stopped_at IS 'when that was';

CREATE FUNCTION cdc_bridge.stat_table(OUT pipeline text, OUT source_schema text, OUT source_table text,
	OUT target_schema text, OUT target_table text, OUT state text, OUT inserts bigint, OUT updates bigint,
	OUT deletes bigint, OUT conflicts bigint, OUT values_replaced bigint, OUT dead_letters bigint, OUT dead_letters_lost bigint, OUT tier text,
	OUT collapsed boolean, OUT rows_copied bigint, OUT last_change_at timestamptz,
	OUT stop_position text, OUT last_error text, OUT last_error_sqlstate text, OUT last_error_detail text,
	OUT last_error_hint text, OUT last_error_at timestamptz, OUT chunks integer, OUT rows_estimated bigint,
	OUT percent numeric, OUT bar text, OUT started_at timestamptz, OUT finished_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_table';
COMMENT ON FUNCTION cdc_bridge.stat_table() IS 'behind views pg_stat_cdc_table and pg_stat_cdc_snapshot';

CREATE VIEW @extschema@.pg_stat_cdc_table WITH (security_barrier) AS
SELECT s.pipeline, s.source_schema, s.source_table, s.target_schema, s.target_table, s.state, s.inserts, s.updates,
	s.deletes, s.conflicts, s.values_replaced, s.dead_letters, s.dead_letters_lost, s.tier, s.collapsed, s.rows_copied, s.last_change_at, s.stop_position, s.last_error, s.last_error_sqlstate,
	s.last_error_detail, s.last_error_hint, s.last_error_at
FROM cdc_bridge.stat_table() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_table IS 'one row per table of a pipeline: state, counters, why it stopped';
GRANT SELECT ON @extschema@.pg_stat_cdc_table TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.source_schema IS 'schema (database) at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.source_table IS 'table at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.target_schema IS 'schema here, as it is called now';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.target_table IS 'table here, as it is called now';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.state IS 'snapshot, catchup, streaming or stopped';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.inserts IS 'rows inserted by the stream';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.updates IS 'rows updated by the stream';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.deletes IS 'rows deleted by the stream';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.conflicts IS 'inserts that found a row, updates and deletes that found none, while streaming';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.values_replaced IS 'values that a policy (options zero_date, nul_bytes, invalid_bytes) changed, in copied rows and each time the stream wrote them';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.dead_letters IS 'changes that could not be applied and were kept, see cdc_dead_letters';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.dead_letters_lost IS 'of these: removed by age or number (options dead_letter_max_days, dead_letter_max_rows) while they were still to be applied';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.tier IS 'how the stream writes rows: lean (many at a time), executor (one by one: row triggers, deferrable constraints) or sql (foreign tables, views); NULL before its first change';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.collapsed IS 'whether the changes of a batch are reduced to what they come to for each key';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.rows_copied IS 'rows read by the snapshot';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_change_at IS 'when the last change was applied';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.stop_position IS 'stopped tables: changes of transactions from here on are not applied; NULL: none are';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_error IS 'why it stopped';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_error_sqlstate IS 'SQLSTATE of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_error_detail IS 'detail of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_table.last_error_at IS 'when it stopped';

CREATE VIEW @extschema@.pg_stat_cdc_snapshot WITH (security_barrier) AS
SELECT s.pipeline, s.source_schema, s.source_table, s.state, s.chunks, s.rows_copied, s.rows_estimated, s.percent,
	s.bar, s.started_at, s.finished_at
FROM cdc_bridge.stat_table() AS s
WHERE s.started_at IS NOT NULL;
COMMENT ON VIEW @extschema@.pg_stat_cdc_snapshot IS 'one row per table whose initial copy has begun: how far it is';
GRANT SELECT ON @extschema@.pg_stat_cdc_snapshot TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.source_schema IS 'schema (database) at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.source_table IS 'table at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.state IS 'snapshot, catchup, streaming or stopped';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.chunks IS 'chunks copied';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.rows_copied IS 'rows read from the source so far';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.rows_estimated IS 'the source''s own estimate of the table''s rows; NULL when it has none';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.percent IS 'rows_copied of rows_estimated, below 100 until the copy is complete; NULL when not known';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.bar IS 'the same to look at';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.started_at IS 'when the copy began';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_snapshot.finished_at IS 'when the last chunk was there';

CREATE FUNCTION cdc_bridge.stat_dead_letter(OUT pipeline text, OUT dead_letter_id bigint, OUT source_schema text,
	OUT source_table text, OUT state text, OUT file text, OUT "offset" bigint, OUT gtid text, OUT action bigint, OUT operation text,
	OUT before jsonb, OUT after jsonb, OUT error text, OUT error_sqlstate text, OUT error_detail text,
	OUT error_hint text, OUT changed_at timestamptz, OUT created_at timestamptz, OUT attempts integer, OUT last_attempt_at timestamptz,
	OUT settled_at timestamptz, OUT reason text, OUT request bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_dead_letter';
COMMENT ON FUNCTION cdc_bridge.stat_dead_letter() IS 'behind view cdc_dead_letters';

CREATE VIEW @extschema@.cdc_dead_letters WITH (security_barrier) AS
SELECT s.pipeline, s.dead_letter_id, s.source_schema, s.source_table, s.state, s.file, s."offset", s.gtid, s.action, s.operation,
	s.before, s.after, s.error, s.error_sqlstate, s.error_detail, s.error_hint, s.changed_at, s.created_at, s.attempts,
	s.last_attempt_at, s.settled_at, s.reason, s.request
FROM cdc_bridge.stat_dead_letter() AS s;
COMMENT ON VIEW @extschema@.cdc_dead_letters IS 'changes that could not be applied (option on_error), for the owner of the pipeline';
GRANT SELECT ON @extschema@.cdc_dead_letters TO PUBLIC;

COMMENT ON COLUMN @extschema@.cdc_dead_letters.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.dead_letter_id IS 'number of the dead letter';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.source_schema IS 'schema (database) at the source';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.source_table IS 'table at the source';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.state IS 'waiting; failed (again, in a replay); replayed; superseded (nothing is left to be done, see reason); discarded';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.file IS 'binary log file of the source transaction; NULL: a row of a copy';
COMMENT ON COLUMN @extschema@.cdc_dead_letters."offset" IS 'where the source transaction starts in it';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.gtid IS 'its GTID; NULL when the source writes none';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.action IS 'which change of the transaction it is: 1, 2, ...';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.operation IS 'insert, update, delete, or snapshot: a row of a copy';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.before IS 'the row before the change: column -> text, null, {"hex": bytes}, or {"raw": bytes} that could not be read';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.after IS 'the row after the change, likewise';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.error IS 'why it could not be applied, the last time it was tried';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.error_sqlstate IS 'SQLSTATE of that';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.error_detail IS 'detail of that';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.changed_at IS 'when the source made the change; NULL: a row of a copy';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.created_at IS 'when it was kept';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.attempts IS 'how often it was tried: 1, and one for each replay';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.last_attempt_at IS 'when it was last tried';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.settled_at IS 'when it was replayed, superseded or discarded; NULL: not yet';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.reason IS 'why it was superseded or discarded';
COMMENT ON COLUMN @extschema@.cdc_dead_letters.request IS 'newest request of cdc_replay_dead_letters() or cdc_discard_dead_letters() that took it up';

CREATE FUNCTION @extschema@.cdc_replay_dead_letters(pipeline text, tables text[] DEFAULT NULL, ids bigint[] DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_replay_dead_letters';
COMMENT ON FUNCTION @extschema@.cdc_replay_dead_letters(text, text[], bigint[]) IS 'ask for dead letters to be applied, in the order of their changes; returns the request''s number';
REVOKE ALL ON FUNCTION @extschema@.cdc_replay_dead_letters(text, text[], bigint[]) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_discard_dead_letters(pipeline text, tables text[] DEFAULT NULL, ids bigint[] DEFAULT NULL, reason text DEFAULT NULL)
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_discard_dead_letters';
COMMENT ON FUNCTION @extschema@.cdc_discard_dead_letters(text, text[], bigint[], text) IS 'ask for dead letters to be given up; returns the request''s number';
REVOKE ALL ON FUNCTION @extschema@.cdc_discard_dead_letters(text, text[], bigint[], text) FROM PUBLIC;

CREATE FUNCTION cdc_bridge.stat_dead_letter_request(OUT pipeline text, OUT request bigint, OUT kind text, OUT tables text[], OUT ids text[],
	OUT reason text, OUT state text, OUT settled bigint, OUT failed bigint, OUT left_alone bigint, OUT requested_by regrole,
	OUT requested_at timestamptz, OUT started_at timestamptz, OUT finished_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_dead_letter_request';
COMMENT ON FUNCTION cdc_bridge.stat_dead_letter_request() IS 'behind view cdc_dead_letter_requests';

CREATE VIEW @extschema@.cdc_dead_letter_requests WITH (security_barrier) AS
SELECT s.pipeline, s.request, s.kind, s.tables, s.ids::bigint[] AS ids, s.reason, s.state, s.settled, s.failed, s.left_alone, s.requested_by,
	s.requested_at, s.started_at, s.finished_at
FROM cdc_bridge.stat_dead_letter_request() AS s;
COMMENT ON VIEW @extschema@.cdc_dead_letter_requests IS 'what cdc_replay_dead_letters() and cdc_discard_dead_letters() were asked for, and what came of it';
GRANT SELECT ON @extschema@.cdc_dead_letter_requests TO PUBLIC;

COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.request IS 'number that the function returned';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.kind IS 'replay or discard';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.tables IS 'patterns of source tables; NULL: all';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.ids IS 'numbers of dead letters; NULL: all';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.reason IS 'why they were given up, as whoever asked for it said';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.state IS 'queued, running, done, or failed: given up after several workers ended with it';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.settled IS 'dead letters that were replayed, resp. discarded';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.failed IS 'dead letters that could not be applied again';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.left_alone IS 'dead letters of tables that are stopped, or have left the pipeline: they were not tried';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.requested_by IS 'role that asked for it';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.requested_at IS 'when';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.started_at IS 'when the worker took it up';
COMMENT ON COLUMN @extschema@.cdc_dead_letter_requests.finished_at IS 'when it ended';

CREATE FUNCTION cdc_bridge.stat_schema_history(OUT pipeline text, OUT change_no integer, OUT source_schema text,
	OUT source_table text, OUT file text, OUT "offset" bigint, OUT gtid text, OUT source_time timestamptz, OUT kinds text[],
	OUT statement text, OUT commands text[], OUT result text, OUT error text, OUT error_sqlstate text, OUT error_detail text,
	OUT error_hint text, OUT created_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_schema_history';
COMMENT ON FUNCTION cdc_bridge.stat_schema_history() IS 'behind view cdc_schema_history';

CREATE VIEW @extschema@.cdc_schema_history WITH (security_barrier) AS
SELECT s.pipeline, s.change_no, s.source_schema, s.source_table, s.file, s."offset", s.gtid, s.source_time, s.kinds,
	s.statement, s.commands, s.result, s.error, s.error_sqlstate, s.error_detail, s.error_hint, s.created_at
FROM cdc_bridge.stat_schema_history() AS s;
COMMENT ON VIEW @extschema@.cdc_schema_history IS 'changes of source tables'' shapes and what was done to the targets (option schema_changes), for the owner of the pipeline';
GRANT SELECT ON @extschema@.cdc_schema_history TO PUBLIC;

COMMENT ON COLUMN @extschema@.cdc_schema_history.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.cdc_schema_history.change_no IS 'number of the change in its pipeline: 1, 2, ...';
COMMENT ON COLUMN @extschema@.cdc_schema_history.source_schema IS 'schema (database) at the source';
COMMENT ON COLUMN @extschema@.cdc_schema_history.source_table IS 'table at the source, as it was called before the change';
COMMENT ON COLUMN @extschema@.cdc_schema_history.file IS 'log file of the statement, or of the transaction that showed the change';
COMMENT ON COLUMN @extschema@.cdc_schema_history."offset" IS 'where that starts in it';
COMMENT ON COLUMN @extschema@.cdc_schema_history.gtid IS 'its GTID, NULL when the source writes none; of an outgoing pipeline the LSN of its commit';
COMMENT ON COLUMN @extschema@.cdc_schema_history.source_time IS 'when it was carried out, by the source''s clock';
COMMENT ON COLUMN @extschema@.cdc_schema_history.kinds IS 'what changed: add_column, drop_column, ...';
COMMENT ON COLUMN @extschema@.cdc_schema_history.statement IS 'the source''s statement; NULL: rows showed the change, no statement told it; of an outgoing pipeline its kind';
COMMENT ON COLUMN @extschema@.cdc_schema_history.commands IS 'statements that were run here for it, in order';
COMMENT ON COLUMN @extschema@.cdc_schema_history.result IS 'applied, ignored, failed (the table goes on without it) or stopped (the table stopped)';
COMMENT ON COLUMN @extschema@.cdc_schema_history.error IS 'why it was ignored, failed or stopped the table';
COMMENT ON COLUMN @extschema@.cdc_schema_history.error_sqlstate IS 'SQLSTATE of that';
COMMENT ON COLUMN @extschema@.cdc_schema_history.error_detail IS 'detail of that';
COMMENT ON COLUMN @extschema@.cdc_schema_history.error_hint IS 'what to do about it';
COMMENT ON COLUMN @extschema@.cdc_schema_history.created_at IS 'when it was written down';

CREATE FUNCTION cdc_bridge.stat_prepared(OUT pipeline text, OUT xid text, OUT file text, OUT "offset" bigint,
	OUT prepared_at timestamptz, OUT source_tables text[], OUT changes bigint, OUT bytes bigint)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_prepared';
COMMENT ON FUNCTION cdc_bridge.stat_prepared() IS 'behind view cdc_prepared_transactions';

CREATE VIEW @extschema@.cdc_prepared_transactions WITH (security_barrier) AS
SELECT s.pipeline, s.xid, s.file, s."offset", s.prepared_at, s.source_tables, s.changes, s.bytes
FROM cdc_bridge.stat_prepared() AS s;
COMMENT ON VIEW @extschema@.cdc_prepared_transactions IS 'XA transactions of the source that are prepared and have not ended';
GRANT SELECT ON @extschema@.cdc_prepared_transactions TO PUBLIC;

COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.xid IS 'its name, as XA COMMIT takes it';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.file IS 'binary log file of its changes; NULL when it was prepared before the pipeline began, and what it changed is not known';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions."offset" IS 'where they start in it';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.prepared_at IS 'when it was prepared, by the clock of the source';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.source_tables IS 'all tables that it changed, mirrored or not; NULL when they are too many, or not known';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.changes IS 'changes of mirrored tables that are kept until its XA COMMIT or XA ROLLBACK';
COMMENT ON COLUMN @extschema@.cdc_prepared_transactions.bytes IS 'size of what is kept';

CREATE FUNCTION cdc_bridge.stat_index(OUT pipeline text, OUT source_schema text, OUT source_table text,
	OUT source_index text, OUT target_schema text, OUT target_table text, OUT target_index text, OUT is_unique boolean,
	OUT state text, OUT reason text, OUT statement text, OUT started_at timestamptz, OUT finished_at timestamptz,
	OUT last_error text, OUT last_error_sqlstate text, OUT last_error_detail text, OUT last_error_hint text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_index';
COMMENT ON FUNCTION cdc_bridge.stat_index() IS 'behind view pg_stat_cdc_index';

CREATE VIEW @extschema@.pg_stat_cdc_index WITH (security_barrier) AS
SELECT s.pipeline, s.source_schema, s.source_table, s.source_index, s.target_schema, s.target_table, s.target_index,
	s.is_unique, s.state, s.reason, s.statement, s.started_at, s.finished_at, s.last_error, s.last_error_sqlstate,
	s.last_error_detail, s.last_error_hint
FROM cdc_bridge.stat_index() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_index IS 'one row per unique and secondary index of a pipeline''s source tables: what became of it here';
GRANT SELECT ON @extschema@.pg_stat_cdc_index TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.source_schema IS 'schema (database) at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.source_table IS 'table at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.source_index IS 'name of the index at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.target_schema IS 'schema here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.target_table IS 'table here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.target_index IS 'index here that stands for it; NULL: there is none yet';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.is_unique IS 'whether it is unique at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.state IS 'wanted, building, built, dropped, left_out or failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.reason IS 'why it is left out';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.statement IS 'statement that makes it; NULL when nothing here is like it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.started_at IS 'when its build last began';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.finished_at IS 'when it was built, or failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.last_error IS 'why it failed; it is tried again by cdc_start_pipeline() after a stop';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.last_error_sqlstate IS 'SQLSTATE of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.last_error_detail IS 'detail of that';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_index.last_error_hint IS 'what to do about it';

CREATE FUNCTION cdc_bridge.stat_position(OUT pipeline text, OUT pipeline_id integer, OUT identity text,
	OUT file text, OUT "offset" bigint, OUT gtids text, OUT committed_at timestamptz, OUT file_created timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'cdc_stat_position';
COMMENT ON FUNCTION cdc_bridge.stat_position() IS 'behind view cdc_bridge.position';

CREATE VIEW cdc_bridge.position WITH (security_barrier) AS
SELECT s.pipeline, s.pipeline_id, s.identity, s.file, s."offset", s.gtids, s.committed_at, s.file_created
FROM cdc_bridge.stat_position() AS s;
COMMENT ON VIEW cdc_bridge.position IS 'durable position of each pipeline, folded from the two position tables it uses in turn';
GRANT SELECT ON cdc_bridge.position TO PUBLIC;

COMMENT ON COLUMN cdc_bridge.position.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN cdc_bridge.position.pipeline_id IS 'its number';
COMMENT ON COLUMN cdc_bridge.position.identity IS 'server that file and offset belong to';
COMMENT ON COLUMN cdc_bridge.position.file IS 'binary log file';
COMMENT ON COLUMN cdc_bridge.position."offset" IS 'offset in it';
COMMENT ON COLUMN cdc_bridge.position.gtids IS 'set of GTIDs that are applied';
COMMENT ON COLUMN cdc_bridge.position.committed_at IS 'when the newest position row was written here';
COMMENT ON COLUMN cdc_bridge.position.file_created IS 'when the source made the file, which tells it from one of the same name after a reset of the log';

-- ------------------------------------------------------------------------------------------------------- comparison
-- The functions look themselves whose pipeline it is: only roles with the privileges of the pipeline's owner may ask for
-- a comparison or read keys of rows. Views are as the others.

CREATE FUNCTION @extschema@.cdc_verify(pipeline text, tables text[] DEFAULT NULL, mode text DEFAULT 'full')
RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_verify';
COMMENT ON FUNCTION @extschema@.cdc_verify(text, text[], text) IS 'ask for a comparison of mirrored tables with their source; returns the request''s number';
REVOKE ALL ON FUNCTION @extschema@.cdc_verify(text, text[], text) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_cancel_verify(request bigint)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cdc_cancel_verify';
COMMENT ON FUNCTION @extschema@.cdc_cancel_verify(bigint) IS 'give a comparison up; what it found so far stays';
REVOKE ALL ON FUNCTION @extschema@.cdc_cancel_verify(bigint) FROM PUBLIC;

CREATE FUNCTION @extschema@.cdc_verify_differences(request bigint)
RETURNS TABLE(source_schema text, source_table text, target_schema text, target_table text, kind text, key text[],
	columns text[], rows bigint)
LANGUAGE C STABLE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_verify_differences';
COMMENT ON FUNCTION @extschema@.cdc_verify_differences(bigint) IS 'rows that a comparison found missing, extra or different';
-- It shows keys of rows.
REVOKE ALL ON FUNCTION @extschema@.cdc_verify_differences(bigint) FROM PUBLIC;

-- As cdc_wait_for_pipeline.
CREATE PROCEDURE @extschema@.cdc_wait_for_verify(request bigint, timeout interval DEFAULT NULL)
LANGUAGE C
AS 'MODULE_PATHNAME', 'cdc_wait_for_verify';
COMMENT ON PROCEDURE @extschema@.cdc_wait_for_verify(bigint, interval) IS 'wait until a comparison has ended';

CREATE FUNCTION cdc_bridge.stat_verify(OUT request bigint, OUT pipeline text, OUT mode text, OUT request_state text,
	OUT source_schema text, OUT source_table text, OUT target_schema text, OUT target_table text, OUT state text,
	OUT reason text, OUT rows_source bigint, OUT rows_target bigint, OUT missing bigint, OUT extra bigint,
	OUT different bigint, OUT unsettled bigint, OUT chunks integer, OUT chunks_by_sum integer, OUT rows_read bigint,
	OUT method text, OUT position_file text, OUT position_offset bigint,
	OUT requested_by regrole, OUT requested_at timestamptz, OUT started_at timestamptz, OUT finished_at timestamptz,
	OUT pid integer, OUT last_error text, OUT last_error_sqlstate text, OUT last_error_detail text,
	OUT last_error_hint text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 100
AS 'MODULE_PATHNAME', 'cdc_stat_verify';
COMMENT ON FUNCTION cdc_bridge.stat_verify() IS 'behind view pg_stat_cdc_verify';

CREATE VIEW @extschema@.pg_stat_cdc_verify WITH (security_barrier) AS
SELECT s.request, s.pipeline, s.mode, s.request_state, s.source_schema, s.source_table, s.target_schema,
	s.target_table, s.state, s.reason, s.rows_source, s.rows_target, s.missing, s.extra, s.different, s.unsettled,
	s.chunks, s.chunks_by_sum, s.rows_read, s.method, s.position_file, s.position_offset, s.requested_by,
	s.requested_at, s.started_at, s.finished_at, s.pid, s.last_error, s.last_error_sqlstate, s.last_error_detail, s.last_error_hint
FROM cdc_bridge.stat_verify() AS s;
COMMENT ON VIEW @extschema@.pg_stat_cdc_verify IS 'one row per comparison and table: what cdc_verify() found';
GRANT SELECT ON @extschema@.pg_stat_cdc_verify TO PUBLIC;

COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.request IS 'number that cdc_verify() returned';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.pipeline IS 'name of the pipeline';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.mode IS 'count, sample or full';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.request_state IS 'queued, running, done, failed or cancelled: the request as a whole';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.source_schema IS 'schema (database) at the source; NULL before a worker has begun with the request';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.source_table IS 'table at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.target_schema IS 'schema here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.target_table IS 'table here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.state IS 'queued, running, done, skipped, failed or cancelled: this table';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.reason IS 'why it was skipped or failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.rows_source IS 'rows compared (mode count: counted) at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.rows_target IS 'rows looked at (modes count and sample: counted) here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.missing IS 'rows that are at the source and not here';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.extra IS 'rows that are here and not at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.different IS 'rows with other values here than at the source';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.unsettled IS 'rows that changed so often that they could not be compared';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.chunks IS 'chunks compared';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.chunks_by_sum IS 'of these: those that were equal by the sums of both servers, so that their rows were not read';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.rows_read IS 'rows that were read from the source with all columns, because their chunk differed or the table has no sums';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.method IS 'sums, columns (sums, and the columns that have none are read), rows, multiset (the source table has no key) or count; NULL: not begun';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.position_file IS 'tables that are done: binary log file of the position that was applied here when the comparison ended';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.position_offset IS 'offset in it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.requested_by IS 'role that asked for it';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.requested_at IS 'when';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.started_at IS 'when the table was begun; the request, while it has no tables';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.finished_at IS 'when the table was finished; the request, when it has no tables';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.pid IS 'process that works on it; NULL when none does';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.last_error IS 'why the request failed';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.last_error_sqlstate IS 'its SQLSTATE';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.last_error_detail IS 'its detail';
COMMENT ON COLUMN @extschema@.pg_stat_cdc_verify.last_error_hint IS 'what to do about it';
