/*-------------------------------------------------------------------------
 *
 * sink_kafka.c
 *	  Servers of cdc_kafka: messages in topics, in Kafka transactions.
 *
 * NOTES
 *	  Each flush is one Kafka transaction. Its last message is the pipeline's state: in partition 0 of
 *	  the state topic, under the pipeline's name,
 *
 *		{"lsn":"0/16B3748","chunk":0,"system":"7341...","slot":"cdc_5_1","split_end":"0/0","split_lsn":"0/0"}
 *
 *	  so that one is not there without the other. Who reads committed messages alone
 *	  sees every change once. At a start whoever wrote under the
 *	  pipeline's transactional id before is fenced off, what he left open is settled by the
 *	  cluster, and what the state says then is the truth, whatever was heard of the last commit.
 *
 *	  A PostgreSQL transaction is one Kafka transaction, with others, unless it
 *	  has too many bytes or takes too long: then it is split, between two records of the log, and the state of
 *	  each part but the last says which transaction it is a part of (split_end, the end of its commit), and
 *	  up to which place in the log its changes are there (split_lsn). When it comes again after a crash they are left
 *	  out here. A split waits for rows of a copy to be flushed, as these are counted by chunks.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/defrem.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "sink/sink_message.h"
#include "util/util_arena.h"
#include "util/util_error.h"

#define STATE_FORMAT "{\"lsn\":\"%X/%X\",\"chunk\":%d,\"system\":\"%s\",\"slot\":\"%s\",\"split_end\":\"%X/%X\",\"split_lsn\":\"%X/%X\"}"
#define STATE_PATTERN "{\"lsn\":\"%X/%X\",\"chunk\":%d,\"system\":\"%23[0-9]\",\"slot\":\"%63[a-z0-9_]\",\"split_end\":\"%X/%X\",\"split_lsn\":\"%X/%X\"}%n"

/* The part of a Kafka transaction's time after which the PostgreSQL transaction in it is split. */
#define SPLIT_PART 3

typedef struct KafkaSink
{
	CdcSink		base;
	KafkaConfig config;
	KafkaWriter *writer;
	SinkShape  *shape;
	const char *pipeline_name;
	const char *state_topic;
	KafkaTopicWish wishes[SINK_TOPIC_MESSAGE + 1];
	KafkaTopicWish state_wish;
	CdcSinkPosition start;
	CdcSinkPosition held;		/* in the last state that was committed */
	XLogRecPtr	handed;			/* end of the last transaction, or message outside of one, that came */
	bool		found;
	bool		dirty;
	CdcBuf		out;			/* frames of one record */
	CdcBuf		prepared;		/* the beginning of a frame that is still coming */
	char		last_name[SINK_TOPIC_MAX];
	KafkaTopic *last_topic;
	int			last_kind;

	/* splitting */
	uint64		split_bytes;
	int			split_ms;
	bool		has_chunk;		/* what a flush counts by chunks is in the Kafka transaction */
	uint64		began_bytes;	/* of base.bytes, when the Kafka transaction began */
	TimestampTz began_at;		/* 0: it has not */
	XLogRecPtr	last_lsn;		/* of the last record of the transaction that is open */
	XLogRecPtr	split_end;		/* the transaction that was split, and how much of it is there; Invalid: none */
	XLogRecPtr	split_lsn;
} KafkaSink;

/* ---- options ---- */

static const char *
server_text(const CdcSinkTarget *target, const char *name)
{
	return util_option_text(&catalog_kafka_server_options, name, sink_option(target, name));
}

static int
server_int(const CdcSinkTarget *target, const char *name)
{
	return util_option_int(&catalog_kafka_server_options, name, sink_option(target, name));
}

static const char *
secret(const CdcSinkTarget *target, const char *name)
{
	ListCell   *lc;

	foreach(lc, target->secrets)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, name) == 0)
			return defGetString(def);
	}
	return NULL;
}

static void
add(List **properties, const char *name, const char *value)
{
	if (value != NULL)
		*properties = lappend(*properties, makeDefElem(pstrdup(name), (Node *) makeString(pstrdup(value)), -1));
}

static const char *
security_protocol(const CdcSinkTarget *target, const char *servers)
{
	const char *given = sink_option(target, "security_protocol");
	bool		has_login = secret(target, "username") != NULL;

	if (given != NULL)
		return given;
	if (kafka_is_loopback(servers))
		return has_login ? "sasl_plaintext" : "plaintext";
	return has_login ? "sasl_ssl" : "ssl";
}

/* Those of librdkafka that were given by their own names. */
static void
add_own(List **properties, const List *options, const UtilOptionTable *table)
{
	const ListCell *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (util_option_find(table, def->defname) == NULL)
			add(properties, def->defname, defGetString(def));
	}
}

static void
read_options(KafkaSink *sink, const CdcSinkTarget *target)
{
	const char *servers = sink_option(target, "bootstrap_servers");
	KafkaConfig *config = &sink->config;

	if (servers == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has no bootstrap servers", target->server_name),
				 errhint("Run ALTER SERVER %s OPTIONS (ADD bootstrap_servers '...').", quote_identifier(target->server_name))));
	config->server_name = target->server_name;
	config->transactional_id = psprintf("cdc-%s-%u-%d", target->start.system_identifier, MyDatabaseId, target->pipeline->id);
	config->request_timeout_ms = server_int(target, "request_timeout") * 1000;
	config->transaction_timeout_ms = server_int(target, "transaction_timeout") * 1000;
	sink->split_ms = config->transaction_timeout_ms / SPLIT_PART;
	sink->split_bytes = (uint64) server_int(target, "transaction_max_kb") * 1024;

	add(&config->properties, "bootstrap.servers", servers);
	add(&config->properties, "security.protocol", security_protocol(target, servers));
	if (secret(target, "username") != NULL)
		add(&config->properties, "sasl.mechanism", server_text(target, "sasl_mechanism"));
	add(&config->properties, "sasl.username", secret(target, "username"));
	add(&config->properties, "sasl.password", secret(target, "password"));
	add(&config->properties, "ssl.ca.location", sink_option(target, "ssl_ca"));
	add(&config->properties, "ssl.certificate.location", sink_option(target, "ssl_cert"));
	add(&config->properties, "ssl.key.location", sink_option(target, "ssl_key"));
	add(&config->properties, "ssl.key.password", secret(target, "ssl_key_password"));
	add_own(&config->properties, target->options, &catalog_kafka_server_options);
	add_own(&config->properties, target->secrets, &catalog_kafka_user_mapping_options);
	add(&config->producer_properties, "compression.type", server_text(target, "compression"));
	add(&config->producer_properties, "queue.buffering.max.kbytes", psprintf("%d", server_int(target, "queue_max_kb")));
}

static void
read_wishes(KafkaSink *sink, const CatalogPipeline *pipeline)
{
	int			replication = catalog_export_int(pipeline, "topic_replication");

	for (int i = 0; i < (int) lengthof(sink->wishes); i++)
		sink->wishes[i].replication = replication;
	sink->wishes[SINK_TOPIC_ROWS].partitions = catalog_export_int(pipeline, "topic_partitions");
	sink->wishes[SINK_TOPIC_ROWS].cleanup_policy = catalog_export_text(pipeline, "topic_cleanup_policy");
	/* their order is one over all tables */
	sink->wishes[SINK_TOPIC_SCHEMA].partitions = 1;
	sink->wishes[SINK_TOPIC_TRANSACTION].partitions = 1;
	sink->wishes[SINK_TOPIC_MESSAGE].partitions = 1;
	sink->state_wish = (KafkaTopicWish) {.partitions = 1,.replication = replication,.cleanup_policy = "compact",.is_small = true};
}

/* ---- the state ---- */

static void
read_state(KafkaSink *sink, const char *text, CdcSinkPosition *position)
{
	uint32		parts[6];
	int			len = 0;

	if (sscanf(text, STATE_PATTERN, &parts[0], &parts[1], &position->chunk, position->system_identifier, position->slot,
			   &parts[2], &parts[3], &parts[4], &parts[5], &len) != 9 || len != (int) strlen(text))
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("what the state topic has of pipeline \"%s\" is no state", sink->pipeline_name),
				 errdetail("The last message in topic \"%s\" with that key was written by somebody else.", sink->state_topic),
				 errhint("Drop the pipeline and begin with another name, or another state_topic of the server.")));
	position->lsn = ((XLogRecPtr) parts[0] << 32) | parts[1];
	sink->split_end = ((XLogRecPtr) parts[2] << 32) | parts[3];
	sink->split_lsn = ((XLogRecPtr) parts[4] << 32) | parts[5];
}

static void
commit_with_state(KafkaSink *sink, const CdcSinkPosition *position)
{
	KafkaTopic *topic = kafka_topic(sink->writer, sink->state_topic, &sink->state_wish);
	KafkaMessage message = {.key = sink->pipeline_name,.key_len = strlen(sink->pipeline_name)};
	char	   *text;

	if (!topic->is_compacted)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("topic \"%s\" of server \"%s\" cannot keep states of pipelines", topic->name, sink->config.server_name),
				 errdetail("Its cleanup.policy does not say compact, so that they would be removed by their age."),
				 errhint("Alter the topic, or set option \"state_topic\" of the server.")));
	/* one that has come whole is not split any more */
	if (sink->split_end <= position->lsn)
		sink->split_end = sink->split_lsn = InvalidXLogRecPtr;
	text = psprintf(STATE_FORMAT, LSN_FORMAT_ARGS(position->lsn), position->chunk, position->system_identifier, position->slot,
					LSN_FORMAT_ARGS(sink->split_end), LSN_FORMAT_ARGS(sink->split_lsn));
	message.value = text;
	message.value_len = strlen(text);
	kafka_send_first(sink->writer, topic, &message);
	kafka_commit(sink->writer);
	pfree(text);
	sink->held = *position;
	sink->began_at = 0;
	sink->has_chunk = false;
}

/* ---- messages ---- */

static KafkaTopic *
topic_of(KafkaSink *sink, const SinkMessage *message)
{
	if (sink->last_topic == NULL || sink->last_kind != (int) message->kind || strcmp(sink->last_name, message->topic) != 0)
	{
		sink->last_topic = kafka_topic(sink->writer, message->topic, &sink->wishes[message->kind]);
		sink->last_kind = (int) message->kind;
		snprintf(sink->last_name, sizeof(sink->last_name), "%s", message->topic);
	}
	return sink->last_topic;
}

/* What the cluster would refuse must not be sent: the whole transaction would be at an end. */
static void
check_message(const KafkaTopic *topic, const SinkMessage *message)
{
	size_t		size = kafka_message_size(&message->message);

	if (size > (size_t) topic->max_bytes)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a message is too large for topic \"%s\"", topic->name),
				 errdetail("It has %zu bytes, and the topic takes %d.", size, topic->max_bytes),
				 errhint("Raise max.message.bytes of the topic and \"message.max.bytes\" of the server, leave out the column by \"transforms\", or set option \"on_error\".")));
	if (topic->is_compacted && message->message.key == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("a message without a key cannot go to topic \"%s\"", topic->name),
				 errdetail("The topic is compacted. Rows of tables without a key have none, nor has TRUNCATE."),
				 errhint("Give the table a key, leave out truncate by option \"actions\", or change the topic's cleanup.policy.")));
}

/* Whole frames from the beginning; returns the bytes that they have. */
static size_t
check_messages(KafkaSink *sink, const char *data, size_t len)
{
	SinkMessage message;
	size_t		at = 0;
	size_t		n;

	while ((n = sink_message_read(data + at, len - at, &message)) > 0)
	{
		check_message(topic_of(sink, &message), &message);
		at += n;
	}
	return at;
}

static void
send_messages(KafkaSink *sink, const char *data, size_t len)
{
	SinkMessage message;
	size_t		at = 0;

	if (len > 0 && sink->began_at == 0)
	{
		sink->began_at = GetCurrentTimestamp();
		sink->began_bytes = sink->base.bytes;
	}
	while (at < len)
	{
		at += sink_message_read(data + at, len - at, &message);
		kafka_send(sink->writer, topic_of(sink, &message), &message.message);
		sink->base.bytes += message.message.key_len + message.message.value_len;
	}
	sink->dirty = true;
}

static void
write_record(KafkaSink *sink, const CdcRecord *record)
{
	sink_empty_buffer(&sink->out);
	sink_add_messages(sink->shape, record, &sink->out);
	(void) check_messages(sink, sink->out.data, sink->out.len);
	send_messages(sink, sink->out.data, sink->out.len);
}

/* ---- the interface ---- */

static CdcSink *
kafka_sink_open(const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	KafkaSink  *sink = palloc0(sizeof(KafkaSink));
	StringInfoData text;

	kafka_require();
	sink->base.ops = &sink_kafka_ops;
	sink->base.keeps_position = true;
	sink->pipeline_name = pg_server_to_any(target->pipeline->name, (int) strlen(target->pipeline->name), PG_UTF8);
	sink->state_topic = server_text(target, "state_topic");
	sink->start = target->start;
	sink->shape = sink_shape(target);
	read_options(sink, target);
	read_wishes(sink, target->pipeline);
	cdc_buf_init(&sink->out, util_context_allocator(CurrentMemoryContext), 0);
	cdc_buf_init(&sink->prepared, util_context_allocator(CurrentMemoryContext), 0);

	sink->writer = kafka_open(&sink->config);
	initStringInfo(&text);
	*position = sink->start;
	sink->found = kafka_read_last(sink->writer, sink->state_topic, sink->pipeline_name, &text);
	if (sink->found)
		read_state(sink, text.data, position);
	sink->held = *position;
	sink->handed = position->lsn;
	*found = sink->found;
	return &sink->base;
}

static void
kafka_sink_take(CdcSink *base)
{
	KafkaSink  *sink = (KafkaSink *) base;

	if (!sink->found)
		commit_with_state(sink, &sink->start);
}

/* Is that there already, of a transaction that was split? */
static bool
was_sent(const KafkaSink *sink, const CdcRecord *record)
{
	return record->txn != NULL && record->txn->end_lsn == sink->split_end && record->lsn <= sink->split_lsn;
}

static void
kafka_sink_begin(CdcSink *base, const CdcRecord *record)
{
	KafkaSink  *sink = (KafkaSink *) base;

	sink->last_lsn = InvalidXLogRecPtr;
	if (record->txn->end_lsn != sink->split_end)
		write_record(sink, record);
}

/* Between two records of the log, so that a place in it tells which changes are there. */
static bool
split_is_due(const KafkaSink *sink, const CdcRecord *record)
{
	if (!sink->base.may_split || sink->has_chunk || record->txn == NULL || sink->began_at == 0 || XLogRecPtrIsInvalid(sink->last_lsn) || record->lsn <= sink->last_lsn)
		return false;
	return sink->base.bytes - sink->began_bytes >= sink->split_bytes ||
		TimestampDifferenceExceeds(sink->began_at, GetCurrentTimestamp(), sink->split_ms);
}

static void
split(KafkaSink *sink, const CdcRecord *record)
{
	CdcSinkPosition position = sink->held;

	position.lsn = Max(position.lsn, sink->handed);
	sink->split_end = record->txn->end_lsn;
	sink->split_lsn = sink->last_lsn;
	commit_with_state(sink, &position);
}

static void
kafka_sink_write(CdcSink *base, const CdcRecord *record)
{
	KafkaSink  *sink = (KafkaSink *) base;

	if (was_sent(sink, record))
		return;
	if (split_is_due(sink, record))
		split(sink, record);
	write_record(sink, record);
	if (record->txn != NULL)
		sink->last_lsn = record->lsn;
	else if (record->of_copy)
		sink->has_chunk = true;
	else
		sink->handed = record->lsn;
}

static void
kafka_sink_commit(CdcSink *base, const CdcRecord *record)
{
	KafkaSink  *sink = (KafkaSink *) base;

	write_record(sink, record);
	sink->handed = record->txn->end_lsn;
}

static void
kafka_sink_flush(CdcSink *base, const CdcSinkPosition *position)
{
	KafkaSink  *sink = (KafkaSink *) base;

	if (!sink->dirty && position->lsn == sink->held.lsn && position->chunk == sink->held.chunk)
		return;
	commit_with_state(sink, position);
	sink->dirty = false;
}

static void
kafka_sink_close(CdcSink *base)
{
	KafkaSink  *sink = (KafkaSink *) base;

	kafka_close(sink->writer);
}

static void
kafka_sink_prepare_open(CdcSinkPreparer *preparer, const CdcSinkTarget *target)
{
	preparer->shape = sink_shape(target);
}

static void
kafka_sink_prepare(CdcSinkPreparer *preparer, const CdcRecord *record, CdcBuf *out)
{
	sink_add_messages(preparer->shape, record, out);
}

static void
kafka_sink_write_prepared(CdcSink *base, const char *data, size_t len)
{
	KafkaSink  *sink = (KafkaSink *) base;
	size_t		done;

	cdc_buf_add(&sink->prepared, data, len);
	if (sink->prepared.status != CDC_OK)
		util_throw_out_of_memory();
	done = check_messages(sink, sink->prepared.data, sink->prepared.len);
	send_messages(sink, sink->prepared.data, done);
	sink->has_chunk = true;
	if (done == sink->prepared.len)
		sink_empty_buffer(&sink->prepared);
	else
	{
		memmove(sink->prepared.data, sink->prepared.data + done, sink->prepared.len - done);
		sink->prepared.len -= done;
	}
}

const CdcSinkOps sink_kafka_ops = {
	.wrapper = "cdc_kafka",
	.open = kafka_sink_open,
	.take = kafka_sink_take,
	.begin = kafka_sink_begin,
	.write = kafka_sink_write,
	.schema_change = kafka_sink_write,
	.commit = kafka_sink_commit,
	.flush = kafka_sink_flush,
	.close = kafka_sink_close,
	.prepare_open = kafka_sink_prepare_open,
	.prepare = kafka_sink_prepare,
	.write_prepared = kafka_sink_write_prepared
};
