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

bool
util_fingerprint_was_promoted(const char *before, const char *now)
{
	unsigned long long system[2];
	unsigned int timeline[2];

	return sscanf(before, "%llu/%u/", &system[0], &timeline[0]) == 2 &&
		sscanf(now, "%llu/%u/", &system[1], &timeline[1]) == 2 &&
		system[0] == system[1] && timeline[0] < timeline[1];
}
