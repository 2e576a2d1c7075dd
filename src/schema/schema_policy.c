/*-------------------------------------------------------------------------
 *
 * schema_policy.c
 *	  Values that have no form in the target: stop the table, or what to put
 *	  in their place.
 *
 * NOTES
 *	  A policy is asked only for a value that would be an error otherwise, so
 *	  values that have a form are never touched and cost nothing. It marks the
 *	  column ("replaced"), and whoever writes the row counts.
 *
 *	  Columns of the key have no policy: what is put in place of two different
 *	  values may be the same, and rows are told apart by the key.
 *
 *	  No message of this file contains a value.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "catalog/catalog.h"
#include "schema/schema_private.h"

/* U+FFFD in UTF-8 and as an escape of JSON, which is as long as that of U+0000. */
#define REPLACEMENT "\xef\xbf\xbd"
#define JSON_REPLACEMENT "\\ufffd"
#define JSON_NUL "\\u0000"

/* ------------------------------------------------------------------ options */

static SchemaPolicy
read_policy(const CatalogPipeline *pipeline, const char *name)
{
	static const struct
	{
		const char *text;
		SchemaPolicy policy;
	} words[] = {
	    {"error", SCHEMA_POLICY_ERROR}, {"null", SCHEMA_POLICY_NULL},
	    {"epoch", SCHEMA_POLICY_EPOCH}, {"infinity", SCHEMA_POLICY_INFINITY},
	    {"strip", SCHEMA_POLICY_STRIP}, {"replace", SCHEMA_POLICY_REPLACE},
	};
	const char *value =
	    util_option_text(&catalog_pipeline_options, name, catalog_pipeline_option(pipeline, name));

	for (size_t i = 0; i < lengthof(words); i++)
	{
		if (strcmp(words[i].text, value) == 0)
			return words[i].policy;
	}
	elog(ERROR, "option \"%s\" has a value without a meaning", name);
}

void
schema_options_read(const struct CatalogPipeline *pipeline, SchemaTypeOptions *options)
{
	options->tinyint1_as_boolean =
	    util_option_bool(&catalog_pipeline_options, "tinyint1_as_boolean",
	                     catalog_pipeline_option(pipeline, "tinyint1_as_boolean"));
	options->refuse_cascades =
	    strcmp(util_option_text(&catalog_pipeline_options, "cascades",
	                            catalog_pipeline_option(pipeline, "cascades")),
	           "refuse") == 0;
	options->make_cascades =
	    strcmp(util_option_text(&catalog_pipeline_options, "cascades",
	                            catalog_pipeline_option(pipeline, "cascades")),
	           "synthesise") == 0;
	options->overrides = schema_overrides_read(catalog_pipeline_option(pipeline, "column_types"));
	options->policies.zero_date = read_policy(pipeline, "zero_date");
	options->policies.nul_bytes = read_policy(pipeline, "nul_bytes");
	options->policies.invalid_bytes = read_policy(pipeline, "invalid_bytes");
}

bool
schema_zero_date_is_null(const CdcColumnDef *def, const SchemaPolicies *policies)
{
	if (policies->zero_date != SCHEMA_POLICY_NULL || def->key_part != 0)
		return false;
	return def->type == CDC_TYPE_DATE || def->type == CDC_TYPE_DATETIME ||
	       def->type == CDC_TYPE_TIMESTAMP;
}

void
schema_column_set_policies(SchemaColumn *column, const SchemaPolicies *policies, bool not_null)
{
	memset(&column->policies, 0, sizeof(column->policies));
	if (column->def->key_part != 0)
		return;
	column->policies = *policies;
	/* the zero date's error says more than that of the constraint would */
	if (not_null && policies->zero_date == SCHEMA_POLICY_NULL)
		column->policies.zero_date = SCHEMA_POLICY_ERROR;
}

/* -------------------------------------------------------------------- dates */

static _Noreturn void
throw_date(const SchemaColumn *column)
{
	ereport(ERROR,
	        (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
	         errmsg("value of column \"%s\" is not a date of the calendar",
	                schema_server_string(column->def->name)),
	         errdetail("Zero dates, dates with a zero month or day, and days that do not exist "
	                   "have no form in type %s.",
	                   format_type_with_typemod(column->typid, column->typmod)),
	         column->def->key_part != 0
	             ? errhint("Correct the value on the source. Columns of the key have no policy "
	                       "for such dates.")
	             : errhint("Correct the value on the source, give the target column the type text, "
	                       "or set the option \"zero_date\" with cdc_alter_pipeline() (null needs a "
	                       "column that allows NULL), then use cdc_resync_table().")));
}

Datum
schema_replace_date(SchemaColumn *column)
{
	bool is_date = column->typid == DATEOID;

	column->replaced = true;
	switch (column->policies.zero_date)
	{
		case SCHEMA_POLICY_NULL:
			column->made_null = true;
			return (Datum) 0;
		case SCHEMA_POLICY_EPOCH:
			return is_date
			           ? DateADTGetDatum(UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE)
			           : TimestampGetDatum((Timestamp) (UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) *
			                               USECS_PER_DAY);
		case SCHEMA_POLICY_INFINITY:
			return is_date ? DateADTGetDatum(DATEVAL_NOBEGIN) : TimestampGetDatum(DT_NOBEGIN);
		default:
			throw_date(column);
	}
}

/* --------------------------------------------------------------------- text */

/* What stands in place of a NUL; throws when the policy is to. */
static const char *
nul_replacement(const SchemaColumn *column)
{
	switch (column->policies.nul_bytes)
	{
		case SCHEMA_POLICY_STRIP:
			return "";
		case SCHEMA_POLICY_REPLACE:
			return REPLACEMENT;
		default:
			ereport(ERROR,
			        (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
			         errmsg("text of column \"%s\" contains a NUL byte",
			                schema_server_string(column->def->name)),
			         errdetail("PostgreSQL's text types cannot hold the character with code zero."),
			         column->def->key_part != 0
			             ? errhint("Correct the value on the source. Columns of the key have no "
			                       "policy for it.")
			             : errhint("Correct the value on the source, or set the option "
			                       "\"nul_bytes\" with cdc_alter_pipeline(), then use "
			                       "cdc_resync_table().")));
	}
}

/* The same for bytes that are no character. */
static const char *
invalid_replacement(const SchemaColumn *column)
{
	if (column->policies.invalid_bytes != SCHEMA_POLICY_REPLACE)
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
		                errmsg("text of column \"%s\" contains bytes that are not valid in its "
		                       "character set",
		                       schema_server_string(column->def->name)),
		                column->def->key_part != 0
		                    ? errhint("Correct the value on the source. Columns of the key have "
		                              "no policy for them.")
		                    : errhint("Correct the value on the source, or set the option "
		                              "\"invalid_bytes\" with cdc_alter_pipeline(), then use "
		                              "cdc_resync_table().")));
	return REPLACEMENT;
}

/* Bytes that one replacement stands for: a lead byte and what follows it, up to its length. */
static int
invalid_length(const unsigned char *p, const unsigned char *end)
{
	int want = *p < 0xc0 || *p >= 0xf8 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	int n = 1;

	while (n < want && p + n < end && (p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

const char *
schema_mend_text(SchemaColumn *column, const CdcCell *cell, uint32 *len)
{
	const char *p = cell->v.data;
	const char *end = p + cell->len;
	StringInfoData out;

	/* the decoder has replaced them already */
	if (cell->invalid > 0)
		(void) invalid_replacement(column);

	initStringInfo(&out);
	for (;;)
	{
		int valid = pg_encoding_verifymbstr(PG_UTF8, p, (int) (end - p));

		appendBinaryStringInfo(&out, p, valid);
		p += valid;
		if (p >= end)
			break;
		if (*p == '\0')
		{
			appendStringInfoString(&out, nul_replacement(column));
			p++;
		}
		else
		{
			appendStringInfoString(&out, invalid_replacement(column));
			p += invalid_length((const unsigned char *) p, (const unsigned char *) end);
		}
	}
	column->replaced = true;
	*len = (uint32) out.len;
	return out.data;
}

void
schema_mend_json(SchemaColumn *column, char *text)
{
	const char *from = strstr(text, JSON_NUL);
	char *to;

	if (from == NULL || (column->policies.nul_bytes != SCHEMA_POLICY_STRIP &&
	                     column->policies.nul_bytes != SCHEMA_POLICY_REPLACE))
		return;

	/* from the start, because of "\\u0000", which is a backslash and five characters */
	to = text;
	for (from = text; *from != '\0';)
	{
		int n = from[0] == '\\' && from[1] != '\0' ? 2 : 1;

		if (strncmp(from, JSON_NUL, strlen(JSON_NUL)) == 0)
		{
			if (column->policies.nul_bytes == SCHEMA_POLICY_REPLACE)
			{
				memcpy(to, JSON_REPLACEMENT, strlen(JSON_REPLACEMENT));
				to += strlen(JSON_REPLACEMENT);
			}
			from += strlen(JSON_NUL);
			column->replaced = true;
			continue;
		}
		while (n-- > 0)
			*to++ = *from++;
	}
	*to = '\0';
}
