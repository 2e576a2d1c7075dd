/*-------------------------------------------------------------------------
 *
 * catalog_export.h
 *	  What is kept of an outgoing pipeline: its replication slot, and the
 *	  options that such a pipeline and its sinks have.
 *
 * NOTES
 *	  The slot's row is the pipeline's own account of it. The slot was told to
 *	  forget only what lies before confirmed_lsn, and the row says so before the
 *	  slot hears of it: a slot that stands behind that was moved, or dropped and
 *	  made anew, by somebody else.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_EXPORT_H
#define CDC_CATALOG_EXPORT_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "utils/timestamp.h"

#include "catalog/catalog.h"

/* Options of an outgoing pipeline, of a SERVER of each sink, and of a cdc_kafka USER MAPPING. */
extern const UtilOptionTable catalog_export_options;
extern const UtilOptionTable catalog_file_server_options;
extern const UtilOptionTable catalog_registry_server_options;	/* which the servers of all sinks have, too */
extern const UtilOptionTable catalog_registry_user_mapping_options;
extern const UtilOptionTable catalog_kafka_server_options;
extern const UtilOptionTable catalog_kafka_user_mapping_options;
extern const UtilOptionTable catalog_null_server_options;

/* Value of an option of an outgoing pipeline, as given or its default. */
extern int	catalog_export_int(const CatalogPipeline *pipeline, const char *name);
extern bool catalog_export_bool(const CatalogPipeline *pipeline, const char *name);
extern const char *catalog_export_text(const CatalogPipeline *pipeline, const char *name);

/* An option that the pipeline was given and that only a sink of cdc_kafka heeds, or NULL. */
extern const char *catalog_export_kafka_option(const CatalogPipeline *pipeline);

/* Does the pipeline want to hear what statements do to tables? */
extern bool catalog_export_hears_statements(const CatalogPipeline *pipeline);

/* Is that foreign data wrapper one of sinks, and what options do its servers have? NULL: it is none. */
extern const UtilOptionTable *catalog_sink_options(const char *wrapper);

typedef struct CatalogExport
{
	int32		pipeline_id;
	char	   *slot_name;
	char	   *system_identifier;	/* decimal digits */
	TimeLineID	timeline;
	XLogRecPtr	start_lsn;		/* changes of transactions that committed after it are decoded */
	XLogRecPtr	confirmed_lsn;
	XLogRecPtr	sink_lsn;		/* what the sink had when that was written; it never has less */
	bool		is_begun;		/* the sink was opened: from then on it holds a position */
	TimestampTz created_at;
	List	   *tables;			/* patterns under which all tables are known, char *; NIL: none yet */
	int32		last_chunk;		/* of the initial copy, counted in export_table; 0: none */
} CatalogExport;

/* NULL when the pipeline has no slot yet. */
extern CatalogExport *catalog_export_load(int32 pipeline_id);
extern void catalog_export_insert(const CatalogExport *state);

/* The slot may forget what lies before lsn, the sink is at sink_lsn, and the server is on that timeline. */
extern void catalog_export_confirm(int32 pipeline_id, XLogRecPtr lsn, XLogRecPtr sink_lsn, TimeLineID timeline);

/* The sink has been opened for the first time. */
extern void catalog_export_set_begun(int32 pipeline_id);

/* All tables of those patterns are known; chunks up to that one are counted in export_table. */
extern void catalog_export_set_tables(int32 pipeline_id, const List *tables);
extern void catalog_export_set_last_chunk(int32 pipeline_id, int32 chunk_no);

/* The name that the slot of a pipeline of this database has, palloc'd; and the pipeline's number of such a name, 0 when it is no name of ours. */
extern char *catalog_export_slot_name(Oid database, int32 pipeline_id);
extern int32 catalog_export_slot_pipeline(Oid database, const char *slot_name);

/* In catalog_schema_trigger.c. Let the event triggers fire, or not, as the pipelines that there are now want it. */
extern void catalog_schema_triggers_set(void);

/* Name of one that does not fire although it should; NULL: all do. */
extern const char *catalog_schema_trigger_silent(void);

#endif							/* CDC_CATALOG_EXPORT_H */
