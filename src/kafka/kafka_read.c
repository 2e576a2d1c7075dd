/*-------------------------------------------------------------------------
 *
 * kafka_read.c
 *	  The last committed message with a key.
 *
 * NOTES
 *	  A consumer of committed messages is held up where a transaction begins that is
 *	  open yet. It may be another pipeline's: what was committed behind that, by us,
 *	  would be overlooked, and the changes would come once more. So the partition's
 *	  end is asked for as who reads uncommitted messages sees it, and the consumer
 *	  has to come to that.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifndef CDC_WITHOUT_KAFKA

#include "pgstat.h"

#include "kafka/kafka_private.h"
#include "util/util_wait.h"

/* A topic is not there when so many answers say so. */
#define UNKNOWN_TRIES 5

/* A broker that has just begun may not know of a topic that is there. */
static bool
is_there(KafkaWriter *writer, const char *topic)
{
	TimestampTz deadline = kafka_deadline(writer);

	for (int unknown = 0;;)
	{
		int			count = kafka_partition_count(writer, topic);

		if (count > 0)
			return true;
		if (count < 0 && ++unknown == UNKNOWN_TRIES)
			return false;
		(void) util_wait(PGINVALID_SOCKET, KAFKA_SLICE_MS, UTIL_WAIT_KAFKA);
		kafka_look(writer);
		kafka_check_deadline(writer, deadline, "could not read topics");
	}
}

static int64
partition_end(KafkaWriter *writer, const char *topic)
{
	TimestampTz deadline = kafka_deadline(writer);
	int64_t		low,
				high;
	rd_kafka_resp_err_t code;

	for (;;)
	{
		pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
		/* the producer's: its isolation level is that of who reads all */
		code = rd_kafka_query_watermark_offsets(writer->producer, topic, 0, &low, &high, 5 * KAFKA_SLICE_MS);
		pgstat_report_wait_end();
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			return high > low ? high : 0;
		if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
			kafka_throw(writer, code, "could not read a topic", psprintf("Topic \"%s\": %s.", topic, rd_kafka_err2str(code)));
		kafka_look(writer);
		kafka_check_deadline(writer, deadline, "could not read topics");
	}
}

/* Take in messages until the end has come. */
static bool
read_until(KafkaWriter *writer, rd_kafka_topic_t *topic, int64 end, const char *key, StringInfo value)
{
	TimestampTz deadline = kafka_deadline(writer);
	bool		found = false;
	int64		at = 0;

	while (at < end)
	{
		rd_kafka_message_t *message;

		pgstat_report_wait_start(util_wait_event(UTIL_WAIT_KAFKA));
		message = rd_kafka_consume(topic, 0, KAFKA_SLICE_MS);
		pgstat_report_wait_end();
		kafka_look(writer);
		if (message == NULL)
		{
			kafka_check_deadline(writer, deadline, "could not read what transactions leave open in a topic");
			continue;
		}
		if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			at = message->offset;
		else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		{
			rd_kafka_resp_err_t code = message->err;

			rd_kafka_message_destroy(message);
			kafka_throw(writer, code, "could not read a topic", NULL);
		}
		else
		{
			at = message->offset + 1;
			deadline = kafka_deadline(writer);
			if (message->key != NULL && message->key_len == strlen(key) && memcmp(message->key, key, message->key_len) == 0)
			{
				found = message->payload != NULL;
				resetStringInfo(value);
				if (found)
					appendBinaryStringInfo(value, message->payload, (int) message->len);
			}
		}
		rd_kafka_message_destroy(message);
	}
	return found;
}

bool
kafka_read_last(KafkaWriter *writer, const char *name, const char *key, StringInfo value)
{
	rd_kafka_topic_t *topic;
	int64		end;
	volatile bool found = false;

	if (!is_there(writer, name))
		return false;
	end = partition_end(writer, name);
	topic = rd_kafka_topic_new(writer->reader, name, NULL);
	if (topic == NULL || rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) != 0)
		kafka_throw(writer, rd_kafka_last_error(), "could not read a topic", NULL);
	PG_TRY();
	{
		found = read_until(writer, topic, end, key, value);
	}
	PG_FINALLY();
	{
		(void) rd_kafka_consume_stop(topic, 0);
		rd_kafka_topic_destroy(topic);
	}
	PG_END_TRY();
	return found;
}

#endif							/* CDC_WITHOUT_KAFKA */
