/*-------------------------------------------------------------------------
 *
 * catalog_shadow.h
 *	  Relations that a new copy of a table goes into.
 *
 * NOTES
 *	  A shadow goes with the table that it is made for (an automatic dependency).
 *	  It is no member of the extension: a member that is dropped with its schema
 *	  would take the extension along.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_SHADOW_H
#define CDC_CATALOG_SHADOW_H

#include "postgres.h"

#include "util/util_error.h"

/* Let a shadow go with the table that it is made for. */
extern void catalog_shadow_depend(Oid shadow, Oid table);

/* Drop a shadow, if it is there. */
extern void catalog_shadow_drop(Oid shadow);

/*
 * An error that came up while a table was copied anew names the shadow, which
 * nobody knows: let it name the table. In an open transaction, with a snapshot.
 */
extern void catalog_shadow_name_table(int32 pipeline_id, int32 table_id, UtilErrorInfo *error);

#endif							/* CDC_CATALOG_SHADOW_H */
