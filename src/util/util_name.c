/*-------------------------------------------------------------------------
 *
 * util_name.c
 *	  Names that are longer than PostgreSQL's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "mb/pg_wchar.h"

#include "util/util_name.h"

/* "_" and eight digits */
#define HASH_LENGTH 9

bool
util_name_is_long(const char *name)
{
	return strlen(name) >= NAMEDATALEN;
}

char *
util_name_with_hash(const char *name, const char *seed)
{
	int			length = pg_mbcliplen(name, (int) strlen(name), NAMEDATALEN - 1 - HASH_LENGTH);

	return psprintf("%.*s_%08x", length, name,
					DatumGetUInt32(hash_any((const unsigned char *) seed, (int) strlen(seed))));
}
