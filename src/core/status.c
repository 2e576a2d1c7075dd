/*-------------------------------------------------------------------------
 *
 * status.c
 *	  Error values of the plain-C rungs.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/status.h"

#include <stdio.h>

#include "core/utf8.h"

CdcStatus
cdc_fail(CdcError *err, CdcStatus code, uint64_t offset, const char *fmt, ...)
{
	va_list args;

	if (err != NULL)
	{
		err->code = code;
		err->offset = offset;
		va_start(args, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, args);
		va_end(args);
		cdc_utf8_repair(err->text); /* names are a server's bytes, and may be cut inside a character */
	}
	return code;
}

const char *
cdc_status_name(CdcStatus code)
{
	switch (code)
	{
		case CDC_OK:
			return "ok";
		case CDC_END:
			return "end";
		case CDC_TRUNCATED:
			return "truncated";
		case CDC_MALFORMED:
			return "malformed";
		case CDC_CHECKSUM:
			return "checksum";
		case CDC_UNSUPPORTED:
			return "unsupported";
		case CDC_NOMEM:
			return "out of memory";
		case CDC_LIMIT:
			return "limit";
	}
	return "unknown";
}
