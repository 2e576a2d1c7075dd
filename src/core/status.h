/*-------------------------------------------------------------------------
 *
 * status.h
 *	  Status codes and error values of the plain-C rungs.
 *
 * NOTES
 *	  Below the line that includes postgres.h nothing throws. A function that
 *	  can fail returns a CdcStatus and fills the caller's CdcError. The backend
 *	  turns a code into a SQLSTATE in one place, util/util_error.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_STATUS_H
#define CDC_CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum CdcStatus
{
	CDC_OK = 0,
	CDC_END,					/* nothing more for now; not an error */
	CDC_TRUNCATED,				/* input ends inside a value */
	CDC_MALFORMED,				/* input contradicts its own format */
	CDC_CHECKSUM,				/* checksum does not match */
	CDC_UNSUPPORTED,			/* well formed, but nothing here can read it */
	CDC_NOMEM,					/* the allocator said no */
	CDC_LIMIT					/* a size or depth limit was passed */
} CdcStatus;

typedef struct CdcError
{
	CdcStatus	code;
	uint64_t	offset;			/* byte in the input where it was noticed */
	char		text[256];		/* one line of UTF-8, never a row's value */
} CdcError;

#if defined(__GNUC__)
#define CDC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CDC_PRINTF(f, a)
#endif

/* Fill err (which may be NULL) and return code, so that a caller can "return cdc_fail(...)". */
extern CdcStatus cdc_fail(CdcError *err, CdcStatus code, uint64_t offset, const char *fmt, ...) CDC_PRINTF(4, 5);

/* Name of a code, for messages and tests: "truncated", "malformed", ... */
extern const char *cdc_status_name(CdcStatus code);

#endif							/* CDC_CORE_STATUS_H */
