/*-------------------------------------------------------------------------
 *
 * schema_sum.c
 *	  The number of a row here: see sum.h, and mysql/mysql_sum.h for the text that
 *	  it is made of.
 *
 * NOTES
 *	  A value is printed as the source prints the one that it came from. What the
 *	  source's type cannot hold (a microsecond where it has no fraction, infinity) is
 *	  printed as an X, which is no value there. That two sums differ is never the last
 *	  word, so nothing is lost by that but time; two different rows must not have
 *	  one text.
 *
 *	  Values that a policy replaced print differently from what the source has:
 *	  their rows are looked at one by one.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#include "compat/pg_compat.h"
#include "mysql/mysql_sum.h"
#include "schema/sum.h"

typedef enum SumPrinter
{
	SUM_NONE,
	/* head */
	SUM_INT2,
	SUM_INT4,
	SUM_INT8,
	SUM_BOOL,
	SUM_NUMERIC,
	SUM_BITS,
	SUM_DATE,
	SUM_TIMESTAMP,				/* of a DATETIME or TIMESTAMP */
	SUM_MIDNIGHT,				/* timestamp of a DATE */
	SUM_INTERVAL,
	SUM_TIME,
	SUM_UUID,
	/* bodies */
	SUM_BYTES,					/* text, varchar, bytea: as they are stored */
	SUM_PADDED,					/* char(n): without its blanks */
	SUM_ENUM,
	SUM_UUID_BYTES				/* uuid of a binary string */
} SumPrinter;

typedef struct SumPart
{
	const char *data;
	Size		len;
} SumPart;

struct SchemaSum
{
	const SchemaTable *table;
	SumPrinter *printers;		/* by source column */
	pg_cryptohash_ctx *hash;
	StringInfoData head;
	SumPart    *parts;			/* bodies of a row */
	int			nparts;
};

/* ------------------------------------------------------------------- what prints alike */

/* numeric prints as many digits behind the point as it was stored with: those of the source's type. */
static bool
has_scale(const SchemaColumn *column)
{
	int			scale = column->def->type == CDC_TYPE_DECIMAL ? column->def->scale : 0;

	if (column->typmod < (int32) VARHDRSZ)
		return true;
	return (((column->typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024 == scale;
}

static SumPrinter
number_printer(const SchemaColumn *column)
{
	switch (column->typid)
	{
		case INT2OID:
			return SUM_INT2;
		case INT4OID:
			return SUM_INT4;
		case INT8OID:
			return SUM_INT8;
		case BOOLOID:
			return SUM_BOOL;
		case NUMERICOID:
			return has_scale(column) ? SUM_NUMERIC : SUM_NONE;
		default:
			return SUM_NONE;
	}
}

static SumPrinter
text_printer(const SchemaColumn *column)
{
	/* its bytes here are not UTF-8 */
	if (OidIsValid(column->encoding))
		return SUM_NONE;
	switch (column->typid)
	{
		case TEXTOID:
		case VARCHAROID:
			return SUM_BYTES;
		case BPCHAROID:
			return SUM_PADDED;
		default:
			return get_typtype(column->typid) == TYPTYPE_ENUM ? SUM_ENUM : SUM_NONE;
	}
}

static SumPrinter
choose_printer(const SchemaColumn *column)
{
	const Oid	typid = column->typid;

	if (column->attnum <= 0 || mysql_sum_form(column->def) == MYSQL_SUM_NONE)
		return SUM_NONE;
	switch (column->def->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
		case CDC_TYPE_DECIMAL:
			return number_printer(column);
		case CDC_TYPE_BIT:
			return typid == BITOID || typid == VARBITOID ? SUM_BITS : number_printer(column);
		case CDC_TYPE_DATE:
			return typid == DATEOID ? SUM_DATE : typid == TIMESTAMPOID ? SUM_MIDNIGHT : SUM_NONE;
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			return typid == TIMESTAMPOID || typid == TIMESTAMPTZOID ? SUM_TIMESTAMP : SUM_NONE;
		case CDC_TYPE_TIME:
			return typid == INTERVALOID ? SUM_INTERVAL : typid == TIMEOID ? SUM_TIME : SUM_NONE;
		case CDC_TYPE_UUID:
			return typid == UUIDOID ? SUM_UUID : SUM_NONE;
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
			return typid == BYTEAOID ? SUM_BYTES : typid == UUIDOID ? SUM_UUID_BYTES : SUM_NONE;
		default:
			return text_printer(column);
	}
}

SchemaSum *
schema_sum_begin(const SchemaTable *table)
{
	SchemaSum  *sum = palloc0(sizeof(SchemaSum));

	sum->table = table;
	sum->printers = palloc(sizeof(SumPrinter) * Max(table->ncolumns, 1));
	sum->parts = palloc(sizeof(SumPart) * Max(table->ncolumns, 1));
	for (int i = 0; i < table->ncolumns; i++)
		sum->printers[i] = choose_printer(&table->columns[i]);
	initStringInfo(&sum->head);
	sum->hash = pg_cryptohash_create(PG_SHA256);
	if (sum->hash == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	return sum;
}

void
schema_sum_end(SchemaSum *sum)
{
	pg_cryptohash_free(sum->hash);
	sum->hash = NULL;
}

bool
schema_sum_has(const SchemaSum *sum, int column)
{
	return sum->printers[column] != SUM_NONE;
}

bool
schema_sum_is_ordered(const SchemaSum *sum, int column)
{
	switch (sum->printers[column])
	{
		case SUM_INT2:
		case SUM_INT4:
		case SUM_INT8:
		case SUM_BOOL:
		case SUM_NUMERIC:
		case SUM_BITS:
		case SUM_DATE:
		case SUM_TIMESTAMP:
		case SUM_MIDNIGHT:
		case SUM_INTERVAL:
		case SUM_TIME:
		case SUM_UUID_BYTES:
			return true;
		case SUM_BYTES:
			/* byte by byte on both sides; a text's collation is another matter */
			return sum->table->columns[column].typid == BYTEAOID;
		default:
			/* MariaDB orders a UUID by its last bytes first */
			return false;
	}
}

/* ------------------------------------------------------------------------- printing */

static void
append_unprintable(StringInfo head)
{
	appendStringInfoChar(head, 'X');
}

static void
append_int64(StringInfo head, int64 value)
{
	char		text[MAXINT8LEN + 1];

	appendBinaryStringInfo(head, text, pg_lltoa(value, text));
}

/* n digits of a number that has no more. */
static void
append_digits(StringInfo head, uint32 value, int n)
{
	char		text[10];

	for (int i = n - 1; i >= 0; i--, value /= 10)
		text[i] = (char) ('0' + value % 10);
	appendBinaryStringInfo(head, text, n);
}

/* HH:MM:SS with so many digits of a fraction; false when there are more digits than those. */
static bool
append_clock(StringInfo head, uint64 us, int scale)
{
	uint32		micro = us % USECS_PER_SEC;
	uint64		seconds = us / USECS_PER_SEC;
	uint32		hours = (uint32) (seconds / 3600);
	uint32		unit = 1;

	append_digits(head, hours, hours > 99 ? 3 : 2);
	appendStringInfoChar(head, ':');
	append_digits(head, seconds / 60 % 60, 2);
	appendStringInfoChar(head, ':');
	append_digits(head, seconds % 60, 2);
	for (int i = scale; i < 6; i++)
		unit *= 10;
	if (micro % unit != 0)
		return false;
	if (scale > 0)
	{
		appendStringInfoChar(head, '.');
		append_digits(head, micro / unit, scale);
	}
	return true;
}

/* YYYY-MM-DD of days since 2000-01-01; false when the source has no such date. */
static bool
append_date(StringInfo head, int64 days)
{
	int			year;
	int			month;
	int			day;

	if (days < date2j(0, 1, 1) - POSTGRES_EPOCH_JDATE || days > date2j(9999, 12, 31) - POSTGRES_EPOCH_JDATE)
		return false;
	j2date((int) days + POSTGRES_EPOCH_JDATE, &year, &month, &day);
	append_digits(head, year, 4);
	appendStringInfoChar(head, '-');
	append_digits(head, month, 2);
	appendStringInfoChar(head, '-');
	append_digits(head, day, 2);
	return true;
}

static bool
append_timestamp(StringInfo head, Timestamp value, int scale, bool is_date)
{
	int64		days;
	int64		rest;

	if (TIMESTAMP_NOT_FINITE(value))
		return false;
	days = value / USECS_PER_DAY;
	rest = value % USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	if (!append_date(head, days))
		return false;
	if (is_date)
		return rest == 0;
	appendStringInfoChar(head, ' ');
	return append_clock(head, (uint64) rest, scale);
}

/* A span of the source has at most 838 hours. */
static bool
append_interval(StringInfo head, const Interval *span, int scale)
{
	uint64		us = span->time < 0 ? -(uint64) span->time : (uint64) span->time;

	if (span->month != 0 || span->day != 0 || us >= (uint64) 839 * USECS_PER_HOUR)
		return false;
	if (span->time < 0)
		appendStringInfoChar(head, '-');
	return append_clock(head, us, scale);
}

static bool
append_bits(StringInfo head, VarBit *bits, uint32 length)
{
	uint64		value = 0;
	char		text[24];

	if (VARBITLEN(bits) != (int) length || length > 64)
		return false;
	for (uint32 i = 0; i < length; i++)
		value = value << 1 | (VARBITS(bits)[i / 8] >> (7 - i % 8) & 1);
	snprintf(text, sizeof(text), UINT64_FORMAT, value);
	appendStringInfoString(head, text);
	return true;
}

static void
append_uuid(StringInfo head, const pg_uuid_t *uuid)
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			appendStringInfoChar(head, '-');
		appendStringInfoChar(head, digits[uuid->data[i] >> 4]);
		appendStringInfoChar(head, digits[uuid->data[i] & 15]);
	}
}

/* The length of a body goes into the head. */
static void
append_body(SchemaSum *sum, const char *data, Size len)
{
	append_int64(&sum->head, (int64) len);
	sum->parts[sum->nparts].data = data;
	sum->parts[sum->nparts++].len = len;
}

static void
append_varlena(SchemaSum *sum, Datum value, bool is_padded)
{
	struct varlena *bytes = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));
	Size		len = VARSIZE_ANY_EXHDR(bytes);

	while (is_padded && len > 0 && VARDATA_ANY(bytes)[len - 1] == ' ')
		len--;
	append_body(sum, VARDATA_ANY(bytes), len);
}

static void
append_value(SchemaSum *sum, const SchemaColumn *column, SumPrinter printer, Datum value)
{
	StringInfo	head = &sum->head;
	int			scale = column->def->scale;
	bool		ok = true;

	switch (printer)
	{
		case SUM_NONE:
			ok = false;
			break;
		case SUM_INT2:
			append_int64(head, DatumGetInt16(value));
			break;
		case SUM_INT4:
			append_int64(head, DatumGetInt32(value));
			break;
		case SUM_INT8:
			append_int64(head, DatumGetInt64(value));
			break;
		case SUM_BOOL:
			appendStringInfoChar(head, DatumGetBool(value) ? '1' : '0');
			break;
		case SUM_NUMERIC:
			appendStringInfoString(head, DatumGetCString(DirectFunctionCall1(numeric_out, value)));
			break;
		case SUM_BITS:
			ok = append_bits(head, DatumGetVarBitP(value), column->def->length);
			break;
		case SUM_DATE:
			ok = append_date(head, DatumGetDateADT(value));
			break;
		case SUM_TIMESTAMP:
		case SUM_MIDNIGHT:
			ok = append_timestamp(head, DatumGetTimestamp(value), scale, printer == SUM_MIDNIGHT);
			break;
		case SUM_INTERVAL:
			ok = append_interval(head, DatumGetIntervalP(value), scale);
			break;
		case SUM_TIME:
			ok = append_clock(head, (uint64) DatumGetTimeADT(value), scale);
			break;
		case SUM_UUID:
			append_uuid(head, DatumGetUUIDP(value));
			break;
		case SUM_BYTES:
		case SUM_PADDED:
			append_varlena(sum, value, printer == SUM_PADDED);
			break;
		case SUM_ENUM:
			{
				char	   *label = DatumGetCString(DirectFunctionCall1(enum_out, value));

				append_body(sum, label, strlen(label));
				break;
			}
		case SUM_UUID_BYTES:
			append_body(sum, (const char *) DatumGetUUIDP(value)->data, UUID_LEN);
			break;
	}
	if (!ok)
		append_unprintable(head);
}

static void
add_to_hash(SchemaSum *sum, const char *data, Size len)
{
	if (pg_cryptohash_update(sum->hash, (const uint8 *) data, len) < 0)
		elog(ERROR, "could not compute a SHA-256");
}

uint64
schema_sum_row(SchemaSum *sum, const bool *wanted, const Datum *values, const bool *nulls)
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	uint64		number = 0;

	resetStringInfo(&sum->head);
	sum->nparts = 0;
	for (int i = 0; i < sum->table->ncolumns; i++)
	{
		const SchemaColumn *column = &sum->table->columns[i];

		if (!wanted[i])
			continue;
		if (sum->head.len > 0)
			appendStringInfoChar(&sum->head, ',');
		if (column->attnum <= 0)
			append_unprintable(&sum->head);
		else if (nulls[column->attnum - 1])
			appendStringInfoChar(&sum->head, 'N');
		else
			append_value(sum, column, sum->printers[i], values[column->attnum - 1]);
	}
	appendStringInfoChar(&sum->head, ':');

	if (pg_cryptohash_init(sum->hash) < 0)
		elog(ERROR, "could not compute a SHA-256");
	add_to_hash(sum, sum->head.data, sum->head.len);
	for (int i = 0; i < sum->nparts; i++)
		add_to_hash(sum, sum->parts[i].data, sum->parts[i].len);
	if (pg_cryptohash_final(sum->hash, digest, sizeof(digest)) < 0)
		elog(ERROR, "could not compute a SHA-256");
	for (int i = 0; i < 8; i++)
		number = number << 8 | digest[i];
	return number;
}
