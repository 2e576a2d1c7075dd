/*-------------------------------------------------------------------------
 *
 * kafka_private.h
 *	  Between the files of kafka/.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_KAFKA_PRIVATE_H
#define CDC_KAFKA_PRIVATE_H

#include "postgres.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include <librdkafka/rdkafka.h>

#include "kafka/kafka.h"

/* The longest wait in the library, before interrupts are looked at. */
#define KAFKA_SLICE_MS 100

#define KAFKA_TEXT_MAX 512

struct KafkaWriter
{
	const KafkaConfig *config;
	MemoryContext cxt;
	rd_kafka_t *producer;
	rd_kafka_t *reader;			/* a consumer: looks at topics, makes them, reads committed messages; never makes one by looking */
	HTAB	   *topics;			/* TopicEntry */
	bool		in_transaction;
	uint64		sent;
	int			default_max_bytes;	/* of a message, as the client has it */
	int			batch_bytes;

	/* what callbacks were told and is not thrown yet */
	rd_kafka_resp_err_t failed; /* a message did not arrive, or the producer is at an end */
	char		failed_text[KAFKA_TEXT_MAX];

	/* the last thing that went wrong with a connection: the reason when nothing comes in time */
	rd_kafka_resp_err_t heard;
	char		heard_text[KAFKA_TEXT_MAX];
	bool		told_away;
};

/* Throw an error of the library; what: "could not ...", detail may be NULL. */
extern _Noreturn void kafka_throw(KafkaWriter *writer, rd_kafka_resp_err_t code, const char *what, const char *detail);

/* Let callbacks run, and see to interrupts. Throws when a login was refused. */
extern void kafka_look(KafkaWriter *writer);

/* Throws when nothing came until then. */
extern void kafka_check_deadline(KafkaWriter *writer, TimestampTz deadline, const char *what);

/* From now. */
extern TimestampTz kafka_deadline(const KafkaWriter *writer);

/* in kafka_topic.c */

/* How many partitions a topic has; 0: one of them cannot be used yet, -1: there is no such topic. Makes none. */
extern int	kafka_partition_count(KafkaWriter *writer, const char *topic);
extern void kafka_topics_close(KafkaWriter *writer);

#endif							/* CDC_KAFKA_PRIVATE_H */
