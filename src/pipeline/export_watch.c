/*-------------------------------------------------------------------------
 *
 * export_watch.c
 *	  Is what an export worker began with still there?
 *
 * NOTES
 *	  The server's directory, the right to use it and publications are looked at when
 *	  a worker begins, and one may run for months. A publication that is gone publishes
 *	  nothing: without a look nobody would hear of it before the next start. Changes of the catalogs are heard of, also those that the
 *	  decoding comes by in the log: these may be old, so what counts is the comparison.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_publication.h"
#include "foreign/foreign.h"
#include "nodes/nodes.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "compat/pg_compat.h"
#include "pipeline/export_transaction.h"
#include "pipeline/export_watch.h"

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
export_watch_begin(void)
{
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, suspect, (Datum) 0);
	CacheRegisterSyscacheCallback(PUBLICATIONOID, suspect, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, suspect, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, suspect, (Datum) 0);
	/* what has changed before that was not heard of */
	is_suspect = true;
}

static bool
server_is_changed(const Worker *worker)
{
	const ForeignServer *server = GetForeignServerByName(worker->server->servername, true);

	return server == NULL || server->serverid != worker->server->serverid || !equal(server->options, worker->server->options) ||
		!cdc_foreign_server_usage(server->serverid, worker->owner);
}

static bool
publication_is_gone(const Worker *worker)
{
	char	   *text = catalog_pipeline_option(worker->pipeline, "publication_names");
	List	   *names = NIL;
	ListCell   *lc;

	if (text == NULL || !SplitIdentifierString(text, ',', &names))
		return false;
	foreach(lc, names)
	{
		if (!OidIsValid(get_publication_oid(lfirst(lc), true)))
			return true;
	}
	return false;
}

bool
export_watch_is_changed(const Worker *worker)
{
	bool		is_changed;

	/* nothing else may have read a catalog for long */
	AcceptInvalidationMessages();
	if (!is_suspect)
		return false;
	is_suspect = false;
	is_looking = true;
	export_transaction_begin(true);
	is_changed = server_is_changed(worker) || publication_is_gone(worker);
	export_transaction_end(false, worker->cxt);
	is_looking = false;
	return is_changed;
}
