/*-------------------------------------------------------------------------
 *
 * export_rights.h
 *	  May a pipeline's owner read what it ships?
 *
 * NOTES
 *	  The log has every column and every row of every table: who may not SELECT
 *	  them must not get them by a pipeline either. Decoding looks at catalogs as
 *	  they were at each change. Of changes that were made before the worker began,
 *	  rights that were there when it began count too, or a pipeline that stopped for
 *	  the lack of one could never go on, as the past does not change.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_RIGHTS_H
#define CDC_EXPORT_RIGHTS_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/bitmapset.h"
#include "utils/relcache.h"

#include "catalog/catalog.h"

typedef struct ExportRights ExportRights;

/* What may be read now. In a transaction; lives in CurrentMemoryContext. */
extern ExportRights *export_rights_load(const CatalogPipeline *pipeline);

/*
 * Throws when the owner may not read these columns (attribute numbers) of the relation. rights count for a change whose
 * transaction ended at lsn; NULL: only catalogs as they are seen do.
 */
extern void export_rights_check(const ExportRights *rights, XLogRecPtr lsn, const CatalogPipeline *pipeline, Relation relation,
								const Bitmapset *columns);

#endif							/* CDC_EXPORT_RIGHTS_H */
