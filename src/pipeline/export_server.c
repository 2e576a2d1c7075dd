/*-------------------------------------------------------------------------
 *
 * export_server.c
 *	  Is the server of the sink still what the worker began with?
 *
 * NOTES
 *	  Directory and right to use it are looked at when a worker begins, and one may
 *	  run for months. Changes of the catalogs are heard of, also those that the
 *	  decoding comes by in the log: these may be old, so what counts is the comparison.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "foreign/foreign.h"
#include "nodes/nodes.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "compat/pg_compat.h"
#include "pipeline/export_server.h"
#include "pipeline/export_transaction.h"

static bool is_suspect = false;
static bool is_looking = false;

/* Hash 0 is said when all caches are emptied, which our own transactions do. */
static void
suspect(Datum arg, int cacheid, uint32 hash)
{
	if (hash != 0 || !is_looking)
		is_suspect = true;
}

void
export_server_watch(void)
{
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, suspect, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, suspect, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, suspect, (Datum) 0);
	/* what has changed before that was not heard of */
	is_suspect = true;
}

bool
export_server_is_changed(const Worker *worker)
{
	const ForeignServer *server;
	bool		is_changed;

	/* nothing else may have read a catalog for long */
	AcceptInvalidationMessages();
	if (!is_suspect)
		return false;
	is_suspect = false;
	is_looking = true;
	export_transaction_begin(true);
	server = GetForeignServerByName(worker->server->servername, true);
	is_changed = server == NULL || server->serverid != worker->server->serverid || !equal(server->options, worker->server->options) ||
		!cdc_foreign_server_usage(server->serverid, worker->owner);
	export_transaction_end(false, worker->cxt);
	is_looking = false;
	return is_changed;
}
