/*-------------------------------------------------------------------------
 *
 * kafka_writer.c
 *	  The transactional producer.
 *
 * NOTES
 *	  What the cluster has not confirmed waits in the library's queue, which has
 *	  a limit: kafka_send waits when it is full, and so does all that comes before
 *	  it, up to the reading of the log.
 *
 *	  A cluster that is away for less than request_timeout is waited for. After
 *	  that, and after everything that makes the transaction one that has to be
 *	  aborted, the error ends the worker. The next one opens the writer anew: the
 *	  cluster settles what is open under the transactional id, and tells by the
 *	  state that was committed with the messages how far they came. So it needs no
 *	  answer whether a commit got through of which nothing was heard.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifndef CDC_WITHOUT_KAFKA

#include "commands/defrem.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"

#include "kafka/kafka_private.h"
#include "util/util_wait.h"

/* Callbacks run after so many messages. */
#define LOOK_MESSAGES 128

/* How long a process that ends waits for its transaction to be aborted. */
#define CLOSE_WAIT_MS 300

/* ---- what the library tells ---- */

static void
note_error(rd_kafka_t *client, int code, const char *reason, void *opaque)
{
	KafkaWriter *writer = opaque;

	if (code == RD_KAFKA_RESP_ERR__FATAL)
	{
		writer->failed = rd_kafka_fatal_error(client, writer->failed_text, sizeof(writer->failed_text));
		return;
	}
	/* "all brokers are down" says less than what came before it */
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
	{
		if (!writer->told_away)
			ereport(LOG,
					(errmsg("Kafka of server \"%s\" cannot be reached", writer->config->server_name),
					 writer->heard_text[0] != '\0' ? errdetail_internal("%s", writer->heard_text) : 0));
		writer->told_away = true;
		return;
	}
	writer->heard = code;
	snprintf(writer->heard_text, sizeof(writer->heard_text), "%s", reason);
}

static void
note_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
	KafkaWriter *writer = opaque;

	if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR || writer->failed != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	writer->failed = message->err;
	snprintf(writer->failed_text, sizeof(writer->failed_text), "A message of %zu bytes to topic \"%s\": %s.", message->len,
			 rd_kafka_topic_name(message->rkt), rd_kafka_err2str(message->err));
}

/* Only what the property "debug" asks for: errors come by note_error. */
static void
note_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
	if (level == 7)
		ereport(LOG, (errmsg_internal("librdkafka: %s: %s", facility, text)));
}

/* Which partition; runs in the library's threads, too. A message's hash stands in its opaque pointer, with a bit that says so. */
#define HASH_GIVEN ((uintptr_t) 1 << 32)

static int32_t
choose_partition(const rd_kafka_topic_t *topic, const void *key, size_t key_len, int32_t count, void *topic_opaque, void *opaque)
{
	uintptr_t	given = (uintptr_t) opaque;

	StaticAssertStmt(sizeof(uintptr_t) >= 8, "a hash and a bit have to fit in a pointer");
	if ((given & HASH_GIVEN) != 0)
		return (int32_t) ((given & 0x7fffffff) % (uintptr_t) count);
	return key == NULL ? 0 : rd_kafka_msg_partitioner_murmur2(topic, key, key_len, count, NULL, NULL);
}

uint32
kafka_hash(const char *data, size_t len)
{
	return (uint32) rd_kafka_msg_partitioner_murmur2(NULL, data, len, PG_INT32_MAX, NULL, NULL);
}

/* ---- errors ---- */

static int
error_sqlstate(rd_kafka_resp_err_t code)
{
	switch (code)
	{
		case RD_KAFKA_RESP_ERR__FENCED:
		case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
		case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
			return ERRCODE_OBJECT_IN_USE;
		case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
			return ERRCODE_INSUFFICIENT_PRIVILEGE;
		case RD_KAFKA_RESP_ERR__AUTHENTICATION:
		case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
		case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
			return ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION;
		case RD_KAFKA_RESP_ERR__SSL:
			return ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION;
		case RD_KAFKA_RESP_ERR__INVALID_ARG:
		case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
		case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
		case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
		case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
		case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
		case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
			return ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE;
		case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_INVALID_RECORD:
			return ERRCODE_FDW_ERROR;
		case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
		case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
			return ERRCODE_FDW_TABLE_NOT_FOUND;
		default:
			return ERRCODE_CONNECTION_FAILURE;
	}
}

/* Its second message has a nonce too much, which brokers put up with until they did not. */
static bool
old_scram(const KafkaWriter *writer)
{
	const ListCell *lc;

	foreach(lc, writer->config->properties)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, "sasl.mechanism") == 0)
			return strncmp(defGetString(def), "SCRAM", 5) == 0 && rd_kafka_version() < 0x020601ff;
	}
	return false;
}

static int
error_hint(const KafkaWriter *writer, rd_kafka_resp_err_t code)
{
	switch (code)
	{
		case RD_KAFKA_RESP_ERR__FENCED:
		case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
		case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
			return errhint("Another process writes under transactional id \"%s\", or the transaction was open for longer than \"transaction_timeout\". It is tried again.",
						   writer->config->transactional_id);
		case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
			return errhint("The user needs Write and Describe on transactional id \"%s\"; on topics Write, Describe and DescribeConfigs, Create where they are not there yet, and Read on the state's.",
						   writer->config->transactional_id);
		case RD_KAFKA_RESP_ERR__AUTHENTICATION:
		case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
			if (old_scram(writer))
				return errhint("Brokers from Kafka 4 on refuse SCRAM of librdkafka before 2.6.1, and this is %s: use PLAIN with TLS. Else look at the user mapping.",
							   rd_kafka_version_str());
			return errhint("Look at \"username\" and \"password\" of the user mapping, and at option \"sasl_mechanism\" of the server.");
		case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
			return errhint("Set option \"transaction_timeout\" of the server to no more than transaction.max.timeout.ms of the brokers.");
		case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
			return errhint("Set max.message.bytes of the topic no lower than \"batch.size\" of the server, and start the pipeline.");
		default:
			return 0;
	}
}

void
kafka_throw(KafkaWriter *writer, rd_kafka_resp_err_t code, const char *what, const char *detail)
{
	ereport(ERROR,
			(errcode(error_sqlstate(code)),
			 errmsg("%s of Kafka server \"%s\"", what, writer->config->server_name),
			 detail != NULL && detail[0] != '\0' ? errdetail_internal("%s", detail) : errdetail_internal("%s.", rd_kafka_err2str(code)),
			 error_hint(writer, code)));
}

static void
check_failed(KafkaWriter *writer)
{
	if (writer->failed != RD_KAFKA_RESP_ERR_NO_ERROR)
		kafka_throw(writer, writer->failed, "could not write to a topic", writer->failed_text);
}

static _Noreturn void
throw_error(KafkaWriter *writer, rd_kafka_error_t *error, const char *what)
{
	rd_kafka_resp_err_t code = rd_kafka_error_code(error);
	char		text[KAFKA_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	/* the message that did not arrive says more than that the transaction has to be aborted */
	check_failed(writer);
	kafka_throw(writer, code, what, text);
}

TimestampTz
kafka_deadline(const KafkaWriter *writer)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), writer->config->request_timeout_ms);
}

void
kafka_check_deadline(KafkaWriter *writer, TimestampTz deadline, const char *what)
{
	if (GetCurrentTimestamp() < deadline)
		return;
	kafka_throw(writer, writer->heard, what, writer->heard_text[0] != '\0' ? writer->heard_text : "No answer came in time.");
}

void
kafka_look(KafkaWriter *writer)
{
	if (writer->producer != NULL)
		(void) rd_kafka_poll(writer->producer, 0);
	if (writer->reader != NULL)
		(void) rd_kafka_poll(writer->reader, 0);
	util_check_interrupts();
	if (error_sqlstate(writer->heard) == ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION)
		kafka_throw(writer, writer->heard, "could not log in to a broker", writer->heard_text);
}

/* ---- open and close ---- */

static void
set_property(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char		error[KAFKA_TEXT_MAX];

	if (rd_kafka_conf_set(conf, name, value, error, sizeof(error)) != RD_KAFKA_CONF_OK)
	{
		rd_kafka_conf_destroy(conf);
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("could not set property \"%s\" of the Kafka client", name),
				 errhint("Look at the options of the server and of the user mapping.")));
	}
}

static void
set_all(rd_kafka_conf_t *conf, const List *properties)
{
	const ListCell *lc;

	foreach(lc, properties)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		set_property(conf, def->defname, defGetString(def));
	}
}

static rd_kafka_conf_t *
make_conf(KafkaWriter *writer)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();

	/* first: properties of topics that are set later go there */
	rd_kafka_topic_conf_set_partitioner_cb(topic_conf, choose_partition);
	rd_kafka_conf_set_default_topic_conf(conf, topic_conf);
	rd_kafka_conf_set_opaque(conf, writer);
	rd_kafka_conf_set_error_cb(conf, note_error);
	rd_kafka_conf_set_log_cb(conf, note_log);
	set_property(conf, "log.queue", "true");
	set_property(conf, "client.id", writer->config->transactional_id);
	/* a broker that comes back is seen soon */
	set_property(conf, "reconnect.backoff.max.ms", "1000");
	set_all(conf, writer->config->properties);
	return conf;
}

static rd_kafka_t *
start(KafkaWriter *writer, rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
	char		error[KAFKA_TEXT_MAX];
	rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof(error));

	if (client == NULL)
	{
		rd_kafka_conf_destroy(conf);
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("could not start a client of Kafka server \"%s\"", writer->config->server_name),
				 errdetail_internal("%s", error),
				 errhint("Look at the options of the server.")));
	}
	/* what it logs waits with everything else until we ask */
	(void) rd_kafka_set_log_queue(client, NULL);
	return client;
}

/* Lets go of all there is. Throws nothing. */
static void
let_go(KafkaWriter *writer)
{
	if (writer->producer != NULL)
	{
		rd_kafka_purge(writer->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		/* for readers' sake: they wait behind a transaction that is open. The next writer settles it, too. */
		if (writer->in_transaction)
		{
			rd_kafka_error_t *error = rd_kafka_abort_transaction(writer->producer, CLOSE_WAIT_MS);

			if (error != NULL)
				rd_kafka_error_destroy(error);
		}
		kafka_topics_close(writer);
		rd_kafka_destroy_flags(writer->producer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	}
	if (writer->reader != NULL)
		rd_kafka_destroy_flags(writer->reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	writer->producer = writer->reader = NULL;
	writer->in_transaction = false;
}

/* Its threads must not run while the process takes its libraries down. */
static void
let_go_at_exit(int code, Datum arg)
{
	let_go((KafkaWriter *) DatumGetPointer(arg));
}

void
kafka_close(KafkaWriter *writer)
{
	cancel_before_shmem_exit(let_go_at_exit, PointerGetDatum(writer));
	let_go(writer);
}

/* Fence off whoever wrote under the id, and have what he left open settled. */
static void
begin_writing(KafkaWriter *writer)
{
	TimestampTz deadline = kafka_deadline(writer);
	rd_kafka_error_t *error;

	while ((error = rd_kafka_init_transactions(writer->producer, KAFKA_SLICE_MS)) != NULL)
	{
		if (!rd_kafka_error_is_retriable(error))
			throw_error(writer, error, "could not begin to write to topics");
		rd_kafka_error_destroy(error);
		kafka_look(writer);
		check_failed(writer);
		kafka_check_deadline(writer, deadline, "could not reach the brokers");
	}
}

static int
int_property(rd_kafka_t *client, const char *name)
{
	char		text[64];
	size_t		size = sizeof(text);

	if (rd_kafka_conf_get(rd_kafka_conf(client), name, text, &size) != RD_KAFKA_CONF_OK)
		elog(ERROR, "librdkafka has no property \"%s\"", name);
	return atoi(text);
}

KafkaWriter *
kafka_open(const KafkaConfig *config)
{
	KafkaWriter *writer = palloc0(sizeof(KafkaWriter));
	rd_kafka_conf_t *conf;

	writer->config = config;
	writer->cxt = CurrentMemoryContext;
	before_shmem_exit(let_go_at_exit, PointerGetDatum(writer));

	conf = make_conf(writer);
	set_property(conf, "isolation.level", "read_committed");
	set_property(conf, "enable.partition.eof", "true");
	set_property(conf, "queued.max.messages.kbytes", "8192");
	writer->reader = start(writer, RD_KAFKA_CONSUMER, conf);

	conf = make_conf(writer);
	rd_kafka_conf_set_dr_msg_cb(conf, note_delivery);
	set_property(conf, "delivery.report.only.error", "true");
	set_property(conf, "transactional.id", config->transactional_id);
	set_property(conf, "transaction.timeout.ms", psprintf("%d", config->transaction_timeout_ms));
	/* where a topic ends, transactions that are open counted in: see kafka_read_last */
	set_property(conf, "isolation.level", "read_uncommitted");
	/* messages without a key would go where it is convenient, and not where their hash says */
	set_property(conf, "sticky.partitioning.linger.ms", "0");
	set_all(conf, config->producer_properties);
	writer->producer = start(writer, RD_KAFKA_PRODUCER, conf);
	writer->default_max_bytes = int_property(writer->producer, "message.max.bytes");
	writer->batch_bytes = int_property(writer->producer, "batch.size");
	begin_writing(writer);
	return writer;
}

/* ---- messages ---- */

size_t
kafka_message_size(const KafkaMessage *message)
{
	/* what a batch of one message needs beside it, and the lengths */
	size_t		size = 128 + (message->key != NULL ? message->key_len : 0) + (message->value != NULL ? message->value_len : 0);

	for (int i = 0; i < message->nheaders; i++)
		size += 16 + strlen(message->headers[i].name) + message->headers[i].len;
	return size;
}

static void
ensure_begun(KafkaWriter *writer)
{
	rd_kafka_error_t *error;

	if (writer->in_transaction)
		return;
	error = rd_kafka_begin_transaction(writer->producer);
	if (error != NULL)
		throw_error(writer, error, "could not begin a transaction");
	writer->in_transaction = true;
}

/* Errors come back as the library's; a message that it takes is copied. */
static rd_kafka_resp_err_t
produce(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message, int32 partition)
{
	void	   *opaque = message->has_hash ? (void *) (HASH_GIVEN | message->hash) : NULL;
	rd_kafka_vu_t fixed[6] = {
		{.vtype = RD_KAFKA_VTYPE_RKT,.u.rkt = topic->handle},
		{.vtype = RD_KAFKA_VTYPE_PARTITION,.u.i32 = partition},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS,.u.i = RD_KAFKA_MSG_F_COPY},
		{.vtype = RD_KAFKA_VTYPE_VALUE,.u.mem = {unconstify(char *, message->value), message->value == NULL ? 0 : message->value_len}},
		{.vtype = RD_KAFKA_VTYPE_KEY,.u.mem = {unconstify(char *, message->key), message->key == NULL ? 0 : message->key_len}},
		{.vtype = RD_KAFKA_VTYPE_OPAQUE,.u.ptr = opaque}
	};
	rd_kafka_headers_t *headers = NULL;
	rd_kafka_vu_t all[7];
	rd_kafka_error_t *error;
	rd_kafka_resp_err_t code;

	memcpy(all, fixed, sizeof(fixed));
	if (message->nheaders > 0)
	{
		headers = rd_kafka_headers_new((size_t) message->nheaders);
		for (int i = 0; i < message->nheaders; i++)
			(void) rd_kafka_header_add(headers, message->headers[i].name, -1, message->headers[i].value, (ssize_t) message->headers[i].len);
		all[6] = (rd_kafka_vu_t) {.vtype = RD_KAFKA_VTYPE_HEADERS,.u.headers = headers};
	}
	error = rd_kafka_produceva(writer->producer, all, headers == NULL ? 6 : 7);
	if (error == NULL)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	/* they are taken over with the message only */
	if (headers != NULL)
		rd_kafka_headers_destroy(headers);
	code = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	return code;
}

static void
send_to(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message, int32 partition)
{
	TimestampTz deadline = 0;
	int			waiting = 0;
	rd_kafka_resp_err_t code;

	ensure_begun(writer);
	while ((code = produce(writer, topic, message, partition)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
	{
		int			now;

		pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
		(void) rd_kafka_poll(writer->producer, KAFKA_SLICE_MS / 10);
		pgstat_report_wait_end();
		kafka_look(writer);
		check_failed(writer);
		/* as long as it gets shorter, somebody takes it */
		now = rd_kafka_outq_len(writer->producer);
		if (deadline == 0 || now < waiting)
			deadline = kafka_deadline(writer);
		waiting = now;
		kafka_check_deadline(writer, deadline, "could not write to topics");
	}
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		check_failed(writer);
		kafka_throw(writer, code, "could not write to a topic", psprintf("Topic \"%s\": %s.", topic->name, rd_kafka_err2str(code)));
	}
	if (++writer->sent % LOOK_MESSAGES == 0)
	{
		kafka_look(writer);
		check_failed(writer);
	}
}

void
kafka_send(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message)
{
	send_to(writer, topic, message, RD_KAFKA_PARTITION_UA);
}

void
kafka_send_first(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message)
{
	send_to(writer, topic, message, 0);
}

void
kafka_commit(KafkaWriter *writer)
{
	TimestampTz deadline = kafka_deadline(writer);
	int			waiting = rd_kafka_outq_len(writer->producer);
	rd_kafka_error_t *error;

	if (!writer->in_transaction)
		return;
	for (;;)
	{
		int			now;

		pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
		error = rd_kafka_commit_transaction(writer->producer, KAFKA_SLICE_MS);
		pgstat_report_wait_end();
		if (error == NULL)
			break;
		if (!rd_kafka_error_is_retriable(error))
			throw_error(writer, error, "could not commit a transaction");
		rd_kafka_error_destroy(error);
		kafka_look(writer);
		check_failed(writer);
		now = rd_kafka_outq_len(writer->producer);
		if (now < waiting)
			deadline = kafka_deadline(writer);
		waiting = now;
		kafka_check_deadline(writer, deadline, "could not commit a transaction");
	}
	writer->in_transaction = false;
	writer->told_away = false;
	writer->heard = RD_KAFKA_RESP_ERR_NO_ERROR;
	writer->heard_text[0] = '\0';
	(void) rd_kafka_poll(writer->producer, 0);
	check_failed(writer);
}

#endif							/* CDC_WITHOUT_KAFKA */
