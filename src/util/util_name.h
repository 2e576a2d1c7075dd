/*-------------------------------------------------------------------------
 *
 * util_name.h
 *	  Names that are longer than PostgreSQL's; lists of names.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_NAME_H
#define CDC_UTIL_NAME_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* Is a name too long for an identifier? */
extern bool util_name_is_long(const char *name);

/*
 * A name of at most 63 bytes, palloc'd: the beginning of this one, cut between two characters, and a hash of seed, which is what
 * makes it another name than those that begin alike.
 */
extern char *util_name_with_hash(const char *name, const char *seed);

/* A name of the source, in UTF-8, in the database's encoding; palloc'd. */
extern char *util_name_of_source(const char *utf8);

/* The other way round: a name of ours as the source has it, in UTF-8; palloc'd. */
extern char *util_name_to_source(const char *name);

/* Is a name in a List of char *? */
extern bool util_name_in(const List *names, const char *name);

/* A List of char * as text[]. */
extern Datum util_text_array(const List *list);

#endif							/* CDC_UTIL_NAME_H */
