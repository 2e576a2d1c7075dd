/*-------------------------------------------------------------------------
 *
 * kafka_options.c
 *	  Which of librdkafka's properties a server or a user mapping may set.
 *
 * NOTES
 *	  All but those that the sink depends on, or that have an option of their own.
 *	  librdkafka itself says whether there is such a property and whether it can
 *	  have that value. Those that name files or programs on the database server are for superusers, and
 *	  secrets stand in user mappings, which others cannot read; no message quotes them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>

#include "miscadmin.h"

#ifndef CDC_WITHOUT_KAFKA
#include <librdkafka/rdkafka.h>
#endif

#include "kafka/kafka.h"

#ifndef CDC_WITHOUT_KAFKA

#define ERROR_MAX 512

/* A property, and the option to set instead; NULL: the sink needs it as it is. */
typedef struct Taken
{
	const char *name;
	const char *option;
} Taken;

static const Taken taken[] = {
	{"acks", NULL},
	{"allow.auto.create.topics", NULL},
	{"auto.commit.enable", NULL},
	{"auto.offset.reset", NULL},
	{"bootstrap.servers", "bootstrap_servers"},
	{"builtin.features", NULL},
	{"client.id", NULL},
	{"compression.codec", "compression"},
	{"compression.type", "compression"},
	{"delivery.report.only.error", NULL},
	{"enable.auto.commit", NULL},
	{"enable.auto.offset.store", NULL},
	{"enable.gapless.guarantee", NULL},
	{"enable.idempotence", NULL},
	{"enable.partition.eof", NULL},
	{"group.id", NULL},
	{"group.instance.id", NULL},
	{"isolation.level", NULL},
	{"log.queue", NULL},
	{"message.timeout.ms", "transaction_timeout"},
	{"delivery.timeout.ms", "transaction_timeout"},
	{"metadata.broker.list", "bootstrap_servers"},
	{"partitioner", NULL},
	{"plugin.library.paths", NULL},
	{"produce.offset.report", NULL},
	{"queue.buffering.max.kbytes", "queue_max_kb"},
	{"queuing.strategy", NULL},
	{"request.required.acks", NULL},
	{"sasl.mechanism", "sasl_mechanism"},
	{"sasl.mechanisms", "sasl_mechanism"},
	{"sasl.password", "password"},
	{"sasl.username", "username"},
	{"security.protocol", "security_protocol"},
	{"ssl.ca.location", "ssl_ca"},
	{"ssl.certificate.location", "ssl_cert"},
	{"ssl.key.location", "ssl_key"},
	{"ssl.key.password", "ssl_key_password"},
	{"sticky.partitioning.linger.ms", NULL},
	{"transaction.timeout.ms", "transaction_timeout"},
	{"transactional.id", NULL},
};

/* They name a file, a library or a program of the database server; beside all that end in ".location". */
static const char *const of_machine[] = {
	"sasl.kerberos.keytab", "sasl.kerberos.kinit.cmd", "ssl.ca.certificate.stores", "ssl.engine.id", "ssl.providers",
};

static bool
ends_with(const char *name, const char *end)
{
	size_t		len = strlen(name);

	return len >= strlen(end) && strcmp(name + len - strlen(end), end) == 0;
}

static bool
names_machine(const char *name)
{
	for (size_t i = 0; i < lengthof(of_machine); i++)
	{
		if (pg_strcasecmp(of_machine[i], name) == 0)
			return true;
	}
	return ends_with(name, ".location");
}

static bool
is_secret(const char *name)
{
	return strstr(name, "password") != NULL || strstr(name, "secret") != NULL || ends_with(name, "key.pem") ||
		strcmp(name, "sasl.oauthbearer.config") == 0;
}

bool
kafka_is_property(const char *name)
{
	char		value[ERROR_MAX];
	size_t		size = sizeof(value);
	rd_kafka_conf_t *conf;
	bool		is_there;

	if (strchr(name, '.') != NULL)
		return true;
	conf = rd_kafka_conf_new();
	is_there = rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK;
	rd_kafka_conf_destroy(conf);
	return is_there;
}

static void
check_taken(const char *name)
{
	for (size_t i = 0; i < lengthof(taken); i++)
	{
		if (strcmp(taken[i].name, name) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("property \"%s\" cannot be set", name),
					 taken[i].option != NULL ? errhint("Use option \"%s\".", taken[i].option) :
					 errdetail("The sink needs it as it is.")));
	}
}

void
kafka_property_check(const char *name, const char *value, bool of_mapping)
{
	char		error[ERROR_MAX];
	rd_kafka_conf_t *conf;
	rd_kafka_conf_res_t result;

	check_taken(name);
	conf = rd_kafka_conf_new();
	result = rd_kafka_conf_set(conf, name, value, error, sizeof(error));
	rd_kafka_conf_destroy(conf);
	if (result == RD_KAFKA_CONF_UNKNOWN || strstr(name, "_cb") != NULL || strcmp(name, "opaque") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("librdkafka has no property \"%s\"", name),
				 errhint("See its list of configuration properties; this is version %s.", rd_kafka_version_str())));
	if (is_secret(name) != of_mapping)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("property \"%s\" does not belong to a cdc_kafka %s", name, of_mapping ? "user mapping" : "server"),
				 errhint("Set it on the %s.", of_mapping ? "server" : "user mapping")));
	if (result != RD_KAFKA_CONF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for property \"%s\"", name),
				 of_mapping ? 0 : errdetail_internal("%s", error)));
	if (names_machine(name) && !superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set property \"%s\"", name),
				 errdetail("It names something on the database server."),
				 errhint("Only superusers may set it.")));
}

void
kafka_require(void)
{
}

#else							/* CDC_WITHOUT_KAFKA */

bool
kafka_is_property(const char *name)
{
	return strchr(name, '.') != NULL;
}

/* A dump has to go in again. */
void
kafka_property_check(const char *name, const char *value, bool of_mapping)
{
}

void
kafka_require(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cdc_bridge was built without librdkafka"),
			 errhint("Build it without KAFKA=no.")));
}

/* Nobody comes to the others: a writer is never opened. */

KafkaWriter *
kafka_open(const KafkaConfig *config)
{
	kafka_require();
	return NULL;
}

void
kafka_close(KafkaWriter *writer)
{
}

bool
kafka_read_last(KafkaWriter *writer, const char *topic, const char *key, StringInfo value)
{
	return false;
}

KafkaTopic *
kafka_topic(KafkaWriter *writer, const char *name, const KafkaTopicWish *wish)
{
	return NULL;
}

size_t
kafka_message_size(const KafkaMessage *message)
{
	return 0;
}

void
kafka_send(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message)
{
}

void
kafka_send_first(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message)
{
}

void
kafka_commit(KafkaWriter *writer)
{
}

uint32
kafka_hash(const char *data, size_t len)
{
	return 0;
}

#endif							/* CDC_WITHOUT_KAFKA */

/* One host of the list, without its port. */
static bool
is_loopback(const char *host, size_t len)
{
	struct in_addr address;
	char	   *name = pnstrdup(host, len);

	return pg_strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
		(inet_pton(AF_INET, name, &address) == 1 && (ntohl(address.s_addr) >> 24) == 127);
}

bool
kafka_is_loopback(const char *bootstrap_servers)
{
	for (const char *at = bootstrap_servers; *at != '\0';)
	{
		size_t		len = strcspn(at, ", \t");
		const char *port = memchr(at, ':', len);

		if (len > 0 && at[0] == '[')
			port = memchr(at, ']', len) != NULL ? (const char *) memchr(at, ']', len) + 1 : NULL;
		if (len > 0 && !is_loopback(at, port == NULL ? len : (size_t) (port - at)))
			return false;
		at += len;
		at += strspn(at, ", \t");
	}
	return true;
}
