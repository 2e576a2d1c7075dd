/*-------------------------------------------------------------------------
 *
 * heap_empty.h
 *	  Empty a target.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_EMPTY_H
#define CDC_HEAP_EMPTY_H

#include "postgres.h"

#include "utils/timestamp.h"

#include "heap/heap_row.h"

/*
 * Empty the target of a source table, as the role that its rows are written as; returns the statement, palloc'd. Throws when
 * it cannot be written, its columns do not fit, or it cannot be emptied.
 */
extern char *heap_empty(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options);

/*
 * The same where rows that the source deletes are kept (option transforms, "soft_delete"): all get the mark, with that time,
 * but for those that have it.
 */
extern char *heap_empty_marking(Oid relid, const CdcTableDef *def, const SchemaTypeOptions *options, TimestampTz time);

#endif							/* CDC_HEAP_EMPTY_H */
