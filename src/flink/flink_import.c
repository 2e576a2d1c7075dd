/*-------------------------------------------------------------------------
 *
 * flink_import.c
 *	  A pipeline of Flink CDC -> items, and the statements that make it here.
 *
 * NOTES
 *	  Everything that the text says gives an item, and so does each default that is
 *	  another one than ours: nothing is left out silently. What belongs to Flink's
 *	  own running (checkpoints, memory, operators) has no counterpart.
 *
 *	  The sink of the text becomes this database.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/json.h"

#include "flink/flink.h"

#define SECRET "********"

/* What is gathered while the sections are gone through. */
typedef struct Import
{
	List	   *items;			/* of FlinkItem */
	char	   *name;
	char	   *target_schema;
	StringInfoData server;		/* options of the SERVER, as SQL */
	StringInfoData options;		/* members of the pipeline's options, as JSON */
	List	   *tables;			/* our patterns */
	char	   *username;
	char	   *start_file;		/* where the stream begins; NULL: nowhere in particular */
	char	   *start_offset;
	char	   *start_gtids;
} Import;

const char *
flink_status_name(FlinkStatus status)
{
	return status == FLINK_TRANSLATED ? "translated" : status == FLINK_DIFFERS ? "differs" : "no counterpart";
}

static void
add_item(Import *import, const char *kind, const char *item, FlinkStatus status, const char *detail)
{
	FlinkItem  *row = palloc0(sizeof(FlinkItem));

	row->kind = kind;
	row->item = pstrdup(item);
	row->status = status;
	row->detail = detail != NULL ? pstrdup(detail) : NULL;
	import->items = lappend(import->items, row);
}

static void
add_statement(Import *import, const char *item, char *sql, const char *detail)
{
	FlinkItem  *row;

	add_item(import, "script", item, FLINK_TRANSLATED, detail);
	row = llast(import->items);
	row->sql = sql;
}

/* ---- values ---- */

static const char *
scalar(const FlinkNode *node, const char *key)
{
	if (node->kind != FLINK_SCALAR)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is not a plain value", key),
				 errdetail("Line %d.", node->line)));
	return node->text;
}

static const FlinkNode *
section(const FlinkNode *root, const char *name, FlinkNodeKind kind)
{
	const FlinkNode *node = flink_member(root, name);

	if (node != NULL && node->kind == FLINK_SCALAR && node->is_null)
		return NULL;
	if (node != NULL && node->kind != kind)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("section \"%s\" is not a %s", name, kind == FLINK_MAP ? "mapping" : "list"),
				 errdetail("Line %d.", node->line)));
	return node;
}

static bool
is_true(const char *text)
{
	return pg_strcasecmp(text, "true") == 0;
}

/* A whole number from 1 to max? */
static bool
is_number(const char *text, long max)
{
	size_t		digits = strspn(text, "0123456789");

	return digits > 0 && text[digits] == '\0' && digits <= 9 && atol(text) > 0 && atol(text) <= max;
}

/* "30s", "500 ms", "2 min": in milliseconds; -1: no duration. Without a unit it is milliseconds. */
static int64
duration_ms(const char *text)
{
	static const struct
	{
		const char *unit;
		int64		ms;
	}			units[] = {{"ms", 1}, {"milli", 1}, {"s", 1000}, {"sec", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
	char	   *end;
	long		value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || errno != 0 || value < 0 || value > 86400000)
		return -1;
	end += strspn(end, " ");
	if (*end == '\0')
		return value;
	for (size_t i = 0; i < lengthof(units); i++)
	{
		if (pg_strcasecmp(end, units[i].unit) == 0)
			return value * units[i].ms;
	}
	return -1;
}

static void
server_option(Import *import, const char *name, const char *value)
{
	appendStringInfo(&import->server, "%s%s %s", import->server.len > 0 ? ", " : "", name, quote_literal_cstr(value));
}

static void
begin_option(Import *import, const char *name)
{
	appendStringInfo(&import->options, "%s\"%s\": ", import->options.len > 0 ? ", " : "", name);
}

static void
text_option(Import *import, const char *name, const char *value)
{
	begin_option(import, name);
	escape_json(&import->options, value);
}

static void
raw_option(Import *import, const char *name, const char *json)
{
	begin_option(import, name);
	appendStringInfoString(&import->options, json);
}

/* ---- section source ---- */

/* Options that have no counterpart, and why none is needed or what stands for it. A name that ends with '.' is a prefix. */
static const struct
{
	const char *name;
	const char *why;
}			source_without[] = {
	{"name", "A label; nothing depends on it."},
	{"connect.max-retries", "A worker that cannot connect comes back for ever, less and less often."},
	{"connection.pool.size", "The stream has one connection, and each worker of the copy one."},
	{"scan.snapshot.fetch.size", "Rows of a chunk come as the source sends them."},
	{"scan.incremental.snapshot.enabled", "The copy is always cut into chunks, without locks."},
	{"scan.incremental.close-idle-reader.enabled", "Workers of the copy leave when it is done."},
	{"scan.incremental.snapshot.backfill.skip", "Stream and chunks run side by side and always come out exact."},
	{"scan.incremental.snapshot.unbounded-chunk-first.enabled", "The plan of a copy ends at the last key there is, so no chunk is unbounded."},
	{"scan.incremental.snapshot.assign-ending-chunk-first", "The plan of a copy ends at the last key there is, so no chunk is unbounded."},
	{"scan.incremental.snapshot.chunk.key-column", "Chunks are cut by the primary key, or a unique key of NOT NULL columns."},
	{"chunk-key.even-distribution.factor.lower-bound", "Chunks are cut by the keys that there are."},
	{"chunk-key.even-distribution.factor.upper-bound", "Chunks are cut by the keys that there are."},
	{"chunk-meta.group.size", "The plan of a copy stands in cdc_bridge.snapshot_chunk."},
	{"use.legacy.json.format", "JSON goes to jsonb."},
	{"scan.read-changelog-as-append-only.enabled", "Targets are mirrors."},
	{"jdbc.properties.", "There is no JDBC here; TLS is asked for by sslmode and ssl_ca on the SERVER."},
	{"debezium.", "There is no Debezium here."},
	{"server-time-zone", "TIMESTAMP values are instants and are read in UTC; DATETIME values have no zone."},
};

static const char *
why_without(const char *name)
{
	for (size_t i = 0; i < lengthof(source_without); i++)
	{
		const char *known = source_without[i].name;
		size_t		len = strlen(known);

		if (known[len - 1] == '.' ? strncmp(name, known, len) == 0 : strcmp(name, known) == 0)
			return source_without[i].why;
	}
	return NULL;
}

static void
import_tables(Import *import, const char *item, const FlinkNode *node, bool exclude)
{
	ListCell   *lc;

	foreach(lc, flink_patterns(scalar(node, item), node->line))
	{
		const FlinkPattern *pattern = lfirst(lc);

		/* leaving out too much would lose tables without a word */
		if (exclude && !pattern->is_exact)
			add_item(import, "source", item, FLINK_NONE,
					 psprintf("\"%s\" cannot be said with * and ?: leave these tables out one by one, with cdc_remove_table() or \"!\" in front.", pattern->text));
		else if (!pattern->is_exact)
			add_item(import, "source", item, FLINK_DIFFERS,
					 psprintf("\"%s\" cannot be said with * and ?: \"%s\" fits more tables, which have to be left out with \"!\" in front.", pattern->text, pattern->glob));
		else
			add_item(import, "source", item, FLINK_TRANSLATED, psprintf("\"%s\" is \"%s%s\"", pattern->text, exclude ? "!" : "", pattern->glob));
		if (!exclude || pattern->is_exact)
			import->tables = lappend(import->tables, psprintf("%s%s", exclude ? "!" : "", pattern->glob));
	}
}

static void
import_server_id(Import *import, const char *value)
{
	size_t		digits = strspn(value, "0123456789");

	if (digits == 0 || digits > 9)
	{
		add_item(import, "source", "server-id", FLINK_NONE, "A number is chosen that is unique for the pipeline.");
		return;
	}
	server_option(import, "server_id", pnstrdup(value, digits));
	add_item(import, "source", "server-id", value[digits] == '\0' ? FLINK_TRANSLATED : FLINK_DIFFERS,
			 value[digits] == '\0' ? "server_id of the SERVER"
			 : "One connection reads the log, so it takes the first number. End Flink's job before the pipeline starts: two readers of one number throw each other out.");
}

static void
import_startup(Import *import, const FlinkNode *source, const char *mode)
{
	const FlinkNode *file = flink_member(source, "scan.startup.specific-offset.file");
	const FlinkNode *pos = flink_member(source, "scan.startup.specific-offset.pos");
	const FlinkNode *gtids = flink_member(source, "scan.startup.specific-offset.gtid-set");

	if (pg_strcasecmp(mode, "initial") == 0)
		add_item(import, "source", "scan.startup.mode", FLINK_TRANSLATED, "snapshot \"initial\", the default");
	else if (pg_strcasecmp(mode, "snapshot") == 0)
	{
		text_option(import, "snapshot", "only");
		add_item(import, "source", "scan.startup.mode", FLINK_TRANSLATED, "snapshot \"only\"");
	}
	else if (pg_strcasecmp(mode, "latest-offset") == 0)
	{
		text_option(import, "snapshot", "schema_only");
		add_item(import, "source", "scan.startup.mode", FLINK_TRANSLATED, "snapshot \"schema_only\": the tables are made, and filled from the end of the log on");
	}
	else if (pg_strcasecmp(mode, "specific-offset") == 0 && (gtids != NULL || (file != NULL && pos != NULL)))
	{
		text_option(import, "snapshot", "never");
		import->start_file = file != NULL && pos != NULL ? pstrdup(scalar(file, "scan.startup.specific-offset.file")) : NULL;
		import->start_offset = import->start_file != NULL ? pstrdup(scalar(pos, "scan.startup.specific-offset.pos")) : NULL;
		import->start_gtids = gtids != NULL ? pstrdup(scalar(gtids, "scan.startup.specific-offset.gtid-set")) : NULL;
		add_item(import, "source", "scan.startup.mode", FLINK_DIFFERS, "snapshot \"never\" and cdc_set_position(): the target tables have to be there before.");
	}
	else
		add_item(import, "source", "scan.startup.mode", FLINK_NONE,
				 psprintf("\"%s\": a stream begins with a copy, at the end of the log (snapshot \"schema_only\"), or at a place that cdc_set_position() is given.", mode));
}

static void
import_duration(Import *import, const char *item, const char *value, const char *option, int64 unit, int64 min, int64 max)
{
	int64		ms = duration_ms(value);
	int64		number = Min(Max(ms / unit, min), max);

	if (ms < 0)
	{
		add_item(import, "source", item, FLINK_NONE, psprintf("\"%s\" is not a duration.", value));
		return;
	}
	server_option(import, option, psprintf(INT64_FORMAT, number));
	add_item(import, "source", item, number * unit == ms ? FLINK_TRANSLATED : FLINK_DIFFERS,
			 psprintf("%s " INT64_FORMAT " of the SERVER%s", option, number, number * unit == ms ? "" : ", the nearest that it can be"));
}

/* One option of the source. */
static void
import_source_option(Import *import, const FlinkNode *source, const char *key, const FlinkNode *node)
{
	const char *value = scalar(node, key);

	if (strcmp(key, "type") == 0)
		add_item(import, "source", key, FLINK_TRANSLATED, "SERVER of cdc_mysql, for MySQL and MariaDB");
	else if (strcmp(key, "hostname") == 0)
	{
		server_option(import, "host", value);
		add_item(import, "source", key, FLINK_TRANSLATED, "host of the SERVER");
	}
	else if (strcmp(key, "port") == 0 && !is_number(value, 65535))
		add_item(import, "source", key, FLINK_NONE, "It is not the number of a port: give the SERVER the right one.");
	else if (strcmp(key, "port") == 0)
	{
		server_option(import, "port", value);
		add_item(import, "source", key, FLINK_TRANSLATED, "port of the SERVER");
	}
	else if (strcmp(key, "username") == 0)
	{
		import->username = pstrdup(value);
		add_item(import, "source", key, FLINK_TRANSLATED, "username of the USER MAPPING");
	}
	else if (strcmp(key, "password") == 0)
		add_item(import, "source", key, FLINK_DIFFERS, "Secrets are not repeated: put it in the place of '" SECRET "' in the USER MAPPING.");
	else if (strcmp(key, "tables") == 0 || strcmp(key, "tables.exclude") == 0)
		import_tables(import, key, node, strcmp(key, "tables.exclude") == 0);
	else if (strcmp(key, "server-id") == 0)
		import_server_id(import, value);
	else if (strcmp(key, "scan.startup.mode") == 0)
		import_startup(import, source, value);
	else if (strncmp(key, "scan.startup.specific-offset.", 29) == 0 &&
			 (strcmp(key + 29, "file") == 0 || strcmp(key + 29, "pos") == 0 || strcmp(key + 29, "gtid-set") == 0))
		add_item(import, "source", key, FLINK_TRANSLATED, "see scan.startup.mode");
	else if (strcmp(key, "scan.incremental.snapshot.chunk.size") == 0 && strspn(value, "0123456789") == strlen(value) && atol(value) > 0)
	{
		raw_option(import, "snapshot_chunk_rows", psprintf("%ld", Min(atol(value), 1000000L)));
		add_item(import, "source", key, FLINK_TRANSLATED, "snapshot_chunk_rows");
	}
	else if (strcmp(key, "connect.timeout") == 0)
		import_duration(import, key, value, "connect_timeout", 1000, 1, 300);
	else if (strcmp(key, "heartbeat.interval") == 0)
		import_duration(import, key, value, "heartbeat_interval", 1, 100, 60000);
	else if (strcmp(key, "treat-tinyint1-as-boolean.enabled") == 0)
	{
		raw_option(import, "tinyint1_as_boolean", is_true(value) ? "true" : "false");
		add_item(import, "source", key, FLINK_TRANSLATED, "tinyint1_as_boolean");
	}
	else if (strcmp(key, "schema-change.enabled") == 0)
		add_item(import, "source", key, is_true(value) ? FLINK_TRANSLATED : FLINK_DIFFERS,
				 is_true(value) ? "Changes of shape are seen always." : "Changes of shape are seen always; schema_changes \"ignore\" leaves the targets as they are.");
	else if (strcmp(key, "include-comments.enabled") == 0)
		add_item(import, "source", key, is_true(value) ? FLINK_TRANSLATED : FLINK_DIFFERS, "Comments of tables and columns come along.");
	else if (strcmp(key, "scan.newly-added-table.enabled") == 0 || strcmp(key, "scan.binlog.newly-added-table.enabled") == 0)
		add_item(import, "source", key, FLINK_DIFFERS, "Tables that are made later and fit the patterns join the pipeline; see also cdc_add_table().");
	else if (strcmp(key, "scan.parse.online.schema.changes.enabled") == 0)
	{
		text_option(import, "online_schema_change", is_true(value) ? "follow" : "resync");
		add_item(import, "source", key, is_true(value) ? FLINK_TRANSLATED : FLINK_DIFFERS,
				 is_true(value) ? "online_schema_change \"follow\"" : "online_schema_change \"resync\": a table that takes another one's place is copied anew");
	}
	else if (strcmp(key, "metadata.list") == 0)
		add_item(import, "source", key, FLINK_DIFFERS, "Metadata columns are part of a transform's projection: cdc_commit_time, cdc_position, cdc_operation, ...");
	else
	{
		const char *why = why_without(key);

		add_item(import, "source", key, FLINK_NONE, why != NULL ? why : "It is not known.");
	}
}

static void
import_source(Import *import, const FlinkNode *root)
{
	const FlinkNode *source = section(root, "source", FLINK_MAP);
	const FlinkNode *type;
	ListCell   *lc;
	ListCell   *lc2;

	if (source == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the pipeline has no section \"source\"")));
	type = flink_member(source, "type");
	if (type == NULL || strcmp(scalar(type, "type"), "mysql") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pipelines with a source of type \"%s\" cannot be imported", type != NULL ? scalar(type, "type") : ""),
				 errhint("The type has to be \"mysql\".")));
	forboth(lc, source->keys, lc2, source->items)
		import_source_option(import, source, lfirst(lc), lfirst(lc2));
	if (import->tables == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("section \"source\" names no \"tables\"")));
	if (flink_member(source, "treat-tinyint1-as-boolean.enabled") == NULL)
	{
		raw_option(import, "tinyint1_as_boolean", "true");
		add_item(import, "source", "treat-tinyint1-as-boolean.enabled", FLINK_TRANSLATED, "tinyint1_as_boolean; true is Flink CDC's default");
	}
}

/* ---- section sink ---- */

/* Kinds of schema changes: their names, and ours. */
static const struct
{
	const char *theirs;
	const char *ours;
}			change_kinds[] = {
	{"add.column", "add_column"}, {"alter.column.type", "alter_type"}, {"create.table", "create_table"}, {"drop.column", "drop_column"},
	{"drop.table", "drop_table"}, {"rename.column", "rename_column"}, {"truncate.table", "truncate_table"},
};

/* Is a word one of the parts of a kind ("column" of "add.column"), or all of it? */
static bool
names_kind(const char *word, const char *kind)
{
	size_t		len = strlen(word);

	if (strcmp(word, kind) == 0)
		return true;
	for (const char *part = kind; part != NULL; part = strchr(part, '.') ? strchr(part, '.') + 1 : NULL)
	{
		if (strncmp(part, word, len) == 0 && (part[len] == '.' || part[len] == '\0'))
			return true;
	}
	return false;
}

static void
import_kinds(Import *import, const char *key, const FlinkNode *node)
{
	const char *option = strcmp(key, "include.schema.changes") == 0 ? "schema_changes_include" : "schema_changes_exclude";
	List	   *words = node->kind == FLINK_LIST ? node->items : list_make1(unconstify(FlinkNode *, node));
	StringInfoData json;
	ListCell   *lc;

	initStringInfo(&json);
	for (size_t i = 0; i < lengthof(change_kinds); i++)
	{
		bool		named = false;

		foreach(lc, words)
			named |= names_kind(scalar(lfirst(lc), key), change_kinds[i].theirs);
		if (named)
			appendStringInfo(&json, "%s\"%s\"", json.len > 0 ? ", " : "", change_kinds[i].ours);
	}
	foreach(lc, words)
	{
		const char *word = scalar(lfirst(lc), key);
		bool		known = false;

		for (size_t i = 0; i < lengthof(change_kinds); i++)
			known |= names_kind(word, change_kinds[i].theirs);
		if (!known)
			add_item(import, "sink", key, FLINK_NONE, psprintf("\"%s\" is no kind of change that is known.", word));
	}
	if (json.len == 0)
		return;
	raw_option(import, option, psprintf("[%s]", json.data));
	add_item(import, "sink", key, FLINK_TRANSLATED, psprintf("%s: %s", option, json.data));
}

static void
import_sink(Import *import, const FlinkNode *root)
{
	const FlinkNode *sink = section(root, "sink", FLINK_MAP);
	ListCell   *lc;
	ListCell   *lc2;

	if (sink == NULL)
		return;
	forboth(lc, sink->keys, lc2, sink->items)
	{
		const char *key = lfirst(lc);
		const FlinkNode *node = lfirst(lc2);

		if (strcmp(key, "type") == 0)
			add_item(import, "sink", key, FLINK_DIFFERS, psprintf("This database takes the place of %s. For changes that go on from here, see outgoing pipelines.", scalar(node, key)));
		else if (strcmp(key, "include.schema.changes") == 0 || strcmp(key, "exclude.schema.changes") == 0)
			import_kinds(import, key, node);
		else
			add_item(import, "sink", key, FLINK_NONE, strcmp(key, "name") == 0 ? "A label; nothing depends on it." : "It is of the sink that this database takes the place of.");
	}
}

/* ---- sections transform and route ---- */

/* Text of a member of a rule; NULL when it is not there or empty. */
static const char *
rule_text(const FlinkNode *rule, const char *key)
{
	const FlinkNode *node = flink_member(rule, key);

	if (node == NULL || (node->kind == FLINK_SCALAR && (node->is_null || node->text[0] == '\0')))
		return NULL;
	return scalar(node, key);
}

static const FlinkNode *
rule_map(const FlinkNode *rule, const char *kind)
{
	if (rule->kind != FLINK_MAP || rule_text(rule, "source-table") == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a rule of section \"%s\" has no \"source-table\"", kind),
				 errdetail("Line %d.", rule->line)));
	return rule;
}

/* A rule's members that no other code takes up. */
static void
import_rest(Import *import, const char *kind, const char *prefix, const FlinkNode *rule, const char *const *taken, size_t ntaken)
{
	ListCell   *lc;

	foreach(lc, rule->keys)
	{
		bool		is_taken = false;

		for (size_t i = 0; i < ntaken; i++)
			is_taken |= strcmp(lfirst(lc), taken[i]) == 0;
		if (is_taken)
			continue;
		add_item(import, kind, psprintf("%s.%s", prefix, (char *) lfirst(lc)), FLINK_NONE,
				 strcmp(lfirst(lc), "partition-keys") == 0 ? "Make the target as a partitioned table before, and keep it with on_existing." :
				 strcmp(lfirst(lc), "table-options") == 0 ? "Make the target with its storage parameters before, and keep it with on_existing." :
				 "It is not known.");
	}
}

/* Names that commas separate, as a JSON array. */
static char *
names_json(const char *text)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '[');
	while (*text != '\0')
	{
		size_t		len = strcspn(text, ",");
		const char *start = text;
		const char *end = text + len;

		while (start < end && isspace((unsigned char) *start))
			start++;
		while (end > start && isspace((unsigned char) end[-1]))
			end--;
		if (end > start)
		{
			if (json.len > 1)
				appendStringInfoString(&json, ", ");
			escape_json(&json, pnstrdup(start, end - start));
		}
		text += len + (text[len] == ',');
	}
	appendStringInfoChar(&json, ']');
	return json.data;
}

static void
append_member(StringInfo json, const char *name, const char *value)
{
	appendStringInfo(json, ", \"%s\": ", name);
	escape_json(json, value);
}

static char *
list_text(List *list)
{
	StringInfoData text;
	ListCell   *lc;

	initStringInfo(&text);
	foreach(lc, list)
		appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", (char *) lfirst(lc));
	return text.data;
}

/* What becomes of a rule's rows after all: that deleted ones are kept is a kind of target. */
static void
import_converter(Import *import, StringInfo json, const FlinkNode *rule, const char *prefix)
{
	const char *converter = rule_text(rule, "converter-after-transform");
	char	   *path = psprintf("%s.converter-after-transform", prefix);

	if (converter == NULL)
		return;
	if (pg_strcasecmp(converter, "SOFT_DELETE") != 0)
	{
		add_item(import, "transform", path, FLINK_NONE, "It is not known.");
		return;
	}
	append_member(json, "target", "soft_delete");
	add_item(import, "transform", path, FLINK_DIFFERS, "Deleted rows stay, with a mark in columns cdc_deleted and cdc_deleted_at.");
}

static void
import_transform(Import *import, StringInfo json, const FlinkNode *rule, int number)
{
	static const char *const taken[] = {"source-table", "projection", "filter", "primary-keys", "description",
	"converter-after-transform"};
	const char *projection = rule_text(rule, "projection");
	const char *filter = rule_text(rule, "filter");
	char	   *prefix = psprintf("transform %d", number);
	List	   *unsure = NIL;
	bool		is_exact = true;
	bool		first = true;
	ListCell   *lc;

	appendStringInfo(json, "%s{\"tables\": [", json->len > 0 ? ", " : "");
	foreach(lc, flink_patterns(rule_text(rule, "source-table"), rule->line))
	{
		const FlinkPattern *pattern = lfirst(lc);

		if (!first)
			appendStringInfoString(json, ", ");
		escape_json(json, pattern->glob);
		is_exact &= pattern->is_exact;
		first = false;
	}
	appendStringInfoChar(json, ']');
	if (projection != NULL)
		append_member(json, "projection", flink_expression(projection, &unsure));
	if (filter != NULL)
		append_member(json, "filter", flink_expression(filter, &unsure));
	if (rule_text(rule, "primary-keys") != NULL)
		appendStringInfo(json, ", \"key\": %s", names_json(rule_text(rule, "primary-keys")));
	if (rule_text(rule, "description") != NULL)
		append_member(json, "description", rule_text(rule, "description"));
	import_converter(import, json, rule, prefix);
	appendStringInfoChar(json, '}');

	if (!is_exact)
		add_item(import, "transform", prefix, FLINK_DIFFERS,
				 psprintf("\"%s\" cannot be said with * and ?: its patterns fit more tables.", rule_text(rule, "source-table")));
	if (unsure != NIL)
		add_item(import, "transform", prefix, FLINK_DIFFERS,
				 psprintf("Look whether PostgreSQL has these, and whether they mean the same: %s.", list_text(unsure)));
	if (is_exact && unsure == NIL)
		add_item(import, "transform", prefix, FLINK_TRANSLATED, "a member of \"transforms\"");
	import_rest(import, "transform", prefix, rule, taken, lengthof(taken));
}

/* The last name of "database.table" or "catalog.database.table", and the one before it; *schema is NULL for a single name. */
static void
split_target(const char *text, char **schema, char **table)
{
	const char *dot = strrchr(text, '.');
	char	   *rest;

	*table = pstrdup(dot != NULL ? dot + 1 : text);
	*schema = NULL;
	if (dot == NULL)
		return;
	rest = pnstrdup(text, dot - text);
	dot = strrchr(rest, '.');
	*schema = pstrdup(dot != NULL ? dot + 1 : rest);
}

/* A target's name for our rule: dollar signs doubled but before digits, the symbol replaced by the source's table. */
static char *
target_name(const char *name, const char *symbol)
{
	StringInfoData out;

	initStringInfo(&out);
	for (const char *p = name; *p != '\0';)
	{
		if (symbol != NULL && strncmp(p, symbol, strlen(symbol)) == 0)
		{
			appendStringInfoString(&out, "$table");
			p += strlen(symbol);
			continue;
		}
		if (*p == '$' && !isdigit((unsigned char) p[1]))
			appendStringInfoChar(&out, '$');
		appendStringInfoChar(&out, *p++);
	}
	return out.data;
}

static void
import_route(Import *import, StringInfo json, const FlinkNode *rule, int number)
{
	static const char *const taken[] = {"source-table", "sink-table", "replace-symbol", "description"};
	const char *sink = rule_text(rule, "sink-table");
	const char *symbol = rule_text(rule, "replace-symbol");
	char	   *prefix = psprintf("route %d", number);
	char	   *schema;
	char	   *table;
	ListCell   *lc;

	if (sink == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a rule of section \"route\" has no \"sink-table\""),
				 errdetail("Line %d.", rule->line)));
	split_target(sink, &schema, &table);
	foreach(lc, flink_patterns(rule_text(rule, "source-table"), rule->line))
	{
		const FlinkPattern *pattern = lfirst(lc);
		int			start;
		bool		merges;

		appendStringInfo(json, "%s{", json->len > 0 ? ", " : "");
		appendStringInfo(json, "\"%s\": ", pattern->is_exact ? "source" : "source_regex");
		escape_json(json, pattern->is_exact ? pattern->glob : pattern->regex);
		start = json->len;
		if (schema != NULL)
			append_member(json, "schema", target_name(schema, symbol));
		append_member(json, "table", target_name(table, symbol));
		appendStringInfoChar(json, '}');
		merges = (!pattern->is_exact || strpbrk(pattern->glob, "*?") != NULL) && strchr(json->data + start, '$') == NULL;
		add_item(import, "route", prefix, merges ? FLINK_DIFFERS : FLINK_TRANSLATED,
				 psprintf("\"%s\" to %s%s%s%s", pattern->text, schema != NULL ? schema : "", schema != NULL ? "." : "", table,
						  merges ? "; where it fits several tables they are not merged: the one that comes later is stopped" : ""));
	}
	import_rest(import, "route", prefix, rule, taken, lengthof(taken));
}

static void
import_rules(Import *import, const FlinkNode *root, const char *name, const char *option,
			 void (*rule) (Import *import, StringInfo json, const FlinkNode *rule, int number))
{
	const FlinkNode *list = section(root, name, FLINK_LIST);
	StringInfoData json;
	ListCell   *lc;

	if (list == NULL || list->items == NIL)
		return;
	initStringInfo(&json);
	foreach(lc, list->items)
		rule(import, &json, rule_map(lfirst(lc), name), foreach_current_index(lc) + 1);
	raw_option(import, option, psprintf("[%s]", json.data));
	if (list_length(list->items) > 1)
		add_item(import, strcmp(name, "route") == 0 ? "route" : "transform", "order", FLINK_DIFFERS,
				 "Of several rules that fit a table only the first one counts here.");
}

/* ---- section pipeline ---- */

static void
import_pipeline_option(Import *import, const char *key, const FlinkNode *node)
{
	if (strcmp(key, "name") == 0)
		add_item(import, "pipeline", key, FLINK_TRANSLATED, psprintf("the pipeline is called \"%s\"", import->name));
	else if (strcmp(key, "parallelism") == 0 && strspn(scalar(node, key), "0123456789") == strlen(node->text) && atoi(node->text) > 0)
	{
		raw_option(import, "snapshot_workers", psprintf("%d", Min(atoi(node->text), 16)));
		add_item(import, "pipeline", key, FLINK_DIFFERS, "snapshot_workers, at most 16: the copy is parallel; one process applies the stream, in the source's order.");
	}
	else if (strcmp(key, "schema.change.behavior") == 0)
	{
		static const char *const modes[] = {"evolve", "try_evolve", "lenient", "ignore", "exception"};
		char	   *mode = pstrdup(scalar(node, key));
		bool		known = false;

		for (char *p = mode; *p != '\0'; p++)
			*p = pg_ascii_tolower((unsigned char) *p);
		for (size_t i = 0; i < lengthof(modes); i++)
			known |= strcmp(mode, modes[i]) == 0;
		if (known)
			text_option(import, "schema_changes", mode);
		add_item(import, "pipeline", key, known ? FLINK_TRANSLATED : FLINK_NONE,
				 known ? psprintf("schema_changes \"%s\"", mode) : psprintf("\"%s\" is no mode that is known.", mode));
	}
	else
		add_item(import, "pipeline", key, FLINK_NONE,
				 strcmp(key, "user-defined-function") == 0 ? "Every function of the database can be called in transforms: write it in SQL, PL/pgSQL or C." :
				 strcmp(key, "local-time-zone") == 0 ? "Functions of time heed the setting TimeZone; stored instants do not." :
				 strcmp(key, "model") == 0 ? "There are no model calls here; a function of the database can make them." : "It is of Flink's own running, or not known.");
}

static void
import_pipeline(Import *import, const FlinkNode *root)
{
	const FlinkNode *pipeline = section(root, "pipeline", FLINK_MAP);
	ListCell   *lc;
	ListCell   *lc2;

	if (pipeline != NULL)
	{
		forboth(lc, pipeline->keys, lc2, pipeline->items)
			import_pipeline_option(import, lfirst(lc), lfirst(lc2));
	}
	if (pipeline == NULL || flink_member(pipeline, "schema.change.behavior") == NULL)
	{
		text_option(import, "schema_changes", "lenient");
		add_item(import, "pipeline", "schema.change.behavior", FLINK_TRANSLATED, "schema_changes \"lenient\", which is Flink CDC's default");
	}
}

/* The pipeline's name: as asked for; else the text's, in lower case and without what would want quotes. */
static char *
pipeline_name(const FlinkNode *root, const char *name)
{
	const FlinkNode *pipeline = section(root, "pipeline", FLINK_MAP);
	const char *given = pipeline != NULL ? rule_text(pipeline, "name") : NULL;
	StringInfoData out;

	if (name != NULL)
		return pstrdup(name);
	initStringInfo(&out);
	for (const char *p = given != NULL ? given : ""; *p != '\0' && out.len < 40; p++)
	{
		if (isalnum((unsigned char) *p))
			appendStringInfoChar(&out, pg_ascii_tolower((unsigned char) *p));
		else if (out.len > 0 && out.data[out.len - 1] != '_')
			appendStringInfoChar(&out, '_');
	}
	while (out.len > 0 && out.data[out.len - 1] == '_')
		out.data[--out.len] = '\0';
	return out.len > 0 ? out.data : pstrdup("from_flink");
}

/* ---- the statements ---- */

/* Elements of an array literal, each quoted. */
static char *
patterns_literal(List *patterns)
{
	StringInfoData out;
	ListCell   *lc;

	initStringInfo(&out);
	appendStringInfoChar(&out, '{');
	foreach(lc, patterns)
	{
		appendStringInfoString(&out, lc == list_head(patterns) ? "\"" : ",\"");
		for (const char *p = lfirst(lc); *p != '\0'; p++)
		{
			if (*p == '"' || *p == '\\')
				appendStringInfoChar(&out, '\\');
			appendStringInfoChar(&out, *p);
		}
		appendStringInfoChar(&out, '"');
	}
	appendStringInfoChar(&out, '}');
	return out.data;
}

static void
write_script(Import *import)
{
	char	   *server = psprintf("%.50s_source", import->name);
	const char *pipeline = quote_literal_cstr(import->name);

	add_statement(import, "server", psprintf("CREATE SERVER %s FOREIGN DATA WRAPPER cdc_mysql OPTIONS (%s);", quote_identifier(server), import->server.data), NULL);
	add_statement(import, "user mapping", psprintf("CREATE USER MAPPING FOR CURRENT_USER SERVER %s OPTIONS (username %s, password '" SECRET "');",
												   quote_identifier(server), quote_literal_cstr(import->username != NULL ? import->username : "")),
				  "Put the password in the place of '" SECRET "'.");
	add_statement(import, "pipeline", psprintf("SELECT cdc_create_pipeline(%s, source => %s, tables => %s%s%s, options => %s);",
											   pipeline, quote_literal_cstr(server), quote_literal_cstr(patterns_literal(import->tables)),
											   import->target_schema != NULL ? ", target_schema => " : "",
											   import->target_schema != NULL ? quote_literal_cstr(import->target_schema) : "",
											   quote_literal_cstr(psprintf("{%s}", import->options.data))), NULL);
	if (import->start_file != NULL)
		add_statement(import, "position", psprintf("SELECT cdc_set_position(%s, at => %s);", pipeline,
												   quote_literal_cstr(psprintf("%s:%s", import->start_file, import->start_offset))), NULL);
	else if (import->start_gtids != NULL)
		add_statement(import, "position", psprintf("SELECT cdc_set_position(%s, gtids => %s);", pipeline, quote_literal_cstr(import->start_gtids)), NULL);
	add_statement(import, "start", psprintf("SELECT cdc_start_pipeline(%s);", pipeline), "Look at SELECT * FROM cdc_check_pipeline() before.");
}

/* Sections that there are beside these. */
static void
import_other_sections(Import *import, const FlinkNode *root)
{
	static const char *const known[] = {"source", "sink", "transform", "route", "pipeline"};
	ListCell   *lc;

	foreach(lc, root->keys)
	{
		bool		is_known = false;

		for (size_t i = 0; i < lengthof(known); i++)
			is_known |= strcmp(lfirst(lc), known[i]) == 0;
		if (!is_known)
			add_item(import, "pipeline", lfirst(lc), FLINK_NONE, "It is no section that is known.");
	}
}

List *
flink_import(const char *yaml, const char *name, const char *target_schema)
{
	const FlinkNode *root = flink_read_yaml(yaml);
	Import		import = {.target_schema = target_schema != NULL ? pstrdup(target_schema) : NULL};

	initStringInfo(&import.server);
	initStringInfo(&import.options);
	import.name = pipeline_name(root, name);
	import_source(&import, root);
	import_sink(&import, root);
	import_rules(&import, root, "transform", "transforms", import_transform);
	import_rules(&import, root, "route", "routes", import_route);
	import_pipeline(&import, root);
	import_other_sections(&import, root);
	write_script(&import);
	return import.items;
}
