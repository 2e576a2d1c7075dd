/*-------------------------------------------------------------------------
 *
 * sink_topic.h
 *	  Names of topics, made of a pattern.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SINK_TOPIC_H
#define CDC_SINK_TOPIC_H

#include "postgres.h"

/* Longest name of a topic, with its NUL. */
#define SINK_TOPIC_MAX 250

/* What stands for {schema}, {table}, {database} and {server}; NULL: it has none of these. */
typedef struct SinkTopicNames
{
	const char *schema;
	const char *table;
	const char *database;
	const char *server;
} SinkTopicNames;

/* Throws for a pattern that names something else; of_table: {schema} and {table} may be there. */
extern void sink_topic_check(const char *option, const char *pattern, bool of_table);

/* The name that a checked pattern comes to. Two lists of names never come to one name because of characters that topics do not have. */
extern void sink_topic_name(const char *pattern, const SinkTopicNames *names, char *topic);

#endif							/* CDC_SINK_TOPIC_H */
