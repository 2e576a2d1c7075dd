/*-------------------------------------------------------------------------
 *
 * schema_ddl.c
 *	  Statements that make a target table.
 *
 * NOTES
 *	  A statement from here has to succeed whatever the source's table looks
 *	  like (given schema_def_is_supported), so a default is translated only
 *	  when its literal is checked to be one of the target's type, and dropped
 *	  otherwise: a missing default harms nobody while rows come from the source.
 *	  Dropped are zero dates, expressions other than the current time, and
 *	  defaults of binary columns (both servers print those cut at a zero
 *	  byte).
 *
 *	  Defaults come bare (it's, 1.50, b'101') or, when default_is_expr says so,
 *	  as an expression of the server: (1), _utf8mb4\'x\', now(6), x'41'.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"

#include "schema/schema_private.h"
#include "schema/table.h"

/* ---------------------------------------------------------------- defaults */

/* [-]digits[.digits][e[-]digits], and nothing else. */
static bool
is_number(const char *text, bool may_have_point)
{
	const char *p = text;
	int digits = 0;

	if (*p == '-' || *p == '+')
		p++;
	for (; isdigit((unsigned char) *p); p++)
		digits++;
	if (may_have_point && *p == '.')
	{
		for (p++; isdigit((unsigned char) *p); p++)
			digits++;
	}
	if (digits == 0)
		return false;
	if (may_have_point && (*p == 'e' || *p == 'E'))
	{
		p++;
		if (*p == '-' || *p == '+')
			p++;
		digits = 0;
		for (; isdigit((unsigned char) *p); p++)
			digits++;
		if (digits == 0 || digits > 3)
			return false;
	}
	return *p == '\0';
}

/* Day of a literal's first ten characters, and whether it is one of the calendar. */
static bool
is_date(const char *text)
{
	int year, month, day, used = 0;

	return sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3 && used == 10 &&
	       year > 0 && schema_is_real_date(year, month, day);
}

/* [-]HH:MM:SS[.fraction] up to the end. */
static bool
is_clock(const char *text, int max_hour)
{
	int hour, minute, second, used = 0;

	if (*text == '-' && max_hour > 24)
		text++;
	if (!isdigit((unsigned char) *text) ||
	    sscanf(text, "%3d:%2d:%2d%n", &hour, &minute, &second, &used) != 3 || used == 0 ||
	    hour > max_hour || minute > 59 || second > 59)
		return false;
	text += used;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	return *text == '\0';
}

/*
 * Value of b'101', 0b101, x'41' or 0x41 as a number; false when the text is
 * none of them or has more than 64 bits.
 */
bool
schema_bits_literal(const char *text, uint64 *value)
{
	bool is_binary =
	    *text == 'b' || *text == 'B' || (text[0] == '0' && (text[1] == 'b' || text[1] == 'B'));
	bool is_hex =
	    *text == 'x' || *text == 'X' || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'));
	bool is_quoted = (is_binary || is_hex) && text[1] == '\'';
	int shift = is_binary ? 1 : 4;
	const char *p = text + 2;

	if ((!is_binary && !is_hex) || (!is_quoted && *text != '0'))
		return false;
	for (*value = 0; *p != '\0' && *p != '\''; p++)
	{
		int digit;

		if (is_binary && (*p == '0' || *p == '1'))
			digit = *p - '0';
		else if (is_hex && isxdigit((unsigned char) *p))
			digit = isdigit((unsigned char) *p) ? *p - '0' : (*p | 0x20) - 'a' + 10;
		else
			return false;
		if (*value >> (64 - shift) != 0)
			return false;
		*value = *value << shift | (uint64) digit;
	}
	return p > text + 2 && strcmp(p, is_quoted ? "'" : "") == 0;
}

/*
 * The current time in its many spellings: NOW(), CURRENT_TIMESTAMP(6),
 * LOCALTIME. Returns the fraction's digits, or -1 when it is something else.
 */
static int
current_time_digits(const char *text)
{
	static const char *const names[] = {"current_timestamp", "now", "localtimestamp", "localtime"};

	for (size_t i = 0; i < lengthof(names); i++)
	{
		size_t len = strlen(names[i]);
		const char *p = text + len;

		if (pg_strncasecmp(text, names[i], len) != 0)
			continue;
		if (*p == '\0' || strcmp(p, "()") == 0)
			return 0;
		if (p[0] == '(' && p[1] >= '0' && p[1] <= '6' && strcmp(p + 2, ")") == 0)
			return p[1] - '0';
	}
	return -1;
}

/* Without the blanks and parentheses around the whole; nested ones inside stay. */
static char *
strip_parentheses(const char *text)
{
	char *copy = pstrdup(text);

	for (;;)
	{
		size_t len;
		int depth = 0;
		bool wraps = false;

		while (*copy == ' ')
			copy++;
		len = strlen(copy);
		while (len > 0 && copy[len - 1] == ' ')
			copy[--len] = '\0';
		if (len < 2 || copy[0] != '(' || copy[len - 1] != ')')
			return copy;
		for (size_t i = 0; i < len; i++)
		{
			depth += copy[i] == '(' ? 1 : copy[i] == ')' ? -1 : 0;
			if (depth == 0)
			{
				wraps = i == len - 1;
				break;
			}
		}
		if (!wraps)
			return copy;
		copy[len - 1] = '\0';
		copy++;
	}
}

/*
 * Turn an expression that is in truth a literal into the bare literal: 'x',
 * _utf8mb4'x', _utf8mb4\'x\' (as MySQL's information_schema prints it), -(1),
 * 1e3, TRUE. NULL when it is something else.
 */
static char *
expression_literal(const char *expression)
{
	char *text = strip_parentheses(expression);
	const char *p = text;
	const char *quote;
	StringInfoData out;

	if (pg_strcasecmp(text, "true") == 0)
		return pstrdup("1");
	if (pg_strcasecmp(text, "false") == 0)
		return pstrdup("0");
	if (*text == '-' && is_number(strip_parentheses(text + 1), true))
		return psprintf("-%s", strip_parentheses(text + 1));
	if (is_number(text, true) || text[0] == '0' || ((text[0] | 0x20) == 'b' && text[1] == '\'') ||
	    ((text[0] | 0x20) == 'x' && text[1] == '\''))
		return text;

	/* What MySQL prints of other characters in expressions is encoded twice. */
	for (p = text; *p != '\0'; p++)
	{
		if ((unsigned char) *p >= 0x80)
			return NULL;
	}
	p = text;
	if (*p == '_')
	{
		for (p++; isalnum((unsigned char) *p); p++)
			;
		while (*p == ' ')
			p++;
	}
	quote = p[0] == '\\' && p[1] == '\'' ? "\\'" : "'";
	if (strncmp(p, quote, strlen(quote)) != 0)
		return NULL;
	initStringInfo(&out);
	for (p += strlen(quote); strncmp(p, quote, strlen(quote)) != 0; p++)
	{
		/* Escapes inside of a literal differ by version and mode: leave those alone. */
		if (*p == '\0' || *p == '\\' || *p == '\'')
			return NULL;
		appendStringInfoChar(&out, *p);
	}
	return strcmp(p, quote) == 0 ? out.data : NULL;
}

/* Number written in any way an integer column takes: 5, 1.0 is not. */
static char *
integer_default(const CdcColumnDef *column, const SchemaTypeOptions *options, const char *text)
{
	char number[24];
	uint64 bits;
	bool negative = *text == '-';
	uint64 magnitude;

	if (schema_bits_literal(text, &bits))
	{
		snprintf(number, sizeof(number), UINT64_FORMAT, bits);
		text = number;
	}
	if (!is_number(text, false) || strlen(text) > 20)
		return NULL;
	errno = 0;
	magnitude = strtoull(text + negative, NULL, 10);
	if (errno != 0)
		return NULL;

	if (column->type == CDC_TYPE_TINYINT && column->is_boolean && options->tinyint1_as_boolean)
		return magnitude > 1 || (negative && magnitude != 0)
		           ? NULL
		           : pstrdup(magnitude ? "true" : "false");
	/* Range of the source's type: what the server takes as a default fits. */
	return psprintf("%s" UINT64_FORMAT, negative ? "-" : "", magnitude);
}

static char *
text_default(const CdcColumnDef *column, const char *text)
{
	uint64 bits;
	char *server;

	if (column->default_is_expr && schema_bits_literal(text, &bits))
		return NULL;
	if (!pg_verify_mbstr(PG_UTF8, text, (int) strlen(text), true))
		return NULL;
	server = schema_server_string(text);
	if (column->type == CDC_TYPE_CHAR || column->type == CDC_TYPE_VARCHAR)
	{
		if (pg_mbstrlen(server) > (int) column->length)
			return NULL;
	}
	return quote_literal_cstr(server);
}

static char *
bit_default(const CdcColumnDef *column, const char *text)
{
	StringInfoData out;
	uint64 bits;

	if (!schema_bits_literal(text, &bits))
	{
		if (!is_number(text, false) || *text == '-' || strlen(text) > 19)
			return NULL;
		bits = strtoull(text, NULL, 10);
	}
	if (column->length < 64 && bits >> column->length != 0)
		return NULL;
	if (column->length == 1)
		return pstrdup(bits ? "true" : "false");
	initStringInfo(&out);
	appendStringInfoString(&out, "B'");
	for (int i = (int) column->length - 1; i >= 0; i--)
		appendStringInfoChar(&out, bits >> i & 1 ? '1' : '0');
	appendStringInfoChar(&out, '\'');
	return out.data;
}

/* CURRENT_TIMESTAMP and its like; NULL when the expression is none, or the column is not temporal. */
static char *
current_time_default(const CdcColumnDef *column, const char *expression)
{
	const char *text = strip_parentheses(expression);
	int digits = current_time_digits(text);
	const char *suffix;

	if (column->type == CDC_TYPE_DATE)
		return digits >= 0 || pg_strcasecmp(text, "curdate()") == 0 ? pstrdup("CURRENT_DATE")
		                                                            : NULL;
	if (digits < 0 || (column->type != CDC_TYPE_DATETIME && column->type != CDC_TYPE_TIMESTAMP))
		return NULL;
	suffix = column->type == CDC_TYPE_DATETIME ? "LOCALTIMESTAMP" : "CURRENT_TIMESTAMP";
	return psprintf("%s(%d)", suffix, digits);
}

/*
 * Translate a default by the column's type; NULL when it cannot be.
 */
static char *
translate_default(const CdcColumnDef *column, const SchemaTypeOptions *options)
{
	const char *text = column->default_text;

	if (column->default_is_expr)
	{
		char *current = current_time_default(column, text);

		if (current != NULL)
			return current;
		text = expression_literal(text);
		if (text == NULL)
			return NULL;
	}

	switch (column->type)
	{
		case CDC_TYPE_TINYINT:
		case CDC_TYPE_SMALLINT:
		case CDC_TYPE_MEDIUMINT:
		case CDC_TYPE_INT:
		case CDC_TYPE_BIGINT:
		case CDC_TYPE_YEAR:
			return integer_default(column, options, text);
		case CDC_TYPE_DECIMAL:
			/* An expression's value may have more digits than the column. */
			return is_number(text, true) && !column->default_is_expr ? quote_literal_cstr(text)
			                                                         : NULL;
		case CDC_TYPE_FLOAT:
			return is_number(text, true) && strpbrk(text, "eE") == NULL && strlen(text) < 30
			           ? quote_literal_cstr(text)
			           : NULL;
		case CDC_TYPE_DOUBLE:
			return is_number(text, true) && (strpbrk(text, "eE") == NULL || strlen(text) < 8)
			           ? quote_literal_cstr(text)
			           : NULL;
		case CDC_TYPE_BIT:
			return bit_default(column, text);
		case CDC_TYPE_DATE:
			return is_date(text) && text[10] == '\0' ? quote_literal_cstr(text) : NULL;
		case CDC_TYPE_TIME:
			return is_clock(text, 838) ? quote_literal_cstr(text) : NULL;
		case CDC_TYPE_DATETIME:
			return is_date(text) &&
			               (text[10] == '\0' || (text[10] == ' ' && is_clock(text + 11, 23)))
			           ? quote_literal_cstr(text)
			           : NULL;
		case CDC_TYPE_TIMESTAMP:
			/* The session's zone is UTC, and so is what the server prints. */
			return is_date(text) &&
			               (text[10] == '\0' || (text[10] == ' ' && is_clock(text + 11, 23)))
			           ? psprintf("'%s+00'", text)
			           : NULL;
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_ENUM:
		case CDC_TYPE_SET:
			return text_default(column, text);
		case CDC_TYPE_JSON:
			return strcmp(text, "{}") == 0 || strcmp(text, "[]") == 0 ? quote_literal_cstr(text)
			                                                          : NULL;
		default:
			return NULL;
	}
}

char *
schema_default_clause(const CdcColumnDef *column, const SchemaTypeOptions *options)
{
	char *value;

	if (column->default_text == NULL || column->is_generated)
		return NULL;
	value = translate_default(column, options);
	return value != NULL ? psprintf("DEFAULT %s", value) : NULL;
}

/* -------------------------------------------------------------- statements */

/* Is the target's type one that an identity can count in? */
static bool
is_integer_sql(const char *type)
{
	return strcmp(type, "smallint") == 0 || strcmp(type, "integer") == 0 ||
	       strcmp(type, "bigint") == 0;
}

bool
schema_column_is_not_null(const CdcColumnDef *column, const SchemaTypeOptions *options)
{
	return (!column->nullable || column->key_part != 0) &&
	       !schema_zero_date_is_null(column, &options->policies);
}

static void
append_column(StringInfo sql, const CdcTableDef *def, const SchemaOutput *output,
              const SchemaTypeOptions *options)
{
	const CdcColumnDef *column = output->from;
	char *clause;

	appendStringInfo(sql, "\n\t%s %s", quote_identifier(output->name), output->type);
	if (column != NULL && column->auto_increment && is_integer_sql(output->type))
		appendStringInfoString(sql, " GENERATED BY DEFAULT AS IDENTITY");
	/* a default may not fit another type */
	else if (column != NULL && !schema_column_is_overridden(def, column, options))
	{
		clause = schema_default_clause(column, options);
		if (clause != NULL)
			appendStringInfo(sql, " %s", clause);
	}
	if (output->not_null)
		appendStringInfoString(sql, " NOT NULL");
}

static void
append_comment(List **statements, const char *kind, const char *name, const char *comment)
{
	if (comment == NULL || comment[0] == '\0')
		return;
	if (!pg_verify_mbstr(PG_UTF8, comment, (int) strlen(comment), true))
		return;
	*statements = lappend(*statements, psprintf("COMMENT ON %s %s IS %s", kind, name,
	                                            quote_literal_cstr(schema_server_string(comment))));
}

List *
schema_create_statements_for(const CdcTableDef *def, List *outputs, List *key,
                             const char *target_schema, const char *target_table,
                             const SchemaTypeOptions *options)
{
	const char *name = quote_qualified_identifier(target_schema, target_table);
	List *statements = NIL;
	StringInfoData sql;
	ListCell *lc;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", name);
	foreach (lc, outputs)
	{
		if (foreach_current_index(lc) > 0)
			appendStringInfoChar(&sql, ',');
		append_column(&sql, def, lfirst(lc), options);
	}
	foreach (lc, key)
		appendStringInfo(&sql, "%s%s", foreach_current_index(lc) > 0 ? ", " : ",\n\tPRIMARY KEY (",
		                 quote_identifier(lfirst(lc)));
	appendStringInfoString(&sql, key != NIL ? ")\n)" : "\n)");
	statements = lappend(statements, sql.data);

	append_comment(&statements, "TABLE", name, def->comment);
	foreach (lc, outputs)
	{
		const SchemaOutput *output = lfirst(lc);

		if (output->from != NULL)
			append_comment(&statements, "COLUMN",
			               psprintf("%s.%s", name, quote_identifier(output->name)),
			               output->from->comment);
	}
	return statements;
}

/* The source's column as a target is made with it. */
static SchemaOutput *
plain_output(const CdcTableDef *def, const CdcColumnDef *column, const SchemaTypeOptions *options)
{
	SchemaOutput *output = palloc0(sizeof(SchemaOutput));
	char *why;

	output->name = schema_column_name(column->name);
	output->from = column;
	output->type = schema_target_type_sql(def, column, options, &why);
	output->not_null = schema_column_is_not_null(column, options);
	if (output->type == NULL)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
		                errmsg("column \"%s\" has no type in PostgreSQL", output->name),
		                errdetail_internal("%s.", why)));
	return output;
}

List *
schema_create_statements(const CdcTableDef *def, const char *target_schema,
                         const char *target_table, const SchemaTypeOptions *options)
{
	List *outputs = NIL;
	List *key = NIL;

	for (uint32 i = 0; i < def->ncolumns; i++)
		outputs = lappend(outputs, plain_output(def, &def->columns[i], options));
	for (uint32 part = 1; part <= def->nkey; part++)
	{
		for (uint32 i = 0; i < def->ncolumns; i++)
		{
			if (def->columns[i].key_part == part)
				key = lappend(key, schema_column_name(def->columns[i].name));
		}
	}
	return schema_create_statements_for(def, outputs, key, target_schema, target_table, options);
}
