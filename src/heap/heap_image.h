/*-------------------------------------------------------------------------
 *
 * heap_image.h
 *	  Row images as jsonb, as dead letters keep them: written, and read back.
 *
 * NOTES
 *	  Source column name -> value. A value stands as text in the form that
 *	  docs/types.md calls the text form; null is null; a column that the image
 *	  leaves out is left out. What has no text stands as an object:
 *
 *	  {"hex": "..."}	bytes of binary strings, geometries, vectors, of text with
 *						NULs or with bytes that are no characters (U+FFFD for these)
 *	  {"json_diff": "[...]", "hex": "..."}
 *						a document that the log gives as differences: their JSON, to
 *						be read, and the bytes of the log
 *	  {"raw": "..."}	bytes of the log that could not be decoded
 *	  {"cut": "...", "bytes": n}
 *						the beginning of what is too long for jsonb
 *
 *	  {"dropped": value}
 *						of a column that the source has dropped since
 *	  {"kept": value}	likewise, where the target still has it (schema_changes "lenient")
 *
 *	  "raw", "cut" and "kept" cannot be turned back. All others give the same cells as the
 *	  binary log and a SELECT do, so that a replayed value goes the way of all.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_IMAGE_H
#define CDC_HEAP_IMAGE_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "utils/jsonb.h"

#include "core/event.h"

typedef struct HeapImage
{
	JsonbParseState *state;
} HeapImage;

extern void heap_image_begin(HeapImage *image);
extern void heap_image_cell(HeapImage *image, const CdcColumnDef *column, const CdcCell *cell);
extern void heap_image_diff(HeapImage *image, const CdcColumnDef *column, const CdcField *field);
extern void heap_image_raw(HeapImage *image, const CdcColumnDef *column, const void *data, Size len);
extern Datum heap_image_end(HeapImage *image);

/*
 * The image as fields of a definition's columns (ncolumns, palloc'd), to be read by heap_image_to_cell. Throws, with an error
 * that is the table's own, for what cannot be turned back and for a column that the definition does not have. without: columns
 * that count as left out (List of char *).
 */
extern CdcField *heap_image_fields(Datum image, const CdcTableDef *def, const List *without);

/* One column of an image; false: it is not there, counts as left out, or cannot be turned back. */
extern bool heap_image_field(Datum image, const CdcColumnDef *column, const List *without, CdcField *field);

/* The image with nulls in these columns. */
extern Datum heap_image_with_nulls(Datum image, const CdcTableDef *def, uint32 ncolumns, const int *columns);

/*
 * What becomes of an image when its table's columns change: origin has for each column of "after" its index in "before", -1: it
 * is new. keeps: per column of "before", does the target keep what the source dropped? fills: new columns get their defaults.
 */
extern Datum heap_image_reshape(Datum source, const CdcTableDef *before, const CdcTableDef *after, const int *origin,
								const bool *keeps, bool fills, CdcArena *arena);
extern CdcStatus heap_image_to_cell(const CdcColumnDef *column, const CdcField *field, CdcArena *arena, CdcCell *cell, CdcError *err);

/* SHA-256 over the cells of a key: the same for equal keys of one table, from whichever image. */
typedef struct HeapImageKey HeapImageKey;
extern HeapImageKey *heap_image_key_begin(void);
extern void heap_image_key_add(HeapImageKey *key, const CdcColumnDef *column, const CdcCell *cell);
extern void heap_image_key_add_bytes(HeapImageKey *key, const void *data, Size len);
extern bytea *heap_image_key_end(HeapImageKey *key);

#endif							/* CDC_HEAP_IMAGE_H */
