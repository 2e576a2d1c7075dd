/*-------------------------------------------------------------------------
 *
 * sink_message.h
 *	  Records -> messages for topics.
 *
 * NOTES
 *	  A message is a frame in a buffer: what it is made of can be computed in one
 *	  process and sent by another. A row's key makes the partition, so that what
 *	  happens to a row stays in order; where there is no key the table's name does, for all
 *	  of a table.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SINK_MESSAGE_H
#define CDC_SINK_MESSAGE_H

#include "postgres.h"

#include "kafka/kafka.h"
#include "sink/sink.h"
#include "sink/sink_topic.h"

/* What a topic is for. */
typedef enum SinkTopicKind
{
	SINK_TOPIC_ROWS,
	SINK_TOPIC_SCHEMA,
	SINK_TOPIC_TRANSACTION,
	SINK_TOPIC_MESSAGE
} SinkTopicKind;

/* How a pipeline's messages are made. */
typedef struct SinkShape
{
	CdcFormat  *format;
	const char *patterns[SINK_TOPIC_MESSAGE + 1];
	const char *database;
	const char *server;
	bool		tombstones;
	bool		headers;
	CdcBuf		key;
	CdcBuf		partition_key;
	CdcBuf		old_key;
	CdcBuf		new_key;
	uint64		table_version;	/* of the table that "topic" is the topic of; 0: none yet */
	char		topic[SINK_TOPIC_MAX];
} SinkShape;

#define SINK_MAX_HEADERS 4

/* A frame, taken apart; points into the buffer. */
typedef struct SinkMessage
{
	SinkTopicKind kind;
	const char *topic;
	KafkaMessage message;
	KafkaHeader headers[SINK_MAX_HEADERS];
} SinkMessage;

/* Throws for options that do not make sense. */
extern void sink_shape_check(const CatalogPipeline *pipeline);

/* Lives in CurrentMemoryContext. */
extern SinkShape *sink_shape(const CdcSinkTarget *target);

/* Append the frames of a record; none when nothing of it is wanted. */
extern void sink_add_messages(SinkShape *shape, const CdcRecord *record, CdcBuf *out);

/* Take the first frame apart: its length, or 0 when the buffer does not have all of it. */
extern size_t sink_message_read(const char *data, size_t len, SinkMessage *message);

#endif							/* CDC_SINK_MESSAGE_H */
