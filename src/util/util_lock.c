/*-------------------------------------------------------------------------
 *
 * util_lock.c
 *	  Locks on targets: who is in the way of one, and how long it is waited for.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/guc.h"
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

static void
set_lock_timeout(const char *value)
{
	(void) set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

void
util_lock_wait_briefly(void)
{
	set_lock_timeout(CppAsString2(UTIL_LOCK_TRY_MS));
}

void
util_lock_wait_long(void)
{
	set_lock_timeout("0");
}

bool
util_lock_is_missed(int sqlstate)
{
	return sqlstate == ERRCODE_LOCK_NOT_AVAILABLE || sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED;
}
