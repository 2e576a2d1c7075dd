/*-------------------------------------------------------------------------
 *
 * schema_message.h
 *	  What the event triggers leave in the log about a statement that changed
 *	  tables: a logical message, written in api/ and read in decode/.
 *
 * NOTES
 *	  The message tells what the catalogs cannot tell any more when it is decoded:
 *	  which tables a statement meant, their names before it, what was dropped. How
 *	  a table looks after the statement is read from the catalogs as they were
 *	  then. The statement's text is not in it: it may hold values and secrets, or
 *	  be one of several in a string.
 *
 *	  Whoever may run pg_logical_emit_message() can write messages with this
 *	  prefix. So a reader trusts none of it: it asks the catalogs whether a table
 *	  of that number is there, and whether one of the old name is not.
 *
 *	  Form: fields "<length>:<bytes>,", first the version, then ten for each
 *	  item in the order of CdcSchemaItem. An empty field is one that is not there.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_SCHEMA_MESSAGE_H
#define CDC_CORE_SCHEMA_MESSAGE_H

#include "core/buf.h"
#include "core/cursor.h"

#define CDC_SCHEMA_MESSAGE_PREFIX "cdc_bridge.schema_change"

typedef enum CdcSchemaItemKind
{
	CDC_SCHEMA_TABLE = 't',		/* a table that is there after the statement */
	CDC_SCHEMA_GONE = 'd',		/* one that is not, or is not logged any more */
	CDC_SCHEMA_UNPUBLISHED = 'p'	/* publication new_name had the table of that name, or the schema (no name), which is gone */
} CdcSchemaItemKind;

typedef struct CdcSchemaItem
{
	CdcSchemaItemKind kind;
	uint32_t	relid;			/* 0: not known */
	const char *command;		/* command tag: "ALTER TABLE" */
	const char *schema;
	const char *name;
	const char *old_schema;		/* TABLE: before it was renamed or moved; else NULL */
	const char *old_name;
	const char *old_column;		/* TABLE: a column that was renamed; else NULL */
	const char *new_name;		/* TABLE: that column's new name; UNPUBLISHED: the publication */
	bool		rewritten;		/* TABLE: all rows were written anew, maybe with other values */
	bool		is_partitioned; /* GONE: it had partitions */
	bool		is_partition;	/* GONE: it was one */
	uint32_t	kinds;			/* bits of what the statement did, in an order of the writer's; 0: nothing that has a name */
} CdcSchemaItem;

/* So many bits of kinds are told. */
#define CDC_SCHEMA_KINDS_MAX 26

extern void cdc_schema_message_begin(CdcBuf *message);
extern void cdc_schema_message_add(CdcBuf *message, const CdcSchemaItem *item);

/* Check the version, and get to the first item. */
extern CdcStatus cdc_schema_message_open(CdcCursor *message, const void *data, size_t len);

/* The next item, its texts in the arena; CDC_END behind the last. Names are shorter than 64 bytes, in UTF-8 without NULs. */
extern CdcStatus cdc_schema_message_next(CdcCursor *message, CdcArena *arena, CdcSchemaItem *item);

#endif							/* CDC_CORE_SCHEMA_MESSAGE_H */
