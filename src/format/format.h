/*-------------------------------------------------------------------------
 *
 * format.h
 *	  Records -> bytes: the formats there are, and how to write one.
 *
 * NOTES
 *	  A format is one file that fills a CdcFormatOps, and one line of the table
 *	  in format.c. It writes one document for a record, the value, and for a
 *	  change the key apart from it, because Kafka wants them apart.
 *
 *	  Errors are values: CDC_NOMEM and CDC_LIMIT when the buffer could not grow,
 *	  CDC_UNSUPPORTED for a cell that does not come out of PostgreSQL. What stands
 *	  in the buffer then is of no use. Texts are taken as UTF-8 without looking.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FORMAT_FORMAT_H
#define CDC_FORMAT_FORMAT_H

#include "core/buf.h"
#include "core/outgoing.h"

/* What Debezium puts where a value was not touched and is not known. */
#define CDC_FORMAT_UNAVAILABLE "__debezium_unavailable_value"

/* Bytes that the shortest text of a number takes, with its NUL. */
#define CDC_FORMAT_NUMBER_MAX 32

typedef struct CdcFormatOptions
{
	bool		schemas;		/* each document carries its schema (Debezium JSON) */
	bool		transaction;	/* a document for each begin and commit; each change tells its place in its transaction (Debezium JSON) */
	bool		key;			/* records are {"value": ..., "key": ...} */
	bool		numeric_as_number;	/* numeric as a JSON number with all its digits; else as a string */
	bool		bytes_as_hex;	/* bytea as hexadecimal digits; else as base64 */
	bool		types;			/* each change tells its columns' types (plain JSON) */
	bool		json_embedded;	/* json and jsonb as part of the document; else as a string */
	const char *server_name;	/* what the source is called */
	const char *database;		/* name of this database */
	const char *version;		/* of cdc_bridge */
	const char *unavailable;	/* stands where a value was not touched and is not known */

	/* Shortest text that reads back as the number; returns its length. Finite numbers only. */
	int			(*double_text) (double value, char *text);
	int			(*float_text) (float value, char *text);
} CdcFormatOptions;

typedef struct CdcFormat CdcFormat;

typedef struct CdcFormatOps
{
	const char *name;
	const char *description;
	void		(*value) (CdcFormat *format, const CdcRecord *record, CdcBuf *out);
	void		(*key) (CdcFormat *format, const CdcRecord *record, CdcBuf *out);	/* for a CHANGE of a table with a key */
} CdcFormatOps;

/* Parts of documents that are the same for all changes of a table, kept by its version. */
#define CDC_FORMAT_CACHE_SIZE 64

typedef struct CdcFormatCached
{
	uint64_t	version;		/* 0: empty */
	CdcBuf		value_schema;
	CdcBuf		key_schema;
} CdcFormatCached;

struct CdcFormat
{
	const CdcFormatOps *ops;
	CdcFormatOptions options;
	CdcFormatCached cache[CDC_FORMAT_CACHE_SIZE];
};

/* The format of that name, or NULL. */
extern const CdcFormatOps *cdc_format_find(const char *name);

/* The n-th format, or NULL behind the last. */
extern const CdcFormatOps *cdc_format_nth(int n);

/* Options are copied, not the texts they point to. What the cache takes comes from the allocator. */
extern void cdc_format_init(CdcFormat *format, const CdcFormatOps *ops, const CdcFormatOptions *options,
							const CdcAllocator *allocator);
extern void cdc_format_free(CdcFormat *format);

/* Append what the options want of a record. CDC_END, with nothing appended, when they do not want it. */
extern CdcStatus cdc_format_record(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err);

/* Append the document of a record. */
extern CdcStatus cdc_format_value(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err);

/* Append the key of a change: of the new row, or of a deleted one. CDC_END, with nothing appended, when it has none. */
extern CdcStatus cdc_format_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err);

/*
 * Append the bytes by which a sink with partitions chooses one for a change: the key, or as plain JSON the columns that option transforms name.
 * CDC_END, with nothing appended, when nothing says it, and any partition will do.
 */
extern CdcStatus cdc_format_partition_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err);

/* in format_value.c, for the formats that are JSON */

/* The rows whose cells make the key, NULL when none has all of them. */
extern const CdcCell *format_key_row(const CdcRecord *record);

/* One value. UNCHANGED becomes options.unavailable in a form that fits the column; ABSENT must not come. */
extern void format_add_cell(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out);

/* {"column": value, ...}; cells that are ABSENT are left out, and those UNCHANGED unless a placeholder is wanted for them. */
extern void format_add_row(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, bool placeholders, CdcBuf *out);

/* The same for the key's columns, in the key's order. */
extern void format_add_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out);

/* And for those of the partition key. */
extern void format_add_partition_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out);

/* "0/16B3748" */
extern void format_add_lsn(CdcBuf *out, uint64_t lsn);

/* in format_table.c: what a SCHEMA record says behind its head, as members of the document */

/* For plain JSON; begins with a comma. */
extern void format_add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* For Debezium JSON: databaseName, schemaName, ddl, tableChanges. */
extern void format_add_table_changes(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* in format_schema.c */

/* Kafka Connect's schemas of a change's value and key, as its JsonConverter writes them. */
extern const CdcBuf *format_value_schema(CdcFormat *format, const CdcOutTable *table);
extern const CdcBuf *format_key_schema(CdcFormat *format, const CdcOutTable *table);

/* in the file of each format */
extern const CdcFormatOps cdc_format_debezium_json;
extern const CdcFormatOps cdc_format_plain_json;

#endif							/* CDC_FORMAT_FORMAT_H */
