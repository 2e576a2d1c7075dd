/*-------------------------------------------------------------------------
 *
 * flink_expression.c
 *	  Projections and filters of Flink CDC in PostgreSQL's words.
 *
 * NOTES
 *	  Both are SQL, so most of it stays as it is. What is changed, token by token:
 *	  names in backticks, which take double quotes here; "\*"; metadata columns; names
 *	  of types that PostgreSQL does not have, behind AS in a CAST. Names of functions
 *	  are compared with those that mean the same there and here; all others are
 *	  told, because nobody can say without running them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "flink/flink.h"

typedef struct Word
{
	const char *theirs;			/* in lower case */
	const char *ours;
} Word;

static const Word metadata[] = {
	{"__schema_name__", "cdc_schema"},
	{"__namespace_name__", "cdc_schema"},
	{"__table_name__", "cdc_table"},
	{"__data_event_type__", "cdc_operation"},
};

static const Word types[] = {
	{"string", "text"}, {"tinyint", "smallint"}, {"double", "double precision"}, {"bytes", "bytea"},
	{"timestamp_ltz", "timestamptz"}, {"float", "real"},
};

/* Functions that give the same for the same arguments. */
static const char *const known[] = {
	"abs", "cast", "ceil", "char_length", "coalesce", "concat", "concat_ws", "extract", "floor", "greatest", "initcap", "least", "lower", "lpad",
	"ltrim", "md5", "mod", "nullif", "overlay", "position", "power", "replace", "reverse", "round", "rpad", "rtrim", "sign", "split_part", "sqrt",
	"substring", "trim", "upper",
};

/* Words that stand before a parenthesis and are no functions. */
static const char *const keywords[] = {
	"and", "as", "between", "case", "decimal", "distinct", "else", "exists", "from", "in", "is", "like", "not", "numeric", "on", "or", "then", "varchar", "char", "when", "timestamp",
};

static bool
is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (pg_strcasecmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

static const char *
find_word(const char *word, const Word *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (pg_strcasecmp(word, words[i].theirs) == 0)
			return words[i].ours;
	}
	return NULL;
}

static void
note(List **unsure, char *what)
{
	ListCell   *lc;

	foreach(lc, *unsure)
	{
		if (strcmp(lfirst(lc), what) == 0)
			return;
	}
	*unsure = lappend(*unsure, what);
}

/* A literal or a quoted name, up to the quote that ends it (a doubled one does not), or to the end. */
static const char *
quoted_end(const char *p)
{
	char		quote = *p;

	for (p++; *p != '\0'; p++)
	{
		if (*p == quote && p[1] == quote)
			p++;
		else if (*p == quote)
			return p + 1;
	}
	return p;
}

static bool
is_name_char(char c)
{
	return isalnum((unsigned char) c) || c == '_' || c == '$' || IS_HIGHBIT_SET(c);
}

/* A word; what follows it, and what stood before, tells what it is. */
static void
append_word(StringInfo out, const char *word, const char *behind, bool after_as, List **unsure)
{
	const char *ours;

	behind += strspn(behind, " \t\n");
	if ((ours = find_word(word, metadata, lengthof(metadata))) != NULL)
	{
		appendStringInfoString(out, ours);
		if (strcmp(ours, "cdc_operation") == 0)
			note(unsure, pstrdup("__data_event_type__ (cdc_operation has words, not +I, +U)"));
		return;
	}
	if (after_as && (*behind == ')' || *behind == '(') && (ours = find_word(word, types, lengthof(types))) != NULL)
	{
		appendStringInfoString(out, ours);
		return;
	}
	if (*behind == '(' && !is_one_of(word, known, lengthof(known)) && !is_one_of(word, keywords, lengthof(keywords)))
		note(unsure, psprintf("%s()", word));
	appendStringInfoString(out, word);
}

char *
flink_expression(const char *text, List **unsure)
{
	StringInfoData out;
	bool		after_as = false;

	initStringInfo(&out);
	for (const char *p = text; *p != '\0';)
	{
		if (*p == '\'' || *p == '"')
		{
			const char *end = quoted_end(p);

			appendBinaryStringInfo(&out, p, end - p);
			p = end;
			after_as = false;
		}
		else if (*p == '`')
		{
			const char *end = quoted_end(p);

			appendStringInfoChar(&out, '"');
			for (const char *q = p + 1; q < end - 1; q++)
			{
				if (*q == '"')
					appendStringInfoChar(&out, '"');
				appendStringInfoChar(&out, *q);
			}
			appendStringInfoChar(&out, '"');
			p = end;
			after_as = false;
		}
		else if (*p == '\\' && p[1] == '*')
			p++;
		else if (is_name_char(*p) && !isdigit((unsigned char) *p))
		{
			const char *end = p;
			char	   *word;

			while (is_name_char(*end))
				end++;
			word = pnstrdup(p, end - p);
			append_word(&out, word, end, after_as, unsure);
			after_as = pg_strcasecmp(word, "as") == 0;
			p = end;
		}
		else
		{
			if (*p == '=' && p[1] == '=')
				p++;
			after_as &= isspace((unsigned char) *p) != 0;
			appendStringInfoChar(&out, *p++);
		}
	}
	return out.data;
}
