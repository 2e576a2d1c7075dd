/*-------------------------------------------------------------------------
 *
 * api_export_hold.c
 *	  Which transaction keeps the slot of an outgoing pipeline from letting the
 *	  log go.
 *
 * NOTES
 *	  A slot keeps the log from where the oldest transaction began that ran when
 *	  it was last confirmed, in whatever database: only behind that one is it
 *	  known which transactions there are. A transaction that is open for long, or
 *	  prepared and forgotten, holds back the log of all slots.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "executor/spi.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/api.h"
#include "compat/pg_compat.h"

/* A younger one is not worth a word. */
#define LONG_MS 5000

/* Name of a prepared transaction and when it was prepared; false when there is none of that number. */
static bool
find_prepared(TransactionId xid, char **gid, TimestampTz *since)
{
	MemoryContext cxt = CurrentMemoryContext;
	char	   *query = psprintf("SELECT gid, prepared FROM pg_catalog.pg_prepared_xact()"
								 " WHERE transaction OPERATOR(pg_catalog.=) '%u'::pg_catalog.xid", xid);
	bool		found;
	bool		isnull;

	if (SPI_connect() != SPI_OK_CONNECT || SPI_execute(query, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read prepared transactions");
	found = SPI_processed == 1;
	if (found)
	{
		*gid = MemoryContextStrdup(cxt, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
		*since = DatumGetTimestampTz(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	return found;
}

char *
api_export_held_by(const DecodeSlot *slot, char **hint)
{
	TransactionId xid = slot->exists && slot->restart_lsn < slot->confirmed_lsn ? GetOldestActiveTransactionId() : InvalidTransactionId;
	int			pid = TransactionIdIsNormal(xid) ? BackendXidGetPid(xid) : 0;
	TimestampTz since = pid != 0 ? cdc_transaction_start(pid) : 0;
	char	   *gid = NULL;

	if (!TransactionIdIsNormal(xid) || (pid == 0 && !find_prepared(xid, &gid, &since)) ||
		since == 0 || !TimestampDifferenceExceeds(since, GetCurrentTimestamp(), LONG_MS))
		return NULL;
	if (gid != NULL)
	{
		*hint = psprintf("Run COMMIT PREPARED %s or ROLLBACK PREPARED %s in its database (pg_prepared_xacts).", quote_literal_cstr(gid), quote_literal_cstr(gid));
		return psprintf("prepared transaction %s (%u) of %s", quote_literal_cstr(gid), xid, timestamptz_to_str(since));
	}
	*hint = psprintf("See pg_stat_activity for process %d. SELECT pg_terminate_backend(%d) ends it.", pid, pid);
	return psprintf("transaction %u of process %d, open since %s", xid, pid, timestamptz_to_str(since));
}
