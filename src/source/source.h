/*-------------------------------------------------------------------------
 *
 * source.h
 *	  Interface of a source of changes.
 *
 * NOTES
 *	  Calls arrive as: open (next* | ack)* close. check and require may be
 *	  called without open. A source is used by one worker process only. All callbacks are
 *	  required. open, next and check may throw; close must not. What next
 *	  returns lives until the following next. Memory of the source belongs to
 *	  the context that was current when it was made.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SOURCE_H
#define CDC_SOURCE_H

#include "postgres.h"
#include "nodes/pg_list.h"

#include "catalog/catalog.h"
#include "core/event.h"
#include "mysql/mysql_options.h"

typedef struct CdcSource CdcSource;

typedef enum CdcSourceResult
{
	CDC_SOURCE_EVENT,
	CDC_SOURCE_TIMEOUT,			/* nothing came, or nothing for the caller */
	CDC_SOURCE_AT_END			/* nothing came, and what the source had when the stream was opened has all been read */
} CdcSourceResult;

/* Where a stream starts: a position on the server "identity", or only GTIDs. */
typedef struct CdcSourceStart
{
	const char *identity;		/* server that position belongs to; NULL: not known yet */
	CdcPosition position;		/* may be unknown when gtids are there */
	const char *gtids;			/* text of what is already applied; NULL or "" when the source has none */
} CdcSourceStart;

/* One line of a check: status is "ok", "warning" or "error". */
typedef struct CdcCheckLine
{
	const char *check;			/* "binlog_format" */
	const char *status;
	const char *detail;
	const char *hint;			/* statement to paste, or NULL */
} CdcCheckLine;

extern CdcCheckLine *source_check_line(const char *check, const char *status, const char *detail, const char *hint);

typedef struct CdcSourceOps
{
	const char *name;

	/* Throw what open would throw of settings and privileges; needs no open, begins nothing. */
	void		(*require) (CdcSource *source);

	/*
	 * Connect, check that the server is the one of "start" (else
	 * CDC_ERRCODE_SOURCE_REPLACED) and can be followed
	 * (CDC_ERRCODE_SOURCE_SETTING), and open the stream.
	 */
	void		(*open) (CdcSource *source, const CdcSourceStart *start);

	/* Next event, waiting at most timeout_ms; 0 does not wait. */
	CdcSourceResult (*next) (CdcSource *source, int timeout_ms, CdcEvent *event);

	/* Everything up to position is durable here. */
	void		(*ack) (CdcSource *source, const CdcPosition *position);

	/* List of CdcCheckLine, in CurrentMemoryContext. */
	List	   *(*check) (CdcSource *source);

	void		(*close) (CdcSource *source);
} CdcSourceOps;

struct CdcSource
{
	const CdcSourceOps *ops;
};

static inline void
cdc_source_require(CdcSource *source)
{
	source->ops->require(source);
}

static inline void
cdc_source_open(CdcSource *source, const CdcSourceStart *start)
{
	source->ops->open(source, start);
}

static inline CdcSourceResult
cdc_source_next(CdcSource *source, int timeout_ms, CdcEvent *event)
{
	return source->ops->next(source, timeout_ms, event);
}

static inline void
cdc_source_ack(CdcSource *source, const CdcPosition *position)
{
	source->ops->ack(source, position);
}

static inline List *
cdc_source_check(CdcSource *source)
{
	return source->ops->check(source);
}

static inline void
cdc_source_close(CdcSource *source)
{
	source->ops->close(source);
}

/*
 * source_mysql.c: MySQL and MariaDB over the binary log. pipeline_id and the
 * database make the replica's server_id and uuid unique. want (with arg) says
 * whether the rows of a table are wanted; the others are skipped undecoded.
 */
typedef bool (*CdcSourceWant) (void *arg, const char *schema, const char *table);
extern CdcSource *source_mysql_create(const MysqlEndpoint *endpoint, int32 pipeline_id,
									  CdcSourceWant want, void *arg);

/*
 * source_gtids.c: when the position log has a position and no GTIDs, because somebody set it by file and offset, ask the
 * source which GTIDs belong to it and write them down. Call outside a transaction, before the stream is opened.
 */
extern void source_complete_gtids(const MysqlEndpoint *endpoint, CatalogPositionLog *log);

#endif							/* CDC_SOURCE_H */
