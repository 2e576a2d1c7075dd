/*-------------------------------------------------------------------------
 *
 * schema_match.c
 *	  Is the table that an event describes the table that we know?
 *
 * NOTES
 *	  Called when a table map is seen for the first time or has changed, not per
 *	  row. What can be compared is what the log tells with
 *	  binlog_row_metadata=FULL; defaults, comments, display widths and the
 *	  like are not in it, and do not matter to rows.
 *
 *	  Not taken as a change: another order of the columns (they are matched
 *	  by name), TEXT or BLOB of another size, another collation of the same
 *	  character set, visibility.
 *
 *	  Lengths of character columns are bytes in the log and characters in the
 *	  declaration; a character set has a fixed number of most bytes per
 *	  character, so they compare exactly. A MariaDB server writes JSON as
 *	  LONGTEXT, UUID and INET as BINARY and VECTOR as VARBINARY; with a
 *	  declaration beside it that is told apart.
 *
 *	  information_schema is in utf8mb3 and shows a question mark for each
 *	  character beyond U+FFFF of a label (seen on MariaDB 10.11 and MySQL 9.7);
 *	  the log has the label itself, and values are made from that.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "binlog/charset.h"
#include "schema/schema_private.h"
#include "schema/table.h"

/* MySQL's name for the columns behind functional indexes. */
#define HIDDEN_PREFIX "!hidden!"

/* MariaDB's for the columns behind unique indexes over long values, whose type is HASH. */
#define HASH_PREFIX "DB_ROW_HASH_"

/* MariaDB's for the limits of a version, where a system-versioned table does not declare them. */
#define ROW_START "row_start"
#define ROW_END "row_end"

/* Types of the wire from before MySQL 5.6, which do not tell the width of their fraction. */
#define WIRE_TIMESTAMP_OLD 7
#define WIRE_TIME_OLD 11
#define WIRE_DATETIME_OLD 12

static bool
is_numeric(CdcType type)
{
	switch (type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_FLOAT:
		case CDC_TYPE_DOUBLE:
		case CDC_TYPE_DECIMAL:
			return true;
		default:
			return false;
	}
}

/*
 * Does the log write a column declared as "declared" the way that "event" looks?
 * Only where the two types differ.
 */
static bool
is_disguise(const CdcColumnDef *declared, const CdcColumnDef *event)
{
	switch (declared->type)
	{
		case CDC_TYPE_JSON:
			return event->type == CDC_TYPE_TEXT;
		case CDC_TYPE_UUID:
		case CDC_TYPE_INET6:
			return event->type == CDC_TYPE_BINARY && event->length == 16;
		case CDC_TYPE_INET4:
			return event->type == CDC_TYPE_BINARY && event->length == 4;
		case CDC_TYPE_VECTOR:
			return (event->type == CDC_TYPE_VARBINARY || event->type == CDC_TYPE_VARCHAR) &&
			       event->length == declared->length * 4;
		default:
			return false;
	}
}

/* A label as information_schema shows it, and as the log has it. Both are UTF-8. */
static bool
same_label(const CdcLabel *declared, const CdcLabel *event)
{
	uint32 i = 0;
	uint32 k = 0;

	while (i < declared->len && k < event->len)
	{
		uint8 c = (uint8) event->data[k];

		if (declared->data[i] == '?' && c >= 0xf0 && event->len - k >= 4)
			k += 4;
		else if ((uint8) declared->data[i] == c)
			k++;
		else
			return false;
		i++;
	}
	return i == declared->len && k == event->len;
}

static bool
same_labels(const CdcColumnDef *declared, const CdcColumnDef *event)
{
	if (declared->nlabels != event->nlabels)
		return false;
	for (uint32 i = 0; i < declared->nlabels; i++)
	{
		if (!same_label(&declared->labels[i], &event->labels[i]))
			return false;
	}
	return true;
}

static bool
same_charset(const CdcColumnDef *a, const CdcColumnDef *b)
{
	const char *name_a = binlog_charset_name(a->collation);
	const char *name_b = binlog_charset_name(b->collation);

	if (name_a == NULL || name_b == NULL)
		return a->collation == b->collation;
	return strcmp(name_a, name_b) == 0;
}

static bool
is_old_temporal(const CdcColumnDef *event)
{
	return event->wire_type == WIRE_TIMESTAMP_OLD || event->wire_type == WIRE_TIME_OLD ||
	       event->wire_type == WIRE_DATETIME_OLD;
}

/* Length, digits and fraction: where the log tells them. Returns a reason or NULL. */
static char *
compare_size(const CdcColumnDef *declared, const CdcColumnDef *event, const char *name)
{
	switch (declared->type)
	{
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		{
			uint32 unit = (uint32) Max(binlog_charset_max_length(declared->collation), 1);

			if (event->length != declared->length * unit)
				return psprintf("length of column \"%s\" changed from %u to %u characters", name,
				                declared->length, event->length / unit);
			return NULL;
		}
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BIT:
		case CDC_TYPE_VECTOR:
			if (event->length != declared->length)
				return psprintf("length of column \"%s\" changed from %u to %u", name,
				                declared->length, event->length);
			return NULL;
		case CDC_TYPE_DECIMAL:
			if (event->precision != declared->precision || event->scale != declared->scale)
				return psprintf(
				    "type of column \"%s\" changed from decimal(%u,%u) to decimal(%u,%u)", name,
				    declared->precision, declared->scale, event->precision, event->scale);
			return NULL;
		case CDC_TYPE_TIME:
		case CDC_TYPE_DATETIME:
		case CDC_TYPE_TIMESTAMP:
			if (is_old_temporal(event))
				return declared->scale == 0
				           ? NULL
				           : psprintf("column \"%s\" is stored in the temporal format of old "
				                      "servers, which does not tell the width of its fraction "
				                      "(ALTER TABLE ... FORCE on the source renews it)",
				                      name);
			if (event->scale != declared->scale)
				return psprintf("fraction of column \"%s\" changed from %u to %u digits", name,
				                declared->scale, event->scale);
			return NULL;
		default:
			return NULL;
	}
}

/*
 * Compare one column. Returns NULL when it is the same, else the reason
 * (palloc'd); *lacks is set when the event does not tell enough.
 */
static char *
compare_column(const CdcColumnDef *declared, CdcColumnDef *event, uint32 known, bool *lacks)
{
	const char *name = schema_server_string(declared->name);

	if (declared->type != event->type)
	{
		if (!is_disguise(declared, event))
			return psprintf("type of column \"%s\" changed from %s to %s", name,
			                cdc_type_name(declared->type), cdc_type_name(event->type));
		event->type = declared->type;
		event->length = declared->length;
		return declared->nullable == event->nullable
		           ? NULL
		           : psprintf("column \"%s\" %s", name,
		                      event->nullable ? "may be NULL now" : "became NOT NULL");
	}

	if (is_numeric(declared->type))
	{
		if ((known & CDC_KNOWS_SIGN) == 0)
		{
			*lacks = true;
			return psprintf("the event does not tell whether column \"%s\" is unsigned", name);
		}
		if (declared->is_unsigned != event->is_unsigned)
			return psprintf("column \"%s\" became %s", name,
			                event->is_unsigned ? "unsigned" : "signed");
	}
	if (cdc_type_is_character(declared->type))
	{
		if ((known & CDC_KNOWS_CHARSET) == 0)
		{
			*lacks = true;
			return psprintf("the event does not tell the character set of column \"%s\"", name);
		}
		if (!same_charset(declared, event))
			return psprintf("character set of column \"%s\" changed", name);
	}
	if (declared->type == CDC_TYPE_ENUM || declared->type == CDC_TYPE_SET)
	{
		if ((known & CDC_KNOWS_LABELS) == 0)
		{
			*lacks = true;
			return psprintf("the event does not tell the labels of column \"%s\"", name);
		}
		if (!same_labels(declared, event))
			return psprintf("labels of column \"%s\" changed", name);
	}
	if (declared->nullable != event->nullable)
		return psprintf("column \"%s\" %s", name,
		                event->nullable ? "may be NULL now" : "became NOT NULL");
	return compare_size(declared, event, name);
}

/* Does an event have the column for the server's own purposes? */
static bool
is_hidden(const CdcTableDef *def, const CdcColumnDef *column)
{
	if (strncmp(column->name, HIDDEN_PREFIX, strlen(HIDDEN_PREFIX)) == 0)
		return true;
	if (def->row_end != NULL &&
	    (strcmp(column->name, ROW_START) == 0 || strcmp(column->name, ROW_END) == 0))
		return true;
	if (strncmp(column->name, HASH_PREFIX, strlen(HASH_PREFIX)) != 0)
		return false;
	/* anybody may give a column that name */
	for (uint32 i = 0; i < def->nindexes; i++)
	{
		if (def->indexes[i].is_unique && strcmp(def->indexes[i].type_text, "HASH") == 0)
			return true;
	}
	return false;
}

/* Index of the event's column of that name; -1 when there is none. Looks at the likely place first. */
static int
find_column(const CdcTableDef *def, const char *name, uint32 likely)
{
	if (likely < def->ncolumns && strcmp(def->columns[likely].name, name) == 0)
		return (int) likely;
	return cdc_table_def_column(def, name);
}

/* Names that one side has and the other has not. Returns the reason, or NULL and the map filled. */
static char *
match_names(const CdcTableDef *def, const CdcTableDef *event, int *map)
{
	const char *dropped = NULL;
	const char *added = NULL;

	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		map[i] = find_column(event, def->columns[i].name, i);
		if (map[i] < 0 && dropped == NULL)
			dropped = schema_server_string(def->columns[i].name);
	}
	for (uint32 i = 0; i < event->ncolumns && added == NULL; i++)
	{
		if (find_column(def, event->columns[i].name, i) < 0 && !is_hidden(def, &event->columns[i]))
			added = schema_server_string(event->columns[i].name);
	}
	if (def->row_end != NULL && find_column(event, def->row_end, 0) < 0)
		return pstrdup("it is not system-versioned any more");
	if (dropped != NULL && added != NULL)
		return psprintf("column \"%s\" was renamed or replaced by \"%s\"", dropped, added);
	if (dropped != NULL)
		return psprintf("column \"%s\" was dropped", dropped);
	if (added != NULL)
		return psprintf("column \"%s\" was added", added);
	return NULL;
}

/*
 * Compare the key. With full metadata an event without key columns says that
 * the table has none.
 */
static char *
match_key(const CdcTableDef *def, const CdcTableDef *event, const int *map)
{
	bool known = (event->known & CDC_KNOWS_KEY) != 0;

	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		const CdcColumnDef *declared = &def->columns[i];
		const CdcColumnDef *column = &event->columns[map[i]];
		uint16 part = known ? column->key_part : 0;

		/* the servers add it to the keys of system-versioned tables */
		if (def->row_end != NULL && strcmp(declared->name, def->row_end) == 0)
			continue;

		if (declared->key_part != part || (part != 0 && declared->key_prefix != column->key_prefix))
			return psprintf("column \"%s\" %s the key", schema_server_string(declared->name),
			                part == 0                 ? "left"
			                : declared->key_part == 0 ? "entered"
			                                          : "changed its place in");
	}
	return NULL;
}

int *
schema_match_event(const CdcTableDef *def, CdcTableDef *event, char **why, bool *lacks_metadata)
{
	int *map = palloc(Max(def->ncolumns, 1) * sizeof(int));

	*why = NULL;
	*lacks_metadata = false;
	if ((event->known & CDC_KNOWS_NAMES) == 0)
	{
		*lacks_metadata = true;
		*why = pstrdup("the event does not tell the names of the columns");
		return NULL;
	}

	*why = match_names(def, event, map);
	for (uint32 i = 0; i < def->ncolumns && *why == NULL; i++)
		*why =
		    compare_column(&def->columns[i], &event->columns[map[i]], event->known, lacks_metadata);
	if (*why == NULL)
		*why = match_key(def, event, map);
	return *why == NULL ? map : NULL;
}

bool
schema_event_is_vague(const CdcTableDef *def, const CdcTableDef *event)
{
	for (uint32 i = 0; i < event->ncolumns; i++)
	{
		const CdcColumnDef *column = &event->columns[i];
		int from = column->name != NULL ? find_column(def, column->name, i) : -1;

		if (from >= 0 && def->columns[from].scale != 0 && is_old_temporal(column))
			return true;
	}
	return false;
}

bool
schema_learn_collations(CdcTableDef *def, const CdcTableDef *event)
{
	bool learned = false;

	if ((event->known & CDC_KNOWS_NAMES) == 0 || (event->known & CDC_KNOWS_CHARSET) == 0)
		return false;
	for (uint32 i = 0; i < def->ncolumns; i++)
	{
		CdcColumnDef *column = &def->columns[i];
		int from = column->collation == 0 && cdc_type_is_character(column->type) ? find_column(event, column->name, i) : -1;

		if (from < 0 || !cdc_type_is_character(event->columns[from].type) || event->columns[from].collation == 0)
			continue;
		column->collation = event->columns[from].collation;
		learned = true;
	}
	return learned;
}

int
schema_event_row_end(const CdcTableDef *def, const CdcTableDef *event)
{
	return def->row_end != NULL ? find_column(event, def->row_end, 0) : -1;
}
