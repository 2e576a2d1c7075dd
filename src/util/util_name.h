/*-------------------------------------------------------------------------
 *
 * util_name.h
 *	  Names that are longer than PostgreSQL's.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_NAME_H
#define CDC_UTIL_NAME_H

#include "postgres.h"

/* Is a name too long for an identifier? */
extern bool util_name_is_long(const char *name);

/*
 * A name of at most 63 bytes, palloc'd: the beginning of this one, cut between two characters, and a hash of seed, which is what
 * makes it another name than those that begin alike.
 */
extern char *util_name_with_hash(const char *name, const char *seed);

#endif							/* CDC_UTIL_NAME_H */
