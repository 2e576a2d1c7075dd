/*-------------------------------------------------------------------------
 *
 * sink_topic.c
 *	  Names of topics, made of a pattern.
 *
 * NOTES
 *	  Topics have letters, digits, '.', '_' and '-', 249 of them at most. Each other byte
 *	  becomes '_'. So that tables whose names differ in these alone do not meet in one topic, such a name ends with
 *	  a hash of what it was made of; so does one that was cut.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "sink/sink_topic.h"

#define HASH_LEN 9				/* "_1a2b3c4d" */

#define LEGAL "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* FNV-1a: the same in every version and on every machine, as topics live longer than servers. */
static uint32
name_hash(const char *name)
{
	uint32		hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char) *name) * 16777619u;
	return hash;
}

/* What stands at a brace, and its length with both; NULL and 0: no name of ours. */
static const char *
placeholder(const char *at, const SinkTopicNames *names, size_t *len)
{
	const struct
	{
		const char *text;
		const char *value;
	}			all[] = {
		{"{schema}", names->schema}, {"{table}", names->table}, {"{database}", names->database}, {"{server}", names->server}
	};

	for (size_t i = 0; i < lengthof(all); i++)
	{
		*len = strlen(all[i].text);
		if (strncmp(at, all[i].text, *len) == 0)
			return all[i].value;
	}
	*len = 0;
	return NULL;
}

void
sink_topic_check(const char *option, const char *pattern, bool of_table)
{
	const SinkTopicNames names = {.schema = of_table ? "s" : NULL,.table = of_table ? "t" : NULL,.database = "d",.server = "s"};
	size_t		length = 0;

	for (const char *at = pattern; *at != '\0';)
	{
		size_t		len = strspn(at, LEGAL);

		length += len;
		at += len;
		if (*at == '\0')
			break;
		if (placeholder(at, &names, &len) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid value for option \"%s\": \"%s\"", option, pattern),
					 errdetail("A topic's name has letters, digits, \".\", \"_\" and \"-\"."),
					 of_table ? errhint("Names may stand in it: {schema}, {table}, {database}, {server}.") :
					 errhint("Names may stand in it: {database}, {server}.")));
		length++;
		at += len;
	}
	if (length == 0 || length >= SINK_TOPIC_MAX - HASH_LEN || strcmp(pattern, ".") == 0 || strcmp(pattern, "..") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", option, pattern),
				 errhint("Give the name of a topic.")));
}

void
sink_topic_name(const char *pattern, const SinkTopicNames *names, char *topic)
{
	StringInfoData name;
	bool		is_changed = false;

	initStringInfo(&name);
	for (const char *at = pattern; *at != '\0';)
	{
		size_t		len;
		const char *value = *at == '{' ? placeholder(at, names, &len) : NULL;

		if (value == NULL)
			appendStringInfoChar(&name, *at++);
		else
		{
			appendStringInfoString(&name, value);
			at += len;
		}
	}
	snprintf(topic, SINK_TOPIC_MAX, "%s", name.data);
	for (char *p = topic + strspn(topic, LEGAL); *p != '\0'; p += strspn(p, LEGAL))
	{
		*p = '_';
		is_changed = true;
	}
	if (name.len >= SINK_TOPIC_MAX)
	{
		topic[SINK_TOPIC_MAX - 1 - HASH_LEN] = '\0';
		is_changed = true;
	}
	else if (is_changed && name.len + HASH_LEN >= SINK_TOPIC_MAX)
		topic[SINK_TOPIC_MAX - 1 - HASH_LEN] = '\0';
	if (is_changed)
		snprintf(topic + strlen(topic), HASH_LEN + 1, "_%08x", name_hash(name.data));
	pfree(name.data);
}
