/*-------------------------------------------------------------------------
 *
 * flink_pattern.c
 *	  Names of tables, as Flink CDC's users write them.
 *
 * NOTES
 *	  A list that commas separate, of regular expressions "database.table" (or
 *	  "catalog.database.table", for which MySQL has no first part). The dot parts the names; what
 *	  a dot is in regular expressions is written with a backslash: "shop.order_\.*" is all
 *	  tables of shop whose names begin with order_. A comma inside brackets or
 *	  braces does not end a pattern.
 *
 *	  Our patterns know * and ? only. What they cannot say is widened to *: then the
 *	  pattern is not exact. The regular expression that routes take always is.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "flink/flink.h"

static _Noreturn void
throw_pattern(const char *pattern, int line)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid table pattern \"%s\"", pattern),
			 errdetail("Line %d: a pattern has the form database.table, with a backslash before a dot that stands for any character.", line)));
}

/* Behind one element of a regular expression: a character, an escaped one, a class, a group. NULL: it does not end. */
static const char *
element_end(const char *p)
{
	if (*p == '\\')
		return p[1] == '\0' ? NULL : p + 2;
	if (*p == '[')
	{
		for (p++; *p != '\0' && *p != ']'; p++)
			p += *p == '\\' && p[1] != '\0';
		return *p == ']' ? p + 1 : NULL;
	}
	if (*p == '(')
	{
		int			depth = 0;

		for (; *p != '\0'; p++)
		{
			depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
			if (*p == '\\' && p[1] != '\0')
				p++;
			else if (depth == 0)
				return p + 1;
		}
		return NULL;
	}
	return p + 1;
}

/* Behind the quantifier that follows an element, if one does. */
static const char *
quantifier_end(const char *p)
{
	if (*p == '*' || *p == '+' || *p == '?')
		return p + 1;
	if (*p == '{' && strchr(p, '}') != NULL)
		return strchr(p, '}') + 1;
	return p;
}

/* One of our own special characters stands for itself. */
static void
append_literal(StringInfo glob, char c)
{
	if (strchr("*?\\!", c) != NULL)
		appendStringInfoChar(glob, '\\');
	appendStringInfoChar(glob, c);
}

/* A part of a pattern, one name: into the glob and the regular expression. Returns whether the glob is exact. */
static bool
translate_name(const char *p, const char *end, StringInfo glob, StringInfo regex)
{
	bool		is_exact = true;

	while (p < end)
	{
		const char *element = p;
		const char *behind = element_end(p);
		const char *after;
		bool		is_any;

		after = quantifier_end(behind);
		if (after > end)
			after = behind;
		is_any = element[0] == '\\' && element[1] == '.';
		if (is_any)
			appendStringInfoChar(regex, '.');
		else if (element[0] == '.')
			appendStringInfoString(regex, "\\.");
		else
			appendBinaryStringInfo(regex, element, behind - element);
		appendBinaryStringInfo(regex, behind, after - behind);

		if (is_any && after == behind)
			appendStringInfoChar(glob, '?');
		else if (is_any && *behind == '*')
			appendStringInfoChar(glob, '*');
		else if (is_any && *behind == '+')
			appendStringInfoString(glob, "?*");
		else if (after == behind && behind == element + 1 && strchr("[](){}|^$*+?", element[0]) == NULL)
			append_literal(glob, element[0]);
		else if (element[0] == '\\' && after == behind && strchr("_-$", element[1]) != NULL)
			append_literal(glob, element[1]);
		else
		{
			is_exact = false;
			if (glob->len == 0 || glob->data[glob->len - 1] != '*')
				appendStringInfoChar(glob, '*');
		}
		p = after;
	}
	return is_exact;
}

static FlinkPattern *
translate(const char *text, int line)
{
	FlinkPattern *result = palloc0(sizeof(FlinkPattern));
	const char *parts[4];
	int			nparts = 1;
	StringInfoData glob;
	StringInfoData regex;

	parts[0] = text;
	for (const char *p = text; *p != '\0';)
	{
		const char *behind = element_end(p);

		if (behind == NULL)
			throw_pattern(text, line);
		if (*p == '.' && nparts == 3)
			throw_pattern(text, line);
		if (*p == '.')
			parts[nparts++] = behind;
		p = behind;
	}
	parts[nparts] = text + strlen(text) + 1;
	if (nparts < 2)
		throw_pattern(text, line);
	initStringInfo(&glob);
	initStringInfo(&regex);
	result->text = pstrdup(text);
	result->is_exact = true;
	for (int i = nparts - 2; i < nparts; i++)
	{
		StringInfoData part;

		if (parts[i + 1] - 1 <= parts[i])
			throw_pattern(text, line);
		initStringInfo(&part);
		if (i > nparts - 2)
			appendStringInfoString(&regex, "\\.");
		result->is_exact &= translate_name(parts[i], parts[i + 1] - 1, &part, &regex);
		appendStringInfo(&glob, "%s%s", i > nparts - 2 ? "." : "", part.data);
	}
	result->glob = glob.data;
	result->regex = regex.data;
	return result;
}

List *
flink_patterns(const char *text, int line)
{
	List	   *result = NIL;
	const char *start = text;
	int			depth = 0;

	for (const char *p = text;; p++)
	{
		if (*p == '\\' && p[1] != '\0')
		{
			p++;
			continue;
		}
		if (*p != '\0' && strchr("[({", *p) != NULL)
			depth++;
		if (*p != '\0' && strchr("])}", *p) != NULL)
			depth--;
		if (*p == '\0' || (*p == ',' && depth <= 0))
		{
			const char *end = p;

			while (start < end && isspace((unsigned char) *start))
				start++;
			while (end > start && isspace((unsigned char) end[-1]))
				end--;
			if (end > start)
				result = lappend(result, translate(pnstrdup(start, end - start), line));
			start = p + 1;
		}
		if (*p == '\0')
			break;
	}
	return result;
}
