/*-------------------------------------------------------------------------
 *
 * util_gtid.c
 *	  GTID sets for callers that throw instead of returning errors.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "util/util_error.h"
#include "util/util_gtid.h"

CdcGtidSet *
util_gtid_set_create(CdcGtidKind kind, const CdcAllocator *allocator)
{
	CdcGtidSet *set = cdc_gtid_set_create(kind, allocator);

	if (set == NULL)
		util_throw_out_of_memory();
	return set;
}

void
util_gtid_set_add_text(CdcGtidSet *set, const char *gtids)
{
	CdcError	err = {0};

	if (cdc_gtid_set_add_text(set, gtids, strlen(gtids), &err) != CDC_OK)
		util_throw(&err, "could not read set of global transaction ids");
}
