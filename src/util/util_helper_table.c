/*-------------------------------------------------------------------------
 *
 * util_helper_table.c
 *	  Tables that tools make for a while, to change others that are in use.
 *
 * NOTES
 *	  Names for table t:
 *	  gh-ost	_t_gho (the new table), _t_ghc (its log), _t_del (the old one),
 *				_t_20260102030405_del
 *	  pt-osc	_t_new, _t_old; with more underscores in front when the name is taken
 *	  spirit	_t_new, _t_old, _t_chkpnt
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "util/util_helper_table.h"

static const char *const suffixes[] = {"_gho", "_ghc", "_del", "_new", "_old", "_chkpnt"};

/* pt-osc puts at most ten in front. */
#define MAX_UNDERSCORES 10

/* "_" and a time, 14 digits */
#define TIME_LENGTH 15

static bool
ends_with_time(const char *name, size_t len)
{
	if (len <= TIME_LENGTH || name[len - TIME_LENGTH] != '_')
		return false;
	for (size_t i = len - TIME_LENGTH + 1; i < len; i++)
	{
		if (name[i] < '0' || name[i] > '9')
			return false;
	}
	return true;
}

List *
util_helper_table_bases(const char *name)
{
	size_t		len = strlen(name);
	List	   *bases = NIL;

	if (name[0] != '_')
		return NIL;
	for (int i = 0; i < (int) lengthof(suffixes); i++)
	{
		size_t		suffix_len = strlen(suffixes[i]);
		size_t		end;

		if (len <= suffix_len || strcmp(name + len - suffix_len, suffixes[i]) != 0)
			continue;
		end = len - suffix_len;
		for (size_t start = 1; start < end && start <= MAX_UNDERSCORES && name[start - 1] == '_'; start++)
		{
			bases = lappend(bases, pnstrdup(name + start, end - start));
			if (ends_with_time(name + start, end - start))
				bases = lappend(bases, pnstrdup(name + start, end - start - TIME_LENGTH));
		}
	}
	return bases;
}
