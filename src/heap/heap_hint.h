/*-------------------------------------------------------------------------
 *
 * heap_hint.h
 *	  What helps when a target cannot be altered.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HEAP_HINT_H
#define CDC_HEAP_HINT_H

#include "postgres.h"

/* For the error of a statement that altered a target, when PostgreSQL gives no hint; NULL: nothing that is known here. */
extern char *heap_ddl_hint(Oid relid, int sqlstate);

#endif							/* CDC_HEAP_HINT_H */
