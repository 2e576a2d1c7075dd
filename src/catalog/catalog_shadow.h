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

/* Let a shadow go with the table that it is made for. */
extern void catalog_shadow_depend(Oid shadow, Oid table);

/* Drop a shadow, if it is there. */
extern void catalog_shadow_drop(Oid shadow);

#endif							/* CDC_CATALOG_SHADOW_H */
