/*-------------------------------------------------------------------------
 *
 * kafka.h
 *	  A Kafka cluster, written to in transactions.
 *
 * NOTES
 *	  The only folder that sees librdkafka. Its threads block all signals and call
 *	  nothing of PostgreSQL: what they have to say waits in queues until this
 *	  process asks, between waits of a tenth of a second at most, so that it can be
 *	  ended at any time, whatever the cluster does. Callbacks run in this
 *	  process and throw nothing; what they were told is thrown by the call behind.
 *
 *	  A writer has one open Kafka transaction at most: it begins with the
 *	  first message and ends with kafka_commit. Whoever opens a writer of the same
 *	  transactional id later fences this one off: its transaction is aborted, or
 *	  was committed before, and the next call throws. So after
 *	  kafka_open nothing of an earlier process can still arrive.
 *
 *	  All functions may throw, but kafka_close; after that only kafka_close may be
 *	  called, which is also done when the process ends.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_KAFKA_H
#define CDC_KAFKA_H

#include "postgres.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* What a topic has to begin with when it is made; the cluster's defaults where it says nothing. */
typedef struct KafkaTopicWish
{
	int			partitions;		/* 0: the cluster's default */
	int			replication;	/* 0: the same */
	const char *cleanup_policy; /* NULL: the same */
	bool		is_small;		/* few keys that are written often: to be compacted soon, as it is read from its beginning */
} KafkaTopicWish;

/* Lives as long as what is opened with it. Properties are DefElem by librdkafka's names, later ones win. */
typedef struct KafkaConfig
{
	const char *server_name;	/* for messages */
	const char *transactional_id;
	int			request_timeout_ms; /* how long the cluster may be away */
	int			transaction_timeout_ms;
	List	   *properties;		/* of the connection */
	List	   *producer_properties;	/* of the one that writes alone */
} KafkaConfig;

typedef struct KafkaTopic
{
	char	   *name;
	int			max_bytes;		/* most that a message of it may have */
	bool		is_compacted;	/* messages need a key, and only the last one of each stays */
	void	   *handle;
} KafkaTopic;

typedef struct KafkaHeader
{
	const char *name;
	const char *value;
	size_t		len;
} KafkaHeader;

/* A message that has the same key, or the same hash where one is given, goes to the same partition. */
typedef struct KafkaMessage
{
	const char *key;			/* NULL: none */
	size_t		key_len;
	const char *value;			/* NULL: a tombstone */
	size_t		value_len;
	bool		has_hash;		/* partition by that, and not by the key */
	uint32		hash;
	int			nheaders;
	const KafkaHeader *headers;
} KafkaMessage;

typedef struct KafkaWriter KafkaWriter;

/* Lives in CurrentMemoryContext. Whatever wrote under the transactional id before is fenced off, and what it left open is settled. */
extern KafkaWriter *kafka_open(const KafkaConfig *config);
extern void kafka_close(KafkaWriter *writer);

/*
 * The value of the last committed message with that key in partition 0 of a topic; false when there is none, or no such topic. What others
 * have open there is waited for.
 */
extern bool kafka_read_last(KafkaWriter *writer, const char *topic, const char *key, StringInfo value);

/* The topic of that name, made when it is not there. Lives as long as the writer. */
extern KafkaTopic *kafka_topic(KafkaWriter *writer, const char *name, const KafkaTopicWish *wish);

/* Bytes of a message as the limit of its topic counts them. */
extern size_t kafka_message_size(const KafkaMessage *message);

/* Copies the message. Waits while the queue to the cluster is full. */
extern void kafka_send(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message);

/* To partition 0. */
extern void kafka_send_first(KafkaWriter *writer, KafkaTopic *topic, const KafkaMessage *message);

/* All that was sent arrives, together; nothing of it counts before. */
extern void kafka_commit(KafkaWriter *writer);

/* What partitions are chosen by, as other clients of Kafka compute it from a key. */
extern uint32 kafka_hash(const char *data, size_t len);

/* in kafka_options.c */

/* Is that a name of one of librdkafka's own properties? Options of ours have other ones. */
extern bool kafka_is_property(const char *name);

/* Check one that is given as an option; of_mapping: of a user mapping, where secrets stand and nothing else. */
extern void kafka_property_check(const char *name, const char *value, bool of_mapping);

/* Is every one of that list of hosts this machine? */
extern bool kafka_is_loopback(const char *bootstrap_servers);

/* Throws when the library was left out of this build. */
extern void kafka_require(void);

#endif							/* CDC_KAFKA_H */
