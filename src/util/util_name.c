/*-------------------------------------------------------------------------
 *
 * util_name.c
 *	  Names that are longer than PostgreSQL's; lists of names.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"

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

char *
util_name_of_source(const char *utf8)
{
	return pg_any_to_server(pstrdup(utf8), (int) strlen(utf8), PG_UTF8);
}

char *
util_name_to_source(const char *name)
{
	return pg_server_to_any(pstrdup(name), (int) strlen(name), PG_UTF8);
}

bool
util_name_in(const List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

Datum
util_text_array(const List *list)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(list_length(list), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, list)
		elems[n++] = CStringGetTextDatum((char *) lfirst(lc));
	return PointerGetDatum(construct_array(elems, n, TEXTOID, -1, false, TYPALIGN_INT));
}
