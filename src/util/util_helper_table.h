/*-------------------------------------------------------------------------
 *
 * util_helper_table.h
 *	  Tables that tools make for a while, to change others that are in use.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_HELPER_TABLE_H
#define CDC_UTIL_HELPER_TABLE_H

#include "postgres.h"

#include "nodes/pg_list.h"

/*
 * Of which tables could one of that name be a helper? List of char *, palloc'd; NIL when the name is not like those that
 * gh-ost, pt-online-schema-change and spirit give. It is one only if there is such a table in the same schema.
 */
extern List *util_helper_table_bases(const char *name);

#endif							/* CDC_UTIL_HELPER_TABLE_H */
