/*-------------------------------------------------------------------------
 *
 * kafka_topic.c
 *	  Topics: looked at, and made where they are not there.
 *
 * NOTES
 *	  The writer alone would have brokers make topics as they like, so each is
 *	  looked at by the reader before the first message goes there. Its limit for a message is
 *	  known from then on, so that a message that it would refuse is not sent: one
 *	  that is refused makes the whole transaction one that has to be aborted.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifndef CDC_WITHOUT_KAFKA

#include "pgstat.h"
#include "utils/memutils.h"

#include "kafka/kafka_private.h"
#include "util/util_wait.h"

typedef struct TopicEntry
{
	char		name[256];		/* hash key; longer ones there are not in Kafka */
	KafkaTopic	topic;
} TopicEntry;

int
kafka_partition_count(KafkaWriter *writer, const char *name)
{
	TimestampTz deadline = kafka_deadline(writer);
	rd_kafka_topic_t *topic = rd_kafka_topic_new(writer->reader, name, NULL);
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TRANSPORT;
	int			count = 0;

	if (topic == NULL)
		kafka_throw(writer, rd_kafka_last_error(), "could not look at a topic", psprintf("Topic \"%s\": %s.", name, rd_kafka_err2str(rd_kafka_last_error())));
	PG_TRY();
	{
		while (metadata == NULL)
		{
			pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
			code = rd_kafka_metadata(writer->reader, 0, topic, &metadata, 5 * KAFKA_SLICE_MS);
			pgstat_report_wait_end();
			if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
				break;
			metadata = NULL;
			kafka_look(writer);
			kafka_check_deadline(writer, deadline, "could not look at topics");
		}
	}
	PG_FINALLY();
	{
		rd_kafka_topic_destroy(topic);
	}
	PG_END_TRY();
	code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		count = metadata->topics[0].partition_cnt;
		for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
		{
			if (metadata->topics[0].partitions[i].leader < 0)
				count = 0;
		}
	}
	rd_kafka_metadata_destroy(metadata);
	if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
		return -1;
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
		kafka_throw(writer, code, "could not look at a topic", psprintf("Topic \"%s\": %s.", name, rd_kafka_err2str(code)));
	return count;
}

/* The answer to an administrator's request; the caller's to destroy. */
static rd_kafka_event_t *
wait_for_answer(KafkaWriter *writer, rd_kafka_queue_t *queue, const char *what)
{
	TimestampTz deadline = kafka_deadline(writer);
	rd_kafka_event_t *event;

	for (;;)
	{
		pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
		event = rd_kafka_queue_poll(queue, KAFKA_SLICE_MS);
		pgstat_report_wait_end();
		if (event != NULL)
			return event;
		kafka_look(writer);
		kafka_check_deadline(writer, deadline, what);
	}
}

static void
throw_not_made(KafkaWriter *writer, const char *name, rd_kafka_resp_err_t code, const char *text)
{
	kafka_throw(writer, code, "could not make a topic", psprintf("Topic \"%s\": %s", name, text));
}

static void
make_topic(KafkaWriter *writer, const char *name, const KafkaTopicWish *wish)
{
	char		text[KAFKA_TEXT_MAX];
	rd_kafka_NewTopic_t *new_topic = rd_kafka_NewTopic_new(name, wish->partitions > 0 ? wish->partitions : -1,
														   wish->replication > 0 ? wish->replication : -1, text, sizeof(text));
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *event;
	const rd_kafka_topic_result_t *const *results;
	rd_kafka_resp_err_t code;
	size_t		count;

	if (new_topic == NULL)
		throw_not_made(writer, name, RD_KAFKA_RESP_ERR__INVALID_ARG, text);
	if (wish->cleanup_policy != NULL)
		(void) rd_kafka_NewTopic_set_config(new_topic, "cleanup.policy", wish->cleanup_policy);
	if (wish->is_small)
	{
		(void) rd_kafka_NewTopic_set_config(new_topic, "segment.bytes", "1048576");
		(void) rd_kafka_NewTopic_set_config(new_topic, "min.cleanable.dirty.ratio", "0.01");
	}
	queue = rd_kafka_queue_new(writer->reader);
	rd_kafka_CreateTopics(writer->reader, &new_topic, 1, NULL, queue);
	rd_kafka_NewTopic_destroy(new_topic);
	event = wait_for_answer(writer, queue, "could not make topics");

	code = rd_kafka_event_error(event);
	snprintf(text, sizeof(text), "%s", code == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : rd_kafka_event_error_string(event));
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		results = (const rd_kafka_topic_result_t *const *) rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
		if (count == 1)
		{
			const char *said = rd_kafka_topic_result_error_string(results[0]);

			code = rd_kafka_topic_result_error(results[0]);
			snprintf(text, sizeof(text), "%s", said != NULL ? said : rd_kafka_err2str(code));
		}
	}
	rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
		throw_not_made(writer, name, code, text);
}

/* What the topic's configuration says; who may not see it goes by the defaults. */
static void
describe_topic(KafkaWriter *writer, KafkaTopic *topic)
{
	rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic->name);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(writer->reader);
	const rd_kafka_ConfigResource_t **resources;
	const rd_kafka_ConfigEntry_t **entries;
	rd_kafka_event_t *event;
	size_t		count;

	rd_kafka_DescribeConfigs(writer->reader, &resource, 1, NULL, queue);
	rd_kafka_ConfigResource_destroy(resource);
	event = wait_for_answer(writer, queue, "could not look at topics");
	if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR)
	{
		resources = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
		entries = count == 1 ? rd_kafka_ConfigResource_configs(resources[0], &count) : NULL;
		for (size_t i = 0; entries != NULL && i < count; i++)
		{
			const char *name = rd_kafka_ConfigEntry_name(entries[i]);
			const char *value = rd_kafka_ConfigEntry_value(entries[i]);

			if (value == NULL)
				continue;
			if (strcmp(name, "max.message.bytes") == 0)
				topic->max_bytes = Min(topic->max_bytes, atoi(value));
			else if (strcmp(name, "cleanup.policy") == 0)
				topic->is_compacted = strstr(value, "compact") != NULL;
		}
	}
	rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	if (topic->max_bytes < Min(writer->batch_bytes, writer->default_max_bytes))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("topic \"%s\" of Kafka server \"%s\" takes no batches of the size that the client makes", topic->name, writer->config->server_name),
				 errdetail("Its max.message.bytes is %d, and \"batch.size\" of the client is %d.", topic->max_bytes, writer->batch_bytes),
				 errhint("Run ALTER SERVER %s OPTIONS (ADD \"batch.size\" '%d').", writer->config->server_name, topic->max_bytes)));
}

static void
ensure_made(KafkaWriter *writer, const char *name, const KafkaTopicWish *wish)
{
	TimestampTz deadline = kafka_deadline(writer);

	if (kafka_partition_count(writer, name) < 0)
		make_topic(writer, name, wish);
	/* brokers hear of it one after the other */
	while (kafka_partition_count(writer, name) <= 0)
	{
		(void) util_wait(PGINVALID_SOCKET, KAFKA_SLICE_MS / 4, UTIL_WAIT_KAFKA);
		kafka_look(writer);
		kafka_check_deadline(writer, deadline, "could not make topics");
	}
}

KafkaTopic *
kafka_topic(KafkaWriter *writer, const char *name, const KafkaTopicWish *wish)
{
	TopicEntry *entry;
	KafkaTopic	topic = {.max_bytes = writer->default_max_bytes};
	bool		found;

	if (writer->topics == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(entry->name),.entrysize = sizeof(TopicEntry),.hcxt = writer->cxt};

		writer->topics = hash_create("cdc Kafka topics", 64, &ctl, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	entry = hash_search(writer->topics, name, HASH_FIND, NULL);
	if (entry != NULL)
		return &entry->topic;
	ensure_made(writer, name, wish);
	topic.name = MemoryContextStrdup(writer->cxt, name);
	describe_topic(writer, &topic);
	topic.handle = rd_kafka_topic_new(writer->producer, name, NULL);
	if (topic.handle == NULL)
		kafka_throw(writer, rd_kafka_last_error(), "could not write to a topic", NULL);
	entry = hash_search(writer->topics, name, HASH_ENTER, &found);
	entry->topic = topic;
	return &entry->topic;
}

void
kafka_topics_close(KafkaWriter *writer)
{
	HASH_SEQ_STATUS scan;
	TopicEntry *entry;

	if (writer->topics == NULL)
		return;
	hash_seq_init(&scan, writer->topics);
	while ((entry = hash_seq_search(&scan)) != NULL)
		rd_kafka_topic_destroy(entry->topic.handle);
	writer->topics = NULL;
}

#endif							/* CDC_WITHOUT_KAFKA */
