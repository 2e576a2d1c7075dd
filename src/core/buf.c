/*-------------------------------------------------------------------------
 *
 * buf.c
 *	  Growing output buffer with a sticky error.
 *
 * NOTES
 *	  A CdcAllocator has no realloc, so growing allocates twice the size, copies
 *	  and frees. After an error every addition is a no-op; the caller looks at
 *	  "status" once at the end.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/buf.h"

#include <stdio.h>
#include <string.h>

void
cdc_buf_init(CdcBuf *buf, const CdcAllocator *allocator, size_t limit)
{
	buf->allocator = allocator;
	buf->data = NULL;
	buf->len = 0;
	buf->cap = 0;
	buf->limit = limit;
	buf->status = CDC_OK;
}

void
cdc_buf_reset(CdcBuf *buf)
{
	buf->len = 0;
	buf->status = CDC_OK;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

void
cdc_buf_free(CdcBuf *buf)
{
	if (buf->data != NULL)
		buf->allocator->free(buf->allocator->ctx, buf->data);
	cdc_buf_init(buf, buf->allocator, buf->limit);
}

/* Make room for len more bytes and a NUL; sets the sticky error when it cannot. */
static bool
buf_reserve(CdcBuf *buf, size_t len)
{
	size_t need;
	size_t cap;
	char *data;

	if (buf->status != CDC_OK)
		return false;
	if (len > SIZE_MAX / 4 - buf->len ||
	    (buf->limit != 0 && (buf->len > buf->limit || len > buf->limit - buf->len)))
	{
		buf->status = CDC_LIMIT;
		return false;
	}
	need = buf->len + len + 1;
	if (need <= buf->cap)
		return true;
	cap = buf->cap < 64 ? 64 : buf->cap * 2;
	if (buf->limit != 0 && cap > buf->limit + 1)
		cap = buf->limit + 1;
	if (cap < need)
		cap = need;
	data = buf->allocator->alloc(buf->allocator->ctx, cap);
	if (data == NULL)
	{
		buf->status = CDC_NOMEM;
		return false;
	}
	if (buf->data != NULL)
	{
		memcpy(data, buf->data, buf->len);
		buf->allocator->free(buf->allocator->ctx, buf->data);
	}
	buf->data = data;
	buf->cap = cap;
	return true;
}

void
cdc_buf_add(CdcBuf *buf, const void *data, size_t len)
{
	if (!buf_reserve(buf, len))
		return;
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void
cdc_buf_add_str(CdcBuf *buf, const char *str)
{
	cdc_buf_add(buf, str, strlen(str));
}

void
cdc_buf_add_char(CdcBuf *buf, char c)
{
	if (buf->status == CDC_OK && buf->len + 1 < buf->cap &&
	    (buf->limit == 0 || buf->len < buf->limit))
	{
		buf->data[buf->len++] = c;
		buf->data[buf->len] = '\0';
		return;
	}
	cdc_buf_add(buf, &c, 1);
}

void
cdc_buf_printf(CdcBuf *buf, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0 || !buf_reserve(buf, (size_t) len))
		return;
	va_start(args, fmt);
	vsnprintf(buf->data + buf->len, (size_t) len + 1, fmt, args);
	va_end(args);
	buf->len += (size_t) len;
}
