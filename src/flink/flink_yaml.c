/*-------------------------------------------------------------------------
 *
 * flink_yaml.c
 *	  YAML text -> tree.
 *
 * NOTES
 *	  The text may be anybody's. So it is bounded before and while it is read:
 *	  its size, the number of nodes, the depth; aliases, by which a few lines stand
 *	  for gigabytes, and tags are refused, and so is a key that comes twice, of which
 *	  readers disagree which counts.
 *
 *	  libyaml allocates by malloc; what it holds is freed on every way out.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "flink/flink.h"

#ifndef CDC_WITHOUT_YAML

#include <yaml.h>

#define TEXT_MAX (1024 * 1024)
#define NODES_MAX 50000
#define DEPTH_MAX 16

typedef struct Reader
{
	yaml_parser_t parser;
	yaml_event_t event;			/* the newest one; what it holds goes with the next one */
	bool		has_event;
	int			nodes;
} Reader;

static _Noreturn void
throw_yaml(const char *why, int line)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("could not read the YAML text"),
			 errdetail("Line %d: %s.", line, why)));
}

static void
drop_event(Reader *reader)
{
	if (reader->has_event)
		yaml_event_delete(&reader->event);
	reader->has_event = false;
}

static yaml_event_type_t
next_event(Reader *reader)
{
	CHECK_FOR_INTERRUPTS();
	drop_event(reader);
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		throw_yaml(reader->parser.problem != NULL ? reader->parser.problem : "it is not valid",
				   (int) reader->parser.problem_mark.line + 1);
	reader->has_event = true;
	return reader->event.type;
}

/* A node for the newest event. */
static FlinkNode *
make_node(Reader *reader, FlinkNodeKind kind, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	FlinkNode  *node = palloc0(sizeof(FlinkNode));

	node->kind = kind;
	node->line = (int) reader->event.start_mark.line + 1;
	if (++reader->nodes > NODES_MAX)
		throw_yaml(psprintf("it has more than %d values", NODES_MAX), node->line);
	if (anchor != NULL)
		throw_yaml("anchors and aliases are not read", node->line);
	if (tag != NULL)
		throw_yaml("tags are not read", node->line);
	return node;
}

static FlinkNode *
make_scalar(Reader *reader)
{
	const yaml_event_t *event = &reader->event;
	FlinkNode  *node = make_node(reader, FLINK_SCALAR, event->data.scalar.anchor, event->data.scalar.tag);
	const char *value = (const char *) event->data.scalar.value;
	size_t		len = event->data.scalar.length;

	if (memchr(value, '\0', len) != NULL)
		throw_yaml("a value has a NUL character", node->line);
	node->text = pnstrdup(value, len);
	node->is_null = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		(len == 0 || strcmp(node->text, "~") == 0 || pg_strcasecmp(node->text, "null") == 0);
	return node;
}

static FlinkNode *read_node(Reader *reader, int depth);

static FlinkNode *
read_list(Reader *reader, int depth)
{
	FlinkNode  *node = make_node(reader, FLINK_LIST, reader->event.data.sequence_start.anchor, reader->event.data.sequence_start.tag);

	while (next_event(reader) != YAML_SEQUENCE_END_EVENT)
		node->items = lappend(node->items, read_node(reader, depth + 1));
	return node;
}

static FlinkNode *
read_map(Reader *reader, int depth)
{
	FlinkNode  *node = make_node(reader, FLINK_MAP, reader->event.data.mapping_start.anchor, reader->event.data.mapping_start.tag);

	while (next_event(reader) != YAML_MAPPING_END_EVENT)
	{
		FlinkNode  *key = read_node(reader, depth + 1);

		if (key->kind != FLINK_SCALAR)
			throw_yaml("a key is not a plain value", key->line);
		if (flink_member(node, key->text) != NULL)
			throw_yaml(psprintf("key \"%s\" comes twice", key->text), key->line);
		(void) next_event(reader);
		node->items = lappend(node->items, read_node(reader, depth + 1));
		node->keys = lappend(node->keys, key->text);
	}
	return node;
}

/* The value that the newest event begins. */
static FlinkNode *
read_node(Reader *reader, int depth)
{
	int			line = (int) reader->event.start_mark.line + 1;

	if (depth > DEPTH_MAX)
		throw_yaml(psprintf("it is deeper than %d levels", DEPTH_MAX), line);
	switch (reader->event.type)
	{
		case YAML_SCALAR_EVENT:
			return make_scalar(reader);
		case YAML_SEQUENCE_START_EVENT:
			return read_list(reader, depth);
		case YAML_MAPPING_START_EVENT:
			return read_map(reader, depth);
		case YAML_ALIAS_EVENT:
			throw_yaml("anchors and aliases are not read", line);
		default:
			throw_yaml("a value is missing", line);
	}
}

static FlinkNode *
read_document(Reader *reader)
{
	FlinkNode  *root;

	(void) next_event(reader);	/* the stream begins */
	if (next_event(reader) != YAML_DOCUMENT_START_EVENT)
		throw_yaml("it is empty", 1);
	(void) next_event(reader);
	root = read_node(reader, 1);
	if (root->kind != FLINK_MAP)
		throw_yaml("it is not a mapping of sections", root->line);
	(void) next_event(reader);	/* the document ends */
	if (next_event(reader) != YAML_STREAM_END_EVENT)
		throw_yaml("it has more than one document", root->line);
	return root;
}

FlinkNode *
flink_read_yaml(const char *text)
{
	size_t		len = strlen(text);
	Reader	   *reader = palloc0(sizeof(Reader));
	FlinkNode  *volatile root = NULL;

	if (len > TEXT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the YAML text is too large"),
				 errdetail("It has %zu bytes; at most %d are read.", len, TEXT_MAX)));
	if (!yaml_parser_initialize(&reader->parser))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	PG_TRY();
	{
		/* libyaml counts a byte order mark as a column of the first line, so that other lines would stand left of it */
		size_t		mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

		yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
		yaml_parser_set_input_string(&reader->parser, (const unsigned char *) text + mark, len - mark);
		root = read_document(reader);
	}
	PG_FINALLY();
	{
		drop_event(reader);
		yaml_parser_delete(&reader->parser);
	}
	PG_END_TRY();
	return root;
}

#else							/* CDC_WITHOUT_YAML */

FlinkNode *
flink_read_yaml(const char *text)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cdc_bridge was built without libyaml"),
			 errhint("Build it without YAML=no.")));
	return NULL;
}

#endif							/* CDC_WITHOUT_YAML */

const FlinkNode *
flink_member(const FlinkNode *map, const char *key)
{
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, map->keys, lc2, map->items)
	{
		if (strcmp(lfirst(lc), key) == 0)
			return lfirst(lc2);
	}
	return NULL;
}
