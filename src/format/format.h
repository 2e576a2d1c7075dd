/*-------------------------------------------------------------------------
 *
 * format.h
 *	  Records -> bytes: the formats there are, and how to write one.
 *
 * NOTES
 *	  A format is one file that fills a CdcFormatOps, and one line of the table
 *	  in format.c. It writes one document for a record, the value, and the key
 *	  apart from it, because Kafka wants them apart. There are formats that have
 *	  two documents for some records, each with a key of its own: those are parts
 *	  0 and 1.
 *
 *	  Nothing is left out for that a format does not know it: a mark, a message, a
 *	  TRUNCATE or a schema change that it has no words for is written as in plain
 *	  JSON, which its readers refuse rather than miss.
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

/* What unwrapped Debezium JSON makes of a deleted row. */
typedef enum CdcFormatDeletes
{
	CDC_FORMAT_DELETES_REWRITE,	/* the old row, marked as deleted, as all others are marked as not deleted */
	CDC_FORMAT_DELETES_TOMBSTONE,	/* null */
	CDC_FORMAT_DELETES_DROP		/* nothing */
} CdcFormatDeletes;

typedef struct CdcFormatOptions
{
	bool		schemas;		/* each document carries its schema (Debezium JSON) */
	bool		transaction;	/* a document for each begin and commit; each change tells its place in its transaction (Debezium JSON) */
	bool		key;			/* records are {"value": ..., "key": ...} */
	bool		numeric_as_number;	/* numeric as a JSON number with all its digits; else as a string */
	bool		bytes_as_hex;	/* bytea as hexadecimal digits */
	bool		bytes_as_latin1;	/* ... as a string with a character for each byte; else as base64 */
	bool		types;			/* each change tells its columns' types (plain JSON) */
	bool		json_embedded;	/* json and jsonb as part of the document; else as a string */
	bool		logical_types;	/* Avro: dates, times, uuid and numeric(p, s) typed, which refuses infinity and NaN; else as strings */
	const char *server_name;	/* what the source is called */
	const char *database;		/* name of this database */
	const char *version;		/* of cdc_bridge */
	const char *unavailable;	/* stands where a value was not touched and is not known */
	CdcFormatDeletes unwrap_deletes;	/* unwrapped Debezium JSON */
	const char *unwrap_fields;	/* unwrapped Debezium JSON: members of the envelope that a row gets too, separated by commas; NULL: none */

	/* Shortest text that reads back as the number; returns its length. Finite numbers only. */
	int			(*double_text) (double value, char *text);
	int			(*float_text) (float value, char *text);
} CdcFormatOptions;

typedef struct CdcFormat CdcFormat;

typedef struct CdcFormatOps
{
	const char *name;
	const char *description;

	/* What its values look like unless options say otherwise. */
	bool		numeric_as_number;
	bool		json_embedded;
	bool		bytes_as_latin1;

	/* What its values look like in any case. */
	bool		all_text;		/* each is a string */
	bool		sql_times;		/* a blank between date and time */
	bool		arrays_as_text; /* as PostgreSQL writes them; for who makes the cells */
	bool		is_binary;		/* documents are bytes, and have schemas with numbers; lines of text have them in base64 */

	/* How many documents a record has; NULL: always one. */
	int			(*parts) (const CdcFormat *format, const CdcRecord *record);
	void		(*value) (CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out);

	/* The row of a change that the part's key is of; NULL, the function: format_key_row. NULL, the row: it has none. */
	const CdcCell *(*key_row) (const CdcRecord *record, int part);

	/* False, and nothing is written, when it has no key. */
	bool		(*key) (CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out);
} CdcFormatOps;

/* Parts of documents that are the same for all changes of a table, kept by its version. */
#define CDC_FORMAT_CACHE_SIZE 64

typedef struct CdcFormatCached
{
	uint64_t	version;		/* 0: empty */
	CdcBuf		value_schema;
	CdcBuf		key_schema;
	bool		value_id_known; /* numbers of the schemas, where they have some */
	bool		key_id_known;
	uint32_t	value_id;
	uint32_t	key_id;
} CdcFormatCached;

/* A schema whose number is not known yet. */
typedef struct CdcFormatSchema
{
	bool		is_key;
	const char *text;			/* JSON; NUL-terminated, good until the format writes the next record */
	size_t		len;
} CdcFormatSchema;

struct CdcFormat
{
	const CdcFormatOps *ops;
	CdcFormatOptions options;
	CdcBuf		scratch;		/* a value before it is quoted */
	CdcBuf		head;			/* what all documents have at the same place; empty until it is wanted */
	CdcFormatCached cache[CDC_FORMAT_CACHE_SIZE];
	CdcFormatCached documents[3];	/* the same of messages, schema changes and marks */
};

/* The format of that name, or NULL. */
extern const CdcFormatOps *cdc_format_find(const char *name);

/* The n-th format, or NULL behind the last. */
extern const CdcFormatOps *cdc_format_nth(int n);

/* Options are copied, not the texts they point to. What the cache takes comes from the allocator. */
extern void cdc_format_init(CdcFormat *format, const CdcFormatOps *ops, const CdcFormatOptions *options,
							const CdcAllocator *allocator);
extern void cdc_format_free(CdcFormat *format);

/* Append what the options want of a record, a line for each of its documents. CDC_END, with nothing appended, when they do not want it. */
extern CdcStatus cdc_format_record(CdcFormat *format, const CdcRecord *record, CdcBuf *out, CdcError *err);

/* How many documents a record has; 0: the options do not want it. */
extern int	cdc_format_parts(const CdcFormat *format, const CdcRecord *record);

/* Append a document of a record. */
extern CdcStatus cdc_format_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err);

/* Append its key; of a change: that of the new row, or of a deleted one. CDC_END, with nothing appended, when it has none. */
extern CdcStatus cdc_format_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err);

/* Does the document say nothing but that what has its key is gone, which for Kafka is a message without a value? */
extern bool cdc_format_is_tombstone(const CdcFormat *format, const CdcRecord *record, int part);

/*
 * Of a format that is binary: a schema of the record's value or key whose number was not told yet; CDC_END when there is none. Who writes the
 * record asks a registry, tells the number, and asks again.
 */
extern CdcStatus cdc_format_missing_schema(CdcFormat *format, const CdcRecord *record, CdcFormatSchema *schema);
extern void cdc_format_schema_id(CdcFormat *format, const CdcRecord *record, const CdcFormatSchema *schema, uint32_t id);

/* The first name in a list of unwrap_fields that is none; NULL when all are. */
extern const char *cdc_format_unknown_field(const char *fields, size_t *len);

/*
 * Append the bytes by which a sink with partitions chooses one for a change: the key, or as plain JSON the columns that option transforms name.
 * CDC_END, with nothing appended, when nothing says it, and any partition will do.
 */
extern CdcStatus cdc_format_partition_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out, CdcError *err);

/* in format_value.c, for the formats that are JSON */

/* Does the row have all of the key? */
extern bool format_has_key(const CdcOutTable *table, const CdcCell *row);

/* The row of a change whose cells make the key, NULL when none has all of them, or the record is none of a change. */
extern const CdcCell *format_key_row(const CdcRecord *record);

/* The key of a change as an object of the key's columns; false when it has none. */
extern bool format_add_change_key(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* Do they say the same? What is not known is not the same as anything. */
extern bool format_same_cell(const CdcCell *a, const CdcCell *b);

/* One value. UNCHANGED becomes options.unavailable in a form that fits the column; ABSENT must not come. */
extern void format_add_cell(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out);

/* The same as a string, whatever it is. */
extern void format_add_cell_text(CdcFormat *format, const CdcOutColumn *column, const CdcCell *cell, CdcBuf *out);

/* {"column": value, ...} of the columns in which the old row is known and not the same. */
extern void format_add_difference(CdcFormat *format, const CdcOutTable *table, const CdcCell *before, const CdcCell *after, CdcBuf *out);

/* {"column": value, ...}; cells that are ABSENT are left out, and those UNCHANGED unless a placeholder is wanted for them. */
extern void format_add_row(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, bool placeholders, CdcBuf *out);

/* The same for the key's columns, in the key's order. */
extern void format_add_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out);

/* And for those of the partition key. */
extern void format_add_partition_key(CdcFormat *format, const CdcOutTable *table, const CdcCell *row, CdcBuf *out);

/* "0/16B3748" */
extern void format_add_lsn(CdcBuf *out, uint64_t lsn);

/* in format_place.c */

/* ,"_cdc_bridge":{...}: where a record stands, and what it lacks, for formats that have no members for that; row may be NULL. With names: of which table. */
extern void format_add_place(CdcFormat *format, const CdcRecord *record, const CdcCell *row, bool names, CdcBuf *out);

/* ,"unchanged":["column", ...]: those of a row whose values are not known; nothing when there are none. */
extern void format_add_unchanged(const CdcOutTable *table, const CdcCell *row, CdcBuf *out);

/* When it was committed, and where that is not known, decoded. */
extern int64_t format_time(const CdcRecord *record);

/* in format_table.c: what a SCHEMA record says behind its head, as members of the document */

/* For plain JSON; begins with a comma. */
extern void format_add_schema_change(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* For Debezium JSON: databaseName, schemaName, ddl, tableChanges. */
extern void format_add_table_changes(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* The number that java.sql.Types has for a column. */
extern int	format_jdbc_type(const CdcOutColumn *column);

/* ["column", ...] of the key */
extern void format_add_key_names(const CdcOutTable *table, CdcBuf *out);

/* in format_source.c: members of Debezium's source block */

extern int	format_source_count(void);
extern const char *format_source_name(int member);

/* Is it in the block of that record? */
extern bool format_source_is_there(const CdcRecord *record, int member);
extern void format_add_source_value(CdcFormat *format, const CdcRecord *record, int member, CdcBuf *out);

/* "[\"740\",\"739\"]" without the quotes and backslashes: where the transaction's commit begins, then the change itself. */
extern void format_add_sequence(const CdcRecord *record, CdcBuf *out);

/* "source":{...} */
extern void format_add_source(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/* Kafka Connect's schema of a member, under another name too, and of the block, as field "source". */
extern void format_add_source_member_schema(int member, bool optional, const char *field, CdcBuf *out);
extern void format_add_source_schema(CdcBuf *out);

/* in format_schema.c */

/* Kafka Connect's schemas of what is no change of a row: a message, a schema change, a mark. */
extern void format_add_document_schema(CdcRecordKind kind, CdcBuf *out);
extern void format_add_document_key_schema(CdcRecordKind kind, CdcBuf *out);

/* {"type": ..., "optional": ..., "field": ...} */
extern void format_add_field_schema(const char *type, bool optional, const char *field, CdcBuf *out);

/* Kafka Connect's schemas of a change's value and key, as its JsonConverter writes them. */
extern const CdcBuf *format_value_schema(CdcFormat *format, const CdcOutTable *table);
extern const CdcBuf *format_key_schema(CdcFormat *format, const CdcOutTable *table);

/* in format_debezium.c */

/* "740:27440072": what Debezium calls a transaction. */
extern void format_add_txn_id(const CdcOutTxn *txn, CdcBuf *out);

/* "c", "u", ...: what Debezium calls what was done. */
extern const char *format_op_letter(const CdcRecord *record);

/* "BEGIN", "END", ...: what Debezium, or we, call a mark. */
extern const char *format_status_text(CdcRecordKind kind);

/* The whole of a record in Debezium's form, and its key. */
extern void format_debezium_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out);
extern bool format_debezium_key(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out);

/* in format_unwrap.c: Kafka Connect's schemas of what is added to a row, with a comma before the first when there is something before it */
extern void format_add_unwrap_schema(const CdcFormat *format, bool comma, CdcBuf *out);

/* in format_plain.c: what other formats have no words for */
extern void format_plain_value(CdcFormat *format, const CdcRecord *record, int part, CdcBuf *out);

/* in the file of each format */
extern const CdcFormatOps cdc_format_canal_json;
extern const CdcFormatOps cdc_format_changelog_json;
extern const CdcFormatOps cdc_format_debezium_avro;
extern const CdcFormatOps cdc_format_debezium_json;
extern const CdcFormatOps cdc_format_debezium_unwrapped_json;
extern const CdcFormatOps cdc_format_maxwell_json;
extern const CdcFormatOps cdc_format_plain_json;

#endif							/* CDC_FORMAT_FORMAT_H */
