/*-------------------------------------------------------------------------
 *
 * export_slot.h
 *	  Replication slots of outgoing pipelines, when no worker reads them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_SLOT_H
#define CDC_EXPORT_SLOT_H

#include "postgres.h"
#include "nodes/pg_list.h"

typedef enum ExportSlotsNeed
{
	EXPORT_SLOTS_NOTHING,
	EXPORT_SLOTS_WATCH,			/* one has a limit that it may come to */
	EXPORT_SLOTS_SOON			/* one that is to go is still read */
} ExportSlotsNeed;

/*
 * Of this database: drop the slots of pipelines that are gone, and give up those that hold back more of the log than their
 * pipeline's option slot_max_mb allows. pipelines: List of CatalogPipeline *, all that there are. For the manager, outside a
 * transaction; returns what is still to be done.
 */
extern ExportSlotsNeed export_slots_look_after(const List *pipelines);

#endif							/* CDC_EXPORT_SLOT_H */
