/*-------------------------------------------------------------------------
 *
 * buf.h
 *	  Growing output buffer over a CdcAllocator, with a sticky error.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_BUF_H
#define CDC_CORE_BUF_H

#include "core/arena.h"

typedef struct CdcBuf
{
	const CdcAllocator *allocator;
	char	   *data;			/* always NUL-terminated once something was added */
	size_t		len;			/* bytes used, without the NUL */
	size_t		cap;
	size_t		limit;			/* len never passes this; 0 means no limit */
	CdcStatus	status;			/* CDC_OK, CDC_NOMEM or CDC_LIMIT; sticky */
} CdcBuf;

extern void cdc_buf_init(CdcBuf *buf, const CdcAllocator *allocator, size_t limit);
extern void cdc_buf_reset(CdcBuf *buf);		/* empty, memory kept, error cleared */
extern void cdc_buf_free(CdcBuf *buf);
extern void cdc_buf_add(CdcBuf *buf, const void *data, size_t len);
extern void cdc_buf_add_str(CdcBuf *buf, const char *str);
extern void cdc_buf_add_char(CdcBuf *buf, char c);
extern void cdc_buf_printf(CdcBuf *buf, const char *fmt, ...) CDC_PRINTF(2, 3);

#endif							/* CDC_CORE_BUF_H */
