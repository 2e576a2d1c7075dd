/*-------------------------------------------------------------------------
 *
 * catalog_record_options.h
 *	  Options that say what is shipped and what a record looks like.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_RECORD_OPTIONS_H
#define CDC_CATALOG_RECORD_OPTIONS_H

#include "postgres.h"

#include "format/format.h"
#include "util/util_options.h"

/* Base of the tables of who has them. */
extern const UtilOptionTable catalog_record_options;

/* Text of an option as it was given and checked; NULL when it was not given. */
typedef const char *(*CatalogGivenOption) (void *arg, const char *name);

/*
 * The format that they name, and what they say of its documents; the database
 * is not among that, and the server's name is NULL when it was not given. Texts
 * are those that were given. Throws for options that do not go together.
 */
extern const CdcFormatOps *catalog_record_format(CatalogGivenOption given, void *arg, CdcFormatOptions *options);

#endif							/* CDC_CATALOG_RECORD_OPTIONS_H */
