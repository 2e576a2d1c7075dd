/*-------------------------------------------------------------------------
 *
 * catalog_export_options.c
 *	  Options of outgoing pipelines and of the servers that are their sinks.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/catalog_export.h"
#include "catalog/catalog_record_options.h"

static const char *const schema_changes_values[] = {"evolve", "ignore", "exception", NULL};
static const char *const cleanup_values[] = {"delete", "compact", "compact,delete", NULL};
static const char *const compression_values[] = {"none", "gzip", "snappy", "lz4", "zstd", NULL};
static const char *const security_values[] = {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl", NULL};
static const char *const snapshot_values[] = {"initial", "never", NULL};

static const UtilOption export_option_list[] = {
	{.name = "dead_letter_max_days",.type = UTIL_OPTION_INT,.default_text = "30",.min = 0,.max = 100000,.unit = "days",
	.description = "dead letters that are older are removed; 0 keeps them"},
	{.name = "dead_letter_max_rows",.type = UTIL_OPTION_INT,.default_text = "1000000",.min = 0,.max = 2000000000,.unit = "rows",
	.description = "most dead letters: beyond that the oldest are removed; 0: no limit"},
	{.name = "failover",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "let standbys have a copy of the slot, so that the pipeline goes on where one of them is promoted; PostgreSQL 17 and later"},
	{.name = "flush_max_kb",.type = UTIL_OPTION_INT,.default_text = "8192",.min = 1,.max = 1048576,.unit = "kB",
	.description = "make what was written durable when it has this size; a transaction is never split"},
	{.name = "flush_max_ms",.type = UTIL_OPTION_INT,.default_text = "200",.min = 0,.max = 60000,.unit = "ms",
	.description = "make what was written durable at the latest after this time; 0: after every transaction"},
	{.name = "headers",.type = UTIL_OPTION_BOOL,.default_text = "false",
	.description = "sink cdc_kafka: headers of each message tell table, operation and position"},
	{.name = "message_topic",.type = UTIL_OPTION_TEXT,.default_text = "{database}.message",
	.description = "sink cdc_kafka: topic of what pg_logical_emit_message writes"},
	{.name = "on_error",.type = UTIL_OPTION_ENUM,.default_text = "stop_table",.values = catalog_on_error_words,
	.description = "a table that cannot be shipped, or a row of it: stop that table, keep the row in cdc_dead_letters and go on, or stop the pipeline before it"},
	{.name = "schema_changes",.type = UTIL_OPTION_ENUM,.default_text = "evolve",.values = schema_changes_values,
	.description = "a statement changes a table's definition: ship that too, leave it out, or stop the table"},
	{.name = "schema_changes_exclude",.type = UTIL_OPTION_ARRAY,
	.description = "kinds of schema changes that are left out: add_column, drop_column, ..."},
	{.name = "schema_changes_include",.type = UTIL_OPTION_ARRAY,
	.description = "kinds of schema changes that are not left out; all others are"},
	{.name = "schema_history_max_rows",.type = UTIL_OPTION_INT,.default_text = "10000",.min = 1,.max = 10000000,.unit = "rows",
	.description = "most changes that cdc_schema_history remembers; older ones are removed"},
	{.name = "schema_topic",.type = UTIL_OPTION_TEXT,.default_text = "{database}.schema_changes",
	.description = "sink cdc_kafka: topic of schema changes"},
	{.name = "slot_max_mb",.type = UTIL_OPTION_INT,.default_text = "0",.min = 0,.max = INT_MAX,.unit = "MB",
	.description = "most log that a stopped or slow pipeline may hold back; beyond it the slot is given up; 0: no limit but max_slot_wal_keep_size"},
	{.name = "snapshot",.type = UTIL_OPTION_ENUM,.default_text = "initial",.values = snapshot_values,
	.description = "ship the rows that are there at the start, too, or only changes"},
	{.name = "snapshot_chunk_kb",.type = UTIL_OPTION_INT,.default_text = "8192",.min = 1,.max = 1048576,.unit = "kB",
	.description = "most that is written of a table at a time while its rows are copied; changes go on in between"},
	{.name = "snapshot_chunk_rows",.type = UTIL_OPTION_INT,.default_text = "20000",.min = 1,.max = 1000000,.unit = "rows",
	.description = "most rows that are read at a time"},
	{.name = "snapshot_workers",.type = UTIL_OPTION_INT,.default_text = "2",.min = 1,.max = CATALOG_MAX_SNAPSHOT_WORKERS,.unit = "processes",
	.description = "processes that read one piece of a large table at the same time while it is copied; 1: the pipeline's own worker alone"},
	{.name = "tombstones",.type = UTIL_OPTION_BOOL,.default_text = "true",
	.description = "sink cdc_kafka: behind the message of a deleted row another one with its key and no value"},
	{.name = "topic",.type = UTIL_OPTION_TEXT,.default_text = "{schema}.{table}",
	.description = "sink cdc_kafka: topic of rows; {schema}, {table}, {database} and {server} stand for names"},
	{.name = "topic_cleanup_policy",.type = UTIL_OPTION_ENUM,.values = cleanup_values,
	.description = "sink cdc_kafka: what becomes of old messages in a topic of rows that is made; default: as the brokers have it"},
	{.name = "topic_partitions",.type = UTIL_OPTION_INT,.default_text = "0",.min = 0,.max = 10000,.unit = "partitions",
	.description = "sink cdc_kafka: of a topic of rows that is made; 0: as the brokers have it"},
	{.name = "topic_replication",.type = UTIL_OPTION_INT,.default_text = "0",.min = 0,.max = 100,.unit = "replicas",
	.description = "sink cdc_kafka: of a topic that is made; 0: as the brokers have it"},
	{.name = "transaction_topic",.type = UTIL_OPTION_TEXT,.default_text = "{database}.transaction",
	.description = "sink cdc_kafka: topic of what include_transaction asks for"},
};

const UtilOptionTable catalog_export_options = {
	.kind = "pipeline",
	.subject = "outgoing",
	.options = export_option_list,
	.count = lengthof(export_option_list),
	.base = &catalog_record_options
};

static const char *const subject_values[] = {"topic", "record", "topic-record", NULL};

static const UtilOption registry_server_option_list[] = {
	{.name = "schema_registry_subject",.type = UTIL_OPTION_ENUM,.default_text = "topic",.values = subject_values,
	.description = "under which names schemas are registered: the topic's with -value and -key, the record's, or both"},
	{.name = "schema_registry_url",.type = UTIL_OPTION_TEXT,
	.description = "format debezium-avro: the schema registry, http://host:port or https://"},
};

const UtilOptionTable catalog_registry_server_options = {
	.kind = "server",
	.subject = "sink",
	.options = registry_server_option_list,
	.count = lengthof(registry_server_option_list)
};

static const UtilOption registry_user_mapping_option_list[] = {
	{.name = "registry_password",.type = UTIL_OPTION_TEXT,.secret = true,
	.description = "password for the schema registry"},
	{.name = "registry_username",.type = UTIL_OPTION_TEXT,
	.description = "user of the schema registry; default: without authentication"},
};

const UtilOptionTable catalog_registry_user_mapping_options = {
	.kind = "user mapping",
	.subject = "cdc_file",
	.options = registry_user_mapping_option_list,
	.count = lengthof(registry_user_mapping_option_list)
};

static const UtilOption file_server_option_list[] = {
	{.name = "directory",.type = UTIL_OPTION_TEXT,.superuser_only = true,
	.description = "where the pipelines write: each into a folder of its own name"},
	{.name = "file_max_kb",.type = UTIL_OPTION_INT,.default_text = "1048576",.min = 1,.max = INT_MAX,.unit = "kB",
	.description = "begin another file when one has this size; a transaction is never split"},
};

const UtilOptionTable catalog_file_server_options = {
	.kind = "server",
	.subject = "cdc_file",
	.options = file_server_option_list,
	.count = lengthof(file_server_option_list),
	.base = &catalog_registry_server_options
};

static const UtilOption null_server_option_list[] = {
	{.name = "write_format",.type = UTIL_OPTION_BOOL,.default_text = "true",
	.description = "write each change in the pipeline's format before it is thrown away; false: throw away decoded records"},
};

const UtilOptionTable catalog_null_server_options = {
	.kind = "server",
	.subject = "cdc_null",
	.options = null_server_option_list,
	.count = lengthof(null_server_option_list),
	.base = &catalog_registry_server_options
};

static const UtilOption kafka_server_option_list[] = {
	{.name = "bootstrap_servers",.type = UTIL_OPTION_TEXT,
	.description = "brokers to ask for the others: \"k1:9092,k2:9092\""},
	{.name = "compression",.type = UTIL_OPTION_ENUM,.default_text = "lz4",.values = compression_values,
	.description = "how batches of messages are compressed"},
	{.name = "queue_max_kb",.type = UTIL_OPTION_INT,.default_text = "65536",.min = 1024,.max = 2097151,.unit = "kB",
	.description = "most that waits for the brokers to take it; decoding waits then"},
	{.name = "request_timeout",.type = UTIL_OPTION_INT,.default_text = "30",.min = 1,.max = 3600,.unit = "s",
	.description = "how long brokers may be away before the worker ends and another one tries"},
	{.name = "sasl_mechanism",.type = UTIL_OPTION_TEXT,.default_text = "PLAIN",
	.description = "how to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, ..."},
	{.name = "security_protocol",.type = UTIL_OPTION_ENUM,.values = security_values,
	.description = "TLS, and login; without it TLS, but none for loopback addresses, and login when the user mapping has a username"},
	{.name = "ssl_ca",.type = UTIL_OPTION_TEXT,.superuser_only = true,
	.description = "file with the certificates of trusted authorities"},
	{.name = "ssl_cert",.type = UTIL_OPTION_TEXT,.superuser_only = true,
	.description = "file with the client's certificate"},
	{.name = "ssl_key",.type = UTIL_OPTION_TEXT,.superuser_only = true,
	.description = "file with the client's private key"},
	{.name = "state_topic",.type = UTIL_OPTION_TEXT,.default_text = "cdc_bridge_state",
	.description = "topic in which the pipelines keep how far they are"},
	{.name = "transaction_max_kb",.type = UTIL_OPTION_INT,.default_text = "1048576",.min = 16,.max = INT_MAX,.unit = "kB",
	.description = "a transaction with more than that comes in several Kafka transactions"},
	{.name = "transaction_timeout",.type = UTIL_OPTION_INT,.default_text = "300",.min = 3,.max = 86400,.unit = "s",
	.description = "how long a Kafka transaction may be open; a transaction that takes a third of it comes in several"},
};

const UtilOptionTable catalog_kafka_server_options = {
	.kind = "server",
	.subject = "cdc_kafka",
	.options = kafka_server_option_list,
	.count = lengthof(kafka_server_option_list),
	.base = &catalog_registry_server_options
};

static const UtilOption kafka_user_mapping_option_list[] = {
	{.name = "username",.type = UTIL_OPTION_TEXT,
	.description = "user to log in as (SASL)"},
	{.name = "password",.type = UTIL_OPTION_TEXT,.secret = true,
	.description = "password of that user"},
	{.name = "ssl_key_password",.type = UTIL_OPTION_TEXT,.secret = true,
	.description = "password of the client's private key"},
};

const UtilOptionTable catalog_kafka_user_mapping_options = {
	.kind = "user mapping",
	.subject = "cdc_kafka",
	.options = kafka_user_mapping_option_list,
	.count = lengthof(kafka_user_mapping_option_list),
	.base = &catalog_registry_user_mapping_options
};

static const char *const kafka_pipeline_options[] = {
	"headers", "message_topic", "schema_topic", "tombstones", "topic", "topic_cleanup_policy", "topic_partitions", "topic_replication",
	"transaction_topic",
};

const char *
catalog_export_kafka_option(const CatalogPipeline *pipeline)
{
	for (size_t i = 0; i < lengthof(kafka_pipeline_options); i++)
	{
		if (catalog_pipeline_option(pipeline, kafka_pipeline_options[i]) != NULL)
			return kafka_pipeline_options[i];
	}
	return NULL;
}

const UtilOptionTable *
catalog_sink_options(const char *wrapper)
{
	static const UtilOptionTable *const tables[] = {&catalog_file_server_options, &catalog_kafka_server_options, &catalog_null_server_options};

	for (size_t i = 0; i < lengthof(tables); i++)
	{
		if (strcmp(tables[i]->subject, wrapper) == 0)
			return tables[i];
	}
	return NULL;
}

int
catalog_export_int(const CatalogPipeline *pipeline, const char *name)
{
	return util_option_int(&catalog_export_options, name, catalog_pipeline_option(pipeline, name));
}

const char *
catalog_export_text(const CatalogPipeline *pipeline, const char *name)
{
	return util_option_text(&catalog_export_options, name, catalog_pipeline_option(pipeline, name));
}

bool
catalog_export_hears_statements(const CatalogPipeline *pipeline)
{
	const char *mode = catalog_pipeline_option(pipeline, "schema_changes");

	return mode == NULL || strcmp(mode, "ignore") != 0;
}

bool
catalog_export_bool(const CatalogPipeline *pipeline, const char *name)
{
	return util_option_bool(&catalog_export_options, name, catalog_pipeline_option(pipeline, name));
}
