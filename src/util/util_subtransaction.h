/*-------------------------------------------------------------------------
 *
 * util_subtransaction.h
 *	  Try something, and undo it when it fails.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_SUBTRANSACTION_H
#define CDC_UTIL_SUBTRANSACTION_H

#include "postgres.h"

typedef void (*UtilStep) (void *arg);

/*
 * Run step in a subtransaction, which begins and ends in the caller's memory context and resource owner. NULL, or the
 * error that undid it, in the caller's context: which ones may be told and which are to be thrown on (ReThrowError) is
 * the caller's to say. Without keep also a success is undone, with the locks that it took.
 */
extern ErrorData *util_subtransaction(UtilStep step, void *arg, bool keep);

#endif							/* CDC_UTIL_SUBTRANSACTION_H */
