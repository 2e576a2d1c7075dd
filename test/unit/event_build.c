/*-------------------------------------------------------------------------
 *
 * event_build.c
 *	  Events made by the tests.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "event_build.h"

#include <string.h>
#include <zlib.h>

#include "binlog/wire.h"

void
put_int(CdcBuf *buf, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		cdc_buf_add_char(buf, (char) (value >> (8 * i)));
}

void
put_hex(CdcBuf *buf, const char *hex)
{
	int high = -1;

	for (; *hex != '\0'; hex++)
	{
		int v;

		if (*hex == ' ')
			continue;
		v = *hex <= '9' ? *hex - '0' : (*hex | 0x20) - 'a' + 10;
		if (high < 0)
			high = v;
		else
		{
			cdc_buf_add_char(buf, (char) (high << 4 | v));
			high = -1;
		}
	}
}

void
build_event(CdcBuf *out, uint8_t type, uint16_t flags, uint32_t next_pos, const void *body,
            size_t len, bool checksum)
{
	cdc_buf_reset(out);
	put_int(out, 1700000000, 4);
	put_int(out, type, 1);
	put_int(out, 7, 4);
	put_int(out, EVENT_HEADER_LEN + len + (checksum ? EVENT_CHECKSUM_LEN : 0), 4);
	put_int(out, next_pos, 4);
	put_int(out, flags, 2);
	cdc_buf_add(out, body, len);
	if (checksum)
		put_int(out, crc32_z(crc32(0, NULL, 0), (const Bytef *) out->data, out->len), 4);
}

void
build_format(CdcBuf *out, bool mariadb, bool checksum, uint32_t next_pos)
{
	CdcBuf body;
	char version[50] = "9.7.4";
	int ntypes = mariadb ? 171 : 42;

	cdc_buf_init(&body, &cdc_malloc_allocator, 0);
	if (mariadb)
		strcpy(version, "10.11.19-MariaDB");
	put_int(&body, 4, 2);
	cdc_buf_add(&body, version, sizeof(version));
	put_int(&body, 0, 4);
	put_int(&body, EVENT_HEADER_LEN, 1);
	for (int i = 0; i < ntypes; i++)
		put_int(&body, 8, 1);
	put_int(&body, checksum, 1);
	if (!checksum)
		put_int(&body, 0, 4);
	build_event(out, EV_FORMAT_DESCRIPTION, 0, next_pos, body.data, body.len, checksum);
	cdc_buf_free(&body);
}

void
build_table_map_body(CdcBuf *out, uint64_t table_id, const char *types, const char *meta,
                     const char *optional)
{
	size_t ncolumns = strlen(types) / 2;

	cdc_buf_reset(out);
	put_int(out, table_id, 6);
	put_int(out, 1, 2);
	put_hex(out, "017300 017400");
	put_int(out, ncolumns, 1);
	put_hex(out, types);
	put_int(out, strlen(meta) / 2, 1);
	put_hex(out, meta);
	for (size_t i = 0; i < (ncolumns + 7) / 8; i++)
		put_int(out, 0xff, 1);
	put_hex(out, optional);
}
