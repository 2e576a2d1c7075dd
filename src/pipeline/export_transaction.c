/*-------------------------------------------------------------------------
 *
 * export_transaction.c
 *	  Transactions of today in a process that decodes the past.
 *
 * NOTES
 *	  Decoding fills the caches of relations and catalogs with what they were when
 *	  the log was written, and takes what it finds there for that. The news that
 *	  would correct an entry may have come long before the entry. So nothing
 *	  of either may be found by the other: the caches are emptied at both ends, as
 *	  the server does around its own functions that decode.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "pipeline/export_transaction.h"

void
export_transaction_begin(bool takes_snapshot)
{
	InvalidateSystemCaches();
	StartTransactionCommand();
	if (takes_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
}

void
export_transaction_end(bool durable, MemoryContext cxt)
{
	if (ActiveSnapshotSet())
		PopActiveSnapshot();
	if (durable)
		ForceSyncCommit();
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	InvalidateSystemCaches();
}
