/*-------------------------------------------------------------------------
 *
 * util_error.h
 *	  Plain-C errors -> ereport, our own SQLSTATEs, and what class an error is.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_ERROR_H
#define CDC_UTIL_ERROR_H

#include "postgres.h"

#include "core/status.h"

/* SQLSTATE class YC: states that only a change data capture tool has. */
#define CDC_ERRCODE_POSITION_LOST		MAKE_SQLSTATE('Y','C','0','0','1')	/* source no longer has our position */
#define CDC_ERRCODE_SOURCE_REPLACED		MAKE_SQLSTATE('Y','C','0','0','2')	/* another server answers at the address */
#define CDC_ERRCODE_SOURCE_SETTING		MAKE_SQLSTATE('Y','C','0','0','3')	/* a setting or privilege of the source is missing */
#define CDC_ERRCODE_TABLE_CHANGED		MAKE_SQLSTATE('Y','C','0','0','4')	/* the source table changed its shape, was dropped, ... */
#define CDC_ERRCODE_UNSUPPORTED_EVENT	MAKE_SQLSTATE('Y','C','0','0','5')	/* XA, statement event, ... */
#define CDC_ERRCODE_NO_KEY				MAKE_SQLSTATE('Y','C','0','0','6')	/* table without a usable key */
#define CDC_ERRCODE_ROW_MISSING			MAKE_SQLSTATE('Y','C','0','0','7')	/* a partial change of a row that the target lacks */

typedef enum UtilErrorClass
{
	UTIL_ERROR_TRANSIENT,		/* try again soon: network, locks, resources */
	UTIL_ERROR_CONFIGURATION,	/* try again, slower: somebody has to mend a setting, a password, a grant */
	UTIL_ERROR_DATA,			/* will fail again: a row or a statement that cannot be applied */
	UTIL_ERROR_LOST				/* will fail for ever: position or source is gone */
} UtilErrorClass;

extern UtilErrorClass util_error_class(int sqlstate);

/* ereport(ERROR) for a plain-C error; "what" is the primary message ("could not decode binary log event"). */
extern _Noreturn void util_throw(const CdcError *err, const char *what);

/* For a plain-C call that got no memory and has no CdcError to tell of it. */
extern _Noreturn void util_throw_out_of_memory(void);

/* SQLSTATE for a plain-C status. */
extern int	util_sqlstate(CdcStatus code);

/* Copy of what an ErrorData says, in CurrentMemoryContext; strings may be NULL, message never is. */
typedef struct UtilErrorInfo
{
	int			sqlstate;
	char	   *message;
	char	   *detail;
	char	   *hint;
	char	   *context;
} UtilErrorInfo;

/* Of an error that was not thrown; texts are taken over as they are, and may be NULL but for the message. */
extern UtilErrorInfo *util_error_info_make(int sqlstate, char *message, char *detail, char *hint);

/* Without any value of a row, for the log and the views. */
extern UtilErrorInfo *util_error_info(const ErrorData *edata);

/* In a PG_CATCH: the same of the error that was caught, in cxt. One that is not about values is thrown on, as it is. */
extern UtilErrorInfo *util_error_info_of_data(MemoryContext cxt);

/* All that it says, for those who may see the rows. */
extern UtilErrorInfo *util_error_info_with_values(const ErrorData *edata);

#endif							/* CDC_UTIL_ERROR_H */
