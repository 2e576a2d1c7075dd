/*-------------------------------------------------------------------------
 *
 * util_fingerprint.c
 *	  What tells this server from a copy of it.
 *
 * NOTES
 *	  A base backup has the system identifier of its original, a file system
 *	  snapshot that is started elsewhere its timeline too. Two of them cannot use
 *	  one data directory of one host at a time.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"

#include "util/util_fingerprint.h"

char *
util_fingerprint(void)
{
	char		host[HOST_NAME_MAX + 1] = "";

	(void) gethostname(host, HOST_NAME_MAX);
	/* in recovery the timeline is not ours yet; nothing that runs then depends on it */
	return psprintf(UINT64_FORMAT "/%u/%s:%s", GetSystemIdentifier(),
					RecoveryInProgress() ? 0 : GetWALInsertionTimeLine(), host, DataDir);
}
