/*-------------------------------------------------------------------------
 *
 * module.c
 *	  What happens when the library is loaded.
 *
 * NOTES
 *	  Loaded by shared_preload_libraries it reserves shared memory, installs the
 *	  utility hook and registers the launcher. Loaded later (CREATE EXTENSION on
 *	  a server without preload) it does nothing of this; functions that need it
 *	  say what to set.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "compat/pg_compat.h"
#include "pipeline/shmem.h"
#include "pipeline/worker.h"

CDC_MODULE_MAGIC("cdc_bridge", "0.1");

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;

	shmem_init();
	MarkGUCPrefixReserved("cdc_bridge");
	utility_hook_install();
	launcher_register();
}
