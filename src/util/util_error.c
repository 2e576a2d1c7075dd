/*-------------------------------------------------------------------------
 *
 * util_error.c
 *	  Plain-C errors -> ereport, and what class an error is.
 *
 * NOTES
 *	  The class decides what a manager does after a worker failed: try again
 *	  soon, try again slowly, or wait for somebody. It is derived from the
 *	  SQLSTATE alone, so that an error of PostgreSQL's own, of the source or of
 *	  ours is treated alike.
 *
 *	  What an error says goes to the server's log and into views that others may
 *	  see. There no value of a row may be: see util_error_info.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "lib/stringinfo.h"

#include "util/util_error.h"

int
util_sqlstate(CdcStatus code)
{
	switch (code)
	{
		case CDC_TRUNCATED:
		case CDC_MALFORMED:
			return ERRCODE_PROTOCOL_VIOLATION;
		case CDC_CHECKSUM:
			return ERRCODE_DATA_CORRUPTED;
		case CDC_UNSUPPORTED:
			return ERRCODE_FEATURE_NOT_SUPPORTED;
		case CDC_NOMEM:
			return ERRCODE_OUT_OF_MEMORY;
		case CDC_LIMIT:
			return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
		case CDC_OK:
		case CDC_END:
			break;
	}
	return ERRCODE_INTERNAL_ERROR;
}

void
util_throw(const CdcError *err, const char *what)
{
	ereport(ERROR,
			(errcode(util_sqlstate(err->code)),
			 errmsg("%s", what),
			 errdetail("%s (%s at byte " UINT64_FORMAT ").",
					   err->text, cdc_status_name(err->code), (uint64) err->offset)));
	pg_unreachable();
}

void
util_throw_out_of_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
	pg_unreachable();
}

/*
 * Errors of class 08 and of the server's own resources pass by themselves; a
 * login, a grant or a setting has to be mended by somebody; a row that does not
 * fit will not fit the next time either.
 */
UtilErrorClass
util_error_class(int sqlstate)
{
	if (sqlstate == CDC_ERRCODE_POSITION_LOST || sqlstate == CDC_ERRCODE_SOURCE_REPLACED)
		return UTIL_ERROR_LOST;
	if (sqlstate == CDC_ERRCODE_SOURCE_SETTING)
		return UTIL_ERROR_CONFIGURATION;

	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
			return UTIL_ERROR_TRANSIENT;

		case ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION:
		case ERRCODE_FDW_ERROR:
			return UTIL_ERROR_CONFIGURATION;

		default:
			break;
	}

	switch (sqlstate)
	{
		case ERRCODE_LOCK_NOT_AVAILABLE:
		case ERRCODE_OBJECT_IN_USE:
		case ERRCODE_PROTOCOL_VIOLATION:	/* a damaged stream: the next connection may be sound */
		case ERRCODE_DATA_CORRUPTED:
			return UTIL_ERROR_TRANSIENT;

		case ERRCODE_INSUFFICIENT_PRIVILEGE:
		case ERRCODE_UNDEFINED_OBJECT:	/* server or user mapping dropped */
		case ERRCODE_CONFIG_FILE_ERROR:
			return UTIL_ERROR_CONFIGURATION;

		default:
			return UTIL_ERROR_DATA;
	}
}

/* ---- what an error may tell ---- */

/*
 * PostgreSQL's own errors and those of functions in SQL quote the value that they do not like, in whichever field. Ours never
 * do; they are known by their message domain (util_domain.h).
 */
static bool
is_ours(const ErrorData *edata)
{
	return edata->domain != NULL && strcmp(edata->domain, TEXTDOMAIN) == 0;
}

/* Thrown by a statement of a procedural language (RAISE), whose message domain begins so? Then any SQLSTATE is possible. */
static bool
is_of_a_language(const ErrorData *edata)
{
	return edata->domain != NULL && strncmp(edata->domain, "pl", 2) == 0;
}

static bool
may_quote_values(const ErrorData *edata)
{
	if (is_ours(edata))
		return false;
	if (is_of_a_language(edata))
		return true;
	switch (ERRCODE_TO_CATEGORY(edata->sqlerrcode))
	{
		case ERRCODE_CARDINALITY_VIOLATION:
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_SQL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_EXCEPTION:
		case ERRCODE_EXTERNAL_ROUTINE_INVOCATION_EXCEPTION:
		case ERRCODE_WITH_CHECK_OPTION_VIOLATION:
		case ERRCODE_PLPGSQL_ERROR:
			return true;
		default:
			return false;
	}
}

/* A message's format with "..." in the place of each value; NULL when there is nothing else in it. */
static char *
without_values(const char *format)
{
	StringInfoData buf;
	bool		any = false;

	initStringInfo(&buf);
	for (const char *p = format; *p != '\0'; p++)
	{
		if (*p != '%')
		{
			any |= isalpha((unsigned char) *p);
			appendStringInfoChar(&buf, *p);
			continue;
		}
		p += 1 + strspn(p + 1, "0123456789$#-+ .*'lhzjtLq");
		if (*p == '\0')
			break;
		appendStringInfoString(&buf, *p == '%' ? "%" : "...");
	}
	return any ? buf.data : NULL;
}

/* Lines of a context that say where, and nothing of what was worked on. */
static char *
safe_context(const char *context)
{
	static const char *const beginnings[] = {"pipeline \"", "PL/pgSQL function ", "SQL function \"", "transform "};
	StringInfoData buf;

	if (context == NULL)
		return NULL;
	initStringInfo(&buf);
	for (const char *line = context; line != NULL;)
	{
		const char *end = strchr(line, '\n');
		int			len = end != NULL ? (int) (end - line) : (int) strlen(line);

		for (size_t i = 0; i < lengthof(beginnings); i++)
		{
			if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0)
				appendStringInfo(&buf, "%s%.*s", buf.len > 0 ? "\n" : "", len, line);
		}
		line = end != NULL ? end + 1 : NULL;
	}
	return buf.len > 0 ? buf.data : NULL;
}

/* Leave out what may be a row's value; say that it was, and which function threw the error. */
static void
hide_values(UtilErrorInfo *info, const ErrorData *edata)
{
	char	   *message = edata->message_id != NULL ? without_values(edata->message_id) : NULL;
	bool		is_text = message == NULL;	/* the whole message is somebody's own text */
	const char *function = info->context != NULL && strncmp(info->context, "pipeline \"", 10) != 0 ? info->context : NULL;

	info->message = is_text ? pstrdup("an expression, trigger or function of the target threw an error") : message;
	info->detail = psprintf("%s%s%.*s%s",
							is_text ? "Its text may hold values of rows, and is left out." : "Values of rows are left out.",
							function != NULL ? " It was thrown in " : "",
							function != NULL ? (int) strcspn(function, "\n") : 0, function != NULL ? function : "",
							function != NULL ? "." : "");
	info->hint = is_text || is_of_a_language(edata) ? NULL : info->hint;
}

UtilErrorInfo *
util_error_info_make(int sqlstate, char *message, char *detail, char *hint)
{
	UtilErrorInfo *info = palloc0(sizeof(UtilErrorInfo));

	info->sqlstate = sqlstate;
	info->message = message;
	info->detail = detail;
	info->hint = hint;
	return info;
}

/* The line of a context that names an expression of the option "transforms"; NULL when there is none. */
static char *
expression_of(const char *context)
{
	for (const char *line = context; line != NULL; line = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : NULL)
	{
		int			len = (int) strcspn(line, "\n");
		char	   *copy = pnstrdup(line, len);

		if (strncmp(copy, "transform ", 10) == 0 || strstr(copy, " of option \"transforms\"") != NULL)
			return copy;
	}
	return NULL;
}

UtilErrorInfo *
util_error_info_with_values(const ErrorData *edata)
{
	UtilErrorInfo *info = palloc0(sizeof(UtilErrorInfo));

	info->sqlstate = edata->sqlerrcode;
	info->message = pstrdup(edata->message ? edata->message : "unknown error");
	info->detail = edata->detail ? pstrdup(edata->detail) : NULL;
	info->hint = edata->hint ? pstrdup(edata->hint) : NULL;
	info->context = edata->context ? pstrdup(edata->context) : NULL;
	if (info->detail == NULL && expression_of(info->context) != NULL)
		info->detail = psprintf("It was thrown in %s.", expression_of(info->context));
	return info;
}

UtilErrorInfo *
util_error_info(const ErrorData *edata)
{
	UtilErrorInfo *info = util_error_info_with_values(edata);

	if (is_ours(edata))
		return info;
	info->context = safe_context(info->context);
	/* names of constraints may be told; "Key (id)=(5) already exists" and "Failing row contains ..." may not */
	if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
		info->detail = NULL;
	if (may_quote_values(edata))
		hide_values(info, edata);
	return info;
}

UtilErrorInfo *
util_error_info_of_data(MemoryContext cxt)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(cxt);
	edata = CopyErrorData();
	if (util_error_class(edata->sqlerrcode) != UTIL_ERROR_DATA)
		PG_RE_THROW();
	FlushErrorState();
	return util_error_info(edata);
}
