/*-------------------------------------------------------------------------
 *
 * sink_message.c
 *	  Records -> messages for topics.
 *
 * NOTES
 *	  An update that gives a row another key is two messages at least, as the row's place
 *	  among the keys is another one: the old key is deleted, with a tombstone, and
 *	  the new one comes as a row that was not there. Each has the other's key in a
 *	  header, under the name that Debezium gives it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"

#include "sink/sink_message.h"
#include "util/util_arena.h"
#include "util/util_error.h"

/* Stands before a frame's texts: topic (with its NUL), headers, key, value. */
typedef struct Frame
{
	uint32		len;			/* all of it */
	uint32		hash;
	uint32		topic_len;
	uint32		headers_len;
	uint32		key_len;
	uint32		value_len;
	uint8		kind;
	bool		has_key;
	bool		has_value;
	bool		has_hash;
} Frame;

/* In a frame a header is the number of its name, and its value. */
typedef enum HeaderName
{
	HEADER_OPERATION,
	HEADER_TABLE,
	HEADER_POSITION,
	HEADER_OLD_KEY,
	HEADER_NEW_KEY
} HeaderName;

static const char *const header_names[] = {"cdc.operation", "cdc.table", "cdc.position", "__debezium.oldkey", "__debezium.newkey"};

typedef struct Header
{
	uint32		name;
	uint32		len;
} Header;

/* ---- what a pipeline asks for ---- */

static const char *const topic_options[] = {
	[SINK_TOPIC_ROWS] = "topic",
	[SINK_TOPIC_SCHEMA] = "schema_topic",
	[SINK_TOPIC_TRANSACTION] = "transaction_topic",
	[SINK_TOPIC_MESSAGE] = "message_topic",
};

void
sink_shape_check(const CatalogPipeline *pipeline)
{
	for (int i = 0; i < (int) lengthof(topic_options); i++)
		sink_topic_check(topic_options[i], catalog_export_text(pipeline, topic_options[i]), i == SINK_TOPIC_ROWS);
	if (catalog_export_bool(pipeline, "include_key"))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"include_key\" is not for sinks of foreign data wrapper cdc_kafka"),
				 errdetail("Messages have their keys apart from their values.")));
}

SinkShape *
sink_shape(const CdcSinkTarget *target)
{
	const CatalogPipeline *pipeline = target->pipeline;
	SinkShape  *shape = palloc0(sizeof(SinkShape));
	const char *server = catalog_pipeline_option(pipeline, "server_name");

	sink_shape_check(pipeline);
	shape->format = sink_format(target);
	for (int i = 0; i < (int) lengthof(topic_options); i++)
		shape->patterns[i] = catalog_export_text(pipeline, topic_options[i]);
	shape->database = get_database_name(MyDatabaseId);
	shape->server = server != NULL ? server : shape->database;
	shape->tombstones = catalog_export_bool(pipeline, "tombstones");
	shape->headers = catalog_export_bool(pipeline, "headers");
	cdc_buf_init(&shape->key, util_context_allocator(CurrentMemoryContext), 0);
	cdc_buf_init(&shape->partition_key, util_context_allocator(CurrentMemoryContext), 0);
	cdc_buf_init(&shape->old_key, util_context_allocator(CurrentMemoryContext), 0);
	cdc_buf_init(&shape->new_key, util_context_allocator(CurrentMemoryContext), 0);
	return shape;
}

static const char *
topic_of(SinkShape *shape, SinkTopicKind kind, const CdcOutTable *table, char *name)
{
	SinkTopicNames names = {.database = shape->database,.server = shape->server};

	if (kind != SINK_TOPIC_ROWS)
	{
		sink_topic_name(shape->patterns[kind], &names, name);
		return name;
	}
	if (shape->table_version != table->version || table->version == 0)
	{
		names.schema = table->schema;
		names.table = table->name;
		sink_topic_name(shape->patterns[kind], &names, shape->topic);
		shape->table_version = table->version;
	}
	return shape->topic;
}

/* ---- frames ---- */

static const char *
operation(const CdcRecord *record)
{
	static const char *const of_change[] = {
		[CDC_OUT_INSERT] = "insert",[CDC_OUT_UPDATE] = "update",[CDC_OUT_DELETE] = "delete",[CDC_OUT_READ] = "read"
	};

	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
			return of_change[record->op];
		case CDC_RECORD_TRUNCATE:
			return "truncate";
		case CDC_RECORD_SCHEMA:
			return "schema";
		case CDC_RECORD_MESSAGE:
			return "message";
		case CDC_RECORD_BEGIN:
			return "begin";
		default:
			return "commit";
	}
}

static void
add_header(CdcBuf *out, HeaderName name, const char *value, size_t len)
{
	Header		header = {.name = name,.len = (uint32) len};

	cdc_buf_add(out, &header, sizeof(header));
	cdc_buf_add(out, value, len);
}

static void
add_headers(const CdcRecord *record, CdcBuf *out)
{
	char		text[8 * NAMEDATALEN];

	add_header(out, HEADER_OPERATION, operation(record), strlen(operation(record)));
	if (record->table != NULL)
	{
		snprintf(text, sizeof(text), "%s.%s", record->table->schema, record->table->name);
		add_header(out, HEADER_TABLE, text, strlen(text));
	}
	if (record->of_copy)
		return;
	snprintf(text, sizeof(text), "%X/%X", LSN_FORMAT_ARGS(record->txn != NULL ? record->txn->commit_lsn : record->lsn));
	add_header(out, HEADER_POSITION, text, strlen(text));
}

/* The other key of a row whose key changed. */
typedef struct OtherKey
{
	HeaderName	name;
	const CdcBuf *key;
} OtherKey;

static void
check_status(CdcStatus status, const CdcError *error)
{
	if (status != CDC_OK && status != CDC_END)
		util_throw(error, "could not write a change in the pipeline's format");
}

/* A frame without its value; begin says where it starts. */
static void
begin_frame(SinkShape *shape, Frame *frame, SinkTopicKind kind, const CdcRecord *record, const CdcBuf *key, const OtherKey *other, size_t *begin,
			CdcBuf *out)
{
	char		name[SINK_TOPIC_MAX];
	const char *topic = topic_of(shape, kind, record->table, name);
	size_t		start;

	*frame = (Frame) {.kind = (uint8) kind};
	*begin = out->len;
	cdc_buf_add(out, frame, sizeof(*frame));
	frame->topic_len = (uint32) strlen(topic) + 1;
	cdc_buf_add(out, topic, frame->topic_len);
	start = out->len;
	if (shape->headers)
		add_headers(record, out);
	if (other != NULL)
		add_header(out, other->name, other->key->data, other->key->len);
	frame->headers_len = (uint32) (out->len - start);
	if (key != NULL)
	{
		frame->has_key = true;
		frame->key_len = (uint32) key->len;
		cdc_buf_add(out, key->data, key->len);
	}
}

static void
end_frame(Frame *frame, size_t begin, size_t value, CdcBuf *out)
{
	frame->value_len = (uint32) (out->len - value);
	frame->len = (uint32) (out->len - begin);
	if (out->status != CDC_OK)
		util_throw_out_of_memory();
	memcpy(out->data + begin, frame, sizeof(*frame));
}

/* What makes the partition of a document: the columns that option transforms names, or else the key, or else hash_of. */
static void
set_hash(SinkShape *shape, const CdcRecord *record, int part, const CdcBuf *key, const char *hash_of, Frame *frame)
{
	CdcError	error;
	CdcStatus	status = CDC_END;

	if (record->kind == CDC_RECORD_CHANGE && record->table->npartition > 0)
	{
		cdc_buf_reset(&shape->partition_key);
		status = cdc_format_partition_key(shape->format, record, part, &shape->partition_key, &error);
		check_status(status, &error);
	}
	else if (key != NULL)
		return;
	frame->has_hash = true;
	frame->hash = status == CDC_OK ? kafka_hash(shape->partition_key.data, shape->partition_key.len) : kafka_hash(hash_of, strlen(hash_of));
}

/* False when the document has none. */
static bool
read_key(SinkShape *shape, const CdcRecord *record, int part, CdcBuf *key)
{
	CdcError	error;
	CdcStatus	status;

	cdc_buf_reset(key);
	status = cdc_format_key(shape->format, record, part, key, &error);
	check_status(status, &error);
	return status == CDC_OK;
}

/* The message of a document; without a value, when that is what it comes to or is wanted. */
static void
add_message(SinkShape *shape, SinkTopicKind kind, const CdcRecord *record, int part, const OtherKey *other, const char *hash_of, bool with_value,
			CdcBuf *out)
{
	CdcBuf	   *key = read_key(shape, record, part, &shape->key) ? &shape->key : NULL;
	CdcError	error;
	Frame		frame;
	size_t		begin;
	size_t		value;

	/* without key and value it would say nothing */
	if (key == NULL && !with_value)
		return;
	begin_frame(shape, &frame, kind, record, key, other, &begin, out);
	set_hash(shape, record, part, key, hash_of, &frame);
	value = out->len;
	if (with_value)
	{
		frame.has_value = true;
		check_status(cdc_format_value(shape->format, record, part, out, &error), &error);
	}
	end_frame(&frame, begin, value, out);
}

/* ---- records ---- */

static SinkTopicKind
kind_of(const CdcRecord *record)
{
	switch (record->kind)
	{
		case CDC_RECORD_CHANGE:
		case CDC_RECORD_TRUNCATE:
			return SINK_TOPIC_ROWS;
		case CDC_RECORD_SCHEMA:
			return SINK_TOPIC_SCHEMA;
		case CDC_RECORD_MESSAGE:
			return SINK_TOPIC_MESSAGE;
		default:
			return SINK_TOPIC_TRANSACTION;
	}
}

/* The delete and the insert that an update of a key comes to have the schemas that it has. */
static void
complete_schemas(SinkShape *shape, SinkTopicKind kind, const CdcRecord *record)
{
	char		name[SINK_TOPIC_MAX];

	if (shape->format->ops->is_binary)
		sink_complete_schemas(shape->format, record, topic_of(shape, kind, record->table, name));
}

static void
add_documents(SinkShape *shape, SinkTopicKind kind, const CdcRecord *record, const OtherKey *other, const char *hash_of, CdcBuf *out)
{
	int			parts = cdc_format_parts(shape->format, record);

	for (int part = 0; part < parts; part++)
		add_message(shape, kind, record, part, other, hash_of, !cdc_format_is_tombstone(shape->format, record, part), out);
}

/* A deleted row, and a tombstone behind it, unless its document is one already. */
static void
add_delete(SinkShape *shape, const CdcRecord *record, const OtherKey *other, const char *table, CdcBuf *out)
{
	add_documents(shape, SINK_TOPIC_ROWS, record, other, table, out);
	if (shape->tombstones && !(cdc_format_parts(shape->format, record) > 0 && cdc_format_is_tombstone(shape->format, record, 0)))
		add_message(shape, SINK_TOPIC_ROWS, record, 0, NULL, table, false, out);
}

static void
add_change(SinkShape *shape, const CdcRecord *record, const char *table, CdcBuf *out)
{
	CdcRecord	deleted = *record;
	CdcRecord	inserted = *record;
	const OtherKey old_key = {.name = HEADER_OLD_KEY,.key = &shape->old_key};
	const OtherKey new_key = {.name = HEADER_NEW_KEY,.key = &shape->new_key};

	if (record->op == CDC_OUT_DELETE)
	{
		add_delete(shape, record, NULL, table, out);
		return;
	}
	deleted.op = CDC_OUT_DELETE;
	deleted.after = NULL;
	inserted.op = CDC_OUT_INSERT;
	inserted.before = NULL;
	if (record->op == CDC_OUT_UPDATE && record->before != NULL && read_key(shape, &inserted, 0, &shape->new_key) &&
		read_key(shape, &deleted, 0, &shape->old_key) &&
		(shape->old_key.len != shape->new_key.len || memcmp(shape->old_key.data, shape->new_key.data, shape->new_key.len) != 0))
	{
		add_delete(shape, &deleted, &new_key, table, out);
		add_documents(shape, SINK_TOPIC_ROWS, &inserted, &old_key, table, out);
		return;
	}
	add_documents(shape, SINK_TOPIC_ROWS, record, NULL, table, out);
}

void
sink_add_messages(SinkShape *shape, const CdcRecord *record, CdcBuf *out)
{
	SinkTopicKind kind = kind_of(record);
	char		table[8 * NAMEDATALEN] = "";

	if (record->table != NULL)
		snprintf(table, sizeof(table), "%s.%s", record->table->schema, record->table->name);
	complete_schemas(shape, kind, record);
	if (record->kind == CDC_RECORD_CHANGE)
		add_change(shape, record, table, out);
	else
		add_documents(shape, kind, record, NULL, kind == SINK_TOPIC_MESSAGE ? record->prefix : table, out);
}

static void
read_headers(const char *data, size_t len, SinkMessage *message)
{
	const char *end = data + len;
	int			n = 0;

	while (data < end && n < SINK_MAX_HEADERS)
	{
		Header		header;

		memcpy(&header, data, sizeof(header));
		data += sizeof(header);
		message->headers[n++] = (KafkaHeader) {.name = header_names[header.name],.value = data,.len = header.len};
		data += header.len;
	}
	message->message.nheaders = n;
	message->message.headers = message->headers;
}

size_t
sink_message_read(const char *data, size_t len, SinkMessage *message)
{
	Frame		frame;
	const char *at;

	if (len < sizeof(frame))
		return 0;
	memcpy(&frame, data, sizeof(frame));
	if (len < frame.len)
		return 0;
	at = data + sizeof(frame);
	message->kind = (SinkTopicKind) frame.kind;
	message->topic = at;
	at += frame.topic_len;
	message->message = (KafkaMessage) {.has_hash = frame.has_hash,.hash = frame.hash,.key_len = frame.key_len,.value_len = frame.value_len};
	read_headers(at, frame.headers_len, message);
	at += frame.headers_len;
	message->message.key = frame.has_key ? at : NULL;
	at += frame.key_len;
	message->message.value = frame.has_value ? at : NULL;
	return frame.len;
}
