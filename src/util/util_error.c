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
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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

UtilErrorInfo *
util_error_info(const ErrorData *edata)
{
	UtilErrorInfo *info = palloc0(sizeof(UtilErrorInfo));

	info->sqlstate = edata->sqlerrcode;
	info->message = pstrdup(edata->message ? edata->message : "unknown error");
	info->detail = edata->detail ? pstrdup(edata->detail) : NULL;
	info->hint = edata->hint ? pstrdup(edata->hint) : NULL;
	info->context = edata->context ? pstrdup(edata->context) : NULL;
	return info;
}
