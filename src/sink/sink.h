/*-------------------------------------------------------------------------
 *
 * sink.h
 *	  Interface of a sink of changes.
 *
 * NOTES
 *	  Calls arrive as
 *
 *		open take ((begin (write | schema_change)* commit) | write | flush)* close
 *
 *	  where a write outside a transaction is a MESSAGE that is not transactional,
 *	  or belongs to a chunk of an initial copy: a READ, or the TRUNCATE before a
 *	  copy that begins anew; or to a chunk of dead letters that are shipped again:
 *	  then it is a change of any op. No flush comes in the middle of a chunk.
 *	  Transactions come whole and in the order of their commits; a record lives
 *	  until the call returns. A sink is used by one worker process only. All
 *	  callbacks are required, all but close may throw; after that only close is
 *	  called. Memory of the sink belongs to the context that was current when it
 *	  was opened.
 *
 *	  Exactly once: a sink keeps the position of what it holds beside it, so that
 *	  one cannot be there without the other, and open says which position that is.
 *	  What comes again after a restart is left out by who calls (transactions that
 *	  end at or before the position). Nothing counts as arrived before flush has
 *	  said so. What open finds may be another pipeline's, that writes just now, or
 *	  be damaged: it only looks, and at most keeps an earlier process of the same
 *	  pipeline from writing on. Who calls judges what it says before take changes
 *	  anything.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SINK_H
#define CDC_SINK_H

#include "postgres.h"
#include "access/xlogdefs.h"
#include "nodes/pg_list.h"

#include "catalog/catalog_export.h"
#include "core/outgoing.h"
#include "format/format.h"

/* Longest text of a system identifier, with its NUL. */
#define CDC_SYSTEM_IDENTIFIER_MAX 24

/* Up to where a sink has everything. */
typedef struct CdcSinkPosition
{
	char		system_identifier[CDC_SYSTEM_IDENTIFIER_MAX];	/* of the server that the positions belong to */
	char		slot[NAMEDATALEN];	/* and the slot that they were decoded from */
	XLogRecPtr	lsn;			/* transactions, and messages outside of them, that end at or before it */
	int32		chunk;			/* chunks of initial copies up to this number; 0: none */
} CdcSinkPosition;

/* What a sink is opened with; lives as long as the sink. */
typedef struct CdcSinkTarget
{
	const CatalogPipeline *pipeline;
	const char *server_name;
	List	   *options;		/* of the SERVER, DefElem */
	List	   *secrets;		/* of the owner's USER MAPPING, DefElem; not for who only prepares */
	CdcSinkPosition start;		/* what a sink that holds nothing yet begins with */
} CdcSinkTarget;

typedef struct CdcSink CdcSink;
typedef struct CdcSinkPreparer CdcSinkPreparer;

typedef struct CdcSinkOps
{
	const char *wrapper;		/* foreign data wrapper of its servers */

	/* Say what is there, and change nothing: found false means that it holds nothing. */
	CdcSink    *(*open) (const CdcSinkTarget *target, bool *found, CdcSinkPosition *position);

	/* It is ours: get ready to write, with what was not flushed removed and what was made durable. */
	void		(*take) (CdcSink *sink);

	void		(*begin) (CdcSink *sink, const CdcRecord *begin);
	void		(*write) (CdcSink *sink, const CdcRecord *record);

	/* A table has another definition from here on: rows that follow have that form. */
	void		(*schema_change) (CdcSink *sink, const CdcRecord *record);
	void		(*commit) (CdcSink *sink, const CdcRecord *commit);

	/* Between transactions: make all that was committed durable, together with that position. */
	void		(*flush) (CdcSink *sink, const CdcSinkPosition *position);

	void		(*close) (CdcSink *sink);

	/*
	 * Rows of a copy may be written down in other processes than the one that has the sink open: there prepare appends what write would, and
	 * here that is written as it comes, many rows at a time, in any pieces. Nothing of the sink is touched there.
	 */
	void		(*prepare_open) (CdcSinkPreparer *preparer, const CdcSinkTarget *target);
	void		(*prepare) (CdcSinkPreparer *preparer, const CdcRecord *record, CdcBuf *out);
	void		(*write_prepared) (CdcSink *sink, const char *data, size_t len);
} CdcSinkOps;

struct CdcSink
{
	const CdcSinkOps *ops;
	bool		keeps_position; /* what flush was told is there after a restart */
	bool		in_transaction;
	bool		may_split;		/* no rows of a copy are on their way: a transaction may arrive in parts, if what was sent of it is known */
	uint64		bytes;			/* written since it was opened; for who decides when to flush */
};

struct CdcSinkPreparer
{
	const CdcSinkOps *ops;
	CdcFormat  *format;			/* NULL: nothing is written */
	struct SinkShape *shape;	/* of sinks that write messages */
};

extern CdcSink *cdc_sink_open(const char *wrapper, const CdcSinkTarget *target, bool *found, CdcSinkPosition *position);

/* For another process than that which opens the sink. Lives in CurrentMemoryContext. */
extern CdcSinkPreparer *cdc_sink_preparer(const char *wrapper, const CdcSinkTarget *target);

static inline void
cdc_sink_prepare(CdcSinkPreparer *preparer, const CdcRecord *record, CdcBuf *out)
{
	Assert(record->of_copy);
	preparer->ops->prepare(preparer, record, out);
}

static inline void
cdc_sink_write_prepared(CdcSink *sink, const char *data, size_t len)
{
	Assert(!sink->in_transaction);
	sink->ops->write_prepared(sink, data, len);
}

static inline void
cdc_sink_take(CdcSink *sink)
{
	sink->ops->take(sink);
}

static inline void
cdc_sink_begin(CdcSink *sink, const CdcRecord *record)
{
	Assert(!sink->in_transaction);
	sink->in_transaction = true;
	sink->ops->begin(sink, record);
}

static inline void
cdc_sink_write(CdcSink *sink, const CdcRecord *record)
{
	Assert(sink->in_transaction || record->txn == NULL);
	sink->ops->write(sink, record);
}

static inline void
cdc_sink_schema_change(CdcSink *sink, const CdcRecord *record)
{
	Assert(sink->in_transaction && record->kind == CDC_RECORD_SCHEMA);
	sink->ops->schema_change(sink, record);
}

static inline void
cdc_sink_commit(CdcSink *sink, const CdcRecord *record)
{
	Assert(sink->in_transaction);
	sink->ops->commit(sink, record);
	sink->in_transaction = false;
}

static inline void
cdc_sink_flush(CdcSink *sink, const CdcSinkPosition *position)
{
	Assert(!sink->in_transaction);
	sink->ops->flush(sink, position);
}

static inline void
cdc_sink_close(CdcSink *sink)
{
	sink->ops->close(sink);
}

/* For the sinks that write documents: the format that the pipeline's options ask for, in CurrentMemoryContext. */
extern CdcFormat *sink_format(const CdcSinkTarget *target);

/* Append what the pipeline's options want of a record; false when that is nothing. Throws when it cannot be written. */
extern bool sink_add_document(CdcFormat *format, const CdcRecord *record, CdcBuf *out);

/*
 * Before the first document of a record, and its key, in a format whose schemas have numbers: have a registry tell those that are not known yet.
 * topic: where it goes; NULL: the sink has no topics. Throws when the registry does not.
 */
extern void sink_complete_schemas(CdcFormat *format, const CdcRecord *record, const char *topic);

/* Begin anew with a buffer of documents; it does not stay as large as the largest of them. */
extern void sink_empty_buffer(CdcBuf *out);

/* Value of an option of the SERVER, or NULL. */
extern const char *sink_option(const CdcSinkTarget *target, const char *name);

/* in the file of each sink */
extern const CdcSinkOps sink_file_ops;
extern const CdcSinkOps sink_kafka_ops;
extern const CdcSinkOps sink_null_ops;

#endif							/* CDC_SINK_H */
