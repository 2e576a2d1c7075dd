/*-------------------------------------------------------------------------
 *
 * verify_worker.c
 *	  The maintenance worker of a pipeline: works on requests of cdc_verify(),
 *	  then exits.
 *
 * NOTES
 *	  Started by the manager when a running pipeline has an open request. It
 *	  reads rows of the pipeline's tables and writes only results, so it has no
 *	  replication origin. A new one goes on where this one ended.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "pgstat.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pipeline/worker.h"
#include "verify/verify.h"

/* Keys of rows are shown, and asked for at the source, in one form whatever the owner's settings are. */
static void
pin_formats(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"DateStyle", "ISO, YMD"},
		{"IntervalStyle", "postgres"},
		{"TimeZone", "UTC"},
		{"extra_float_digits", "1"},
		{"bytea_output", "hex"},
	};

	for (size_t i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i].name, settings[i].value, PGC_USERSET, PGC_S_OVERRIDE);
}

static void
verify_run(Worker *worker)
{
	CatalogPosition *position = worker_position(worker);
	Verify	   *verify;

	if (position == NULL)
	{
		/* the ingest worker has not begun yet; the manager starts another one of us a little later */
		LWLockAcquire(shmem->lock, LW_EXCLUSIVE);
		worker->slot->workers[SHMEM_MAINTENANCE].retry_at =
			worker_retry_at(UTIL_ERROR_TRANSIENT, 1, GetCurrentTimestamp());
		LWLockRelease(shmem->lock);
		return;
	}

	pin_formats();
	MemoryContextSwitchTo(worker->cxt);
	pgstat_report_activity(STATE_RUNNING, psprintf("verification of pipeline %s", worker->pipeline->name));
	verify = verify_create(worker->pipeline, worker->endpoint, position->identity);
	while (verify_step(verify))
	{
		worker_check_interrupts();
		worker->slot->workers[SHMEM_MAINTENANCE].failures = 0;
	}
	verify_destroy(verify);
}

void
cdc_maintenance_main(Datum arg)
{
	worker_main(SHMEM_MAINTENANCE, verify_run);
}
