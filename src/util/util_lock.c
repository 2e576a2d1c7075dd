/*-------------------------------------------------------------------------
 *
 * util_lock.c
 *	  Who is in the way of a lock.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/memutils.h"

#include "util/util_lock.h"
#include "util/util_spi.h"

char *
util_lock_holders(Oid relid)
{
	MemoryContext cxt = CurrentMemoryContext;
	char	   *pids = NULL;

	SPI_connect();
	util_spi_run(psprintf("SELECT pg_catalog.string_agg(DISTINCT pid::text, ', ') FROM pg_catalog.pg_locks "
						  "WHERE locktype = 'relation' AND relation = %u AND granted AND pid <> pg_catalog.pg_backend_pid() "
						  "AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())",
						  relid));
	if (SPI_processed == 1)
		pids = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (pids != NULL)
		pids = MemoryContextStrdup(cxt, pids);
	SPI_finish();
	return pids;
}
