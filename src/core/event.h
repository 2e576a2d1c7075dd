/*-------------------------------------------------------------------------
 *
 * event.h
 *	  Changes and events: what every source hands to the apply side.
 *
 * NOTES
 *	  A transaction arrives as BEGIN (CHANGE | STATEMENT)* then one of COMMIT,
 *	  ROLLBACK or PREPARE. STATEMENT may also come outside a transaction (a
 *	  definition statement commits by itself). HEARTBEAT says that only the
 *	  position moved; it comes outside transactions only.
 *
 *	  Values are lazy: a change holds where each column's bytes are; "cell" turns
 *	  the ones that are wanted into cells. Everything in an event lives until
 *	  the next call for an event.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_EVENT_H
#define CDC_CORE_EVENT_H

#include "core/cell.h"
#include "core/gtid.h"
#include "core/position.h"
#include "core/table_def.h"

typedef enum CdcFieldState
{
	CDC_FIELD_ABSENT = 0,		/* not in the row image */
	CDC_FIELD_NULL,
	CDC_FIELD_VALUE,
	CDC_FIELD_PARTIAL			/* a difference to the value before (MySQL PARTIAL_JSON) */
} CdcFieldState;

typedef struct CdcField
{
	const uint8_t *data;
	uint32_t	len;
	CdcFieldState state;
} CdcField;

/* Turn a field in state VALUE or NULL into a cell; strings may point into the field or the arena. */
typedef CdcStatus (*CdcFieldToCell) (const CdcColumnDef *column, const CdcField *field,
									 CdcArena *arena, CdcCell *cell, CdcError *err);

typedef enum CdcChangeOp
{
	CDC_INSERT = 1,
	CDC_UPDATE,
	CDC_DELETE
} CdcChangeOp;

typedef struct CdcChange
{
	CdcChangeOp op;
	CdcTableDef *table;			/* as the source describes it at this change */
	const CdcField *before;		/* ncolumns fields; NULL for INSERT */
	const CdcField *after;		/* ncolumns fields; NULL for DELETE */
	CdcFieldToCell cell;
	bool		cascades_logged;	/* what foreign keys do because of it is in the log too, or they do nothing (checks are off) */
	uint32_t	bytes;			/* size of the row images on the wire */
	bool		by_mariadb;		/* the two servers leave different things out of images */
} CdcChange;

typedef struct CdcStatement
{
	const char *schema;			/* default schema of the session, "" when none */
	const char *text;			/* not NUL-terminated */
	size_t		len;
	uint64_t	sql_mode;		/* bits as the server numbers them; 0 when not told */
	bool		in_transaction;
	bool		of_session;		/* it uses what only its session has, as temporary tables */
	bool		by_mariadb;		/* the two servers read some texts in different ways */
} CdcStatement;

/*
 * Name of an XA transaction as the servers write it into their logs:
 * X'6731',X'6231',7. Both parts have at most 64 bytes.
 */
#define CDC_XID_TEXT_MAX 276

typedef enum CdcEventKind
{
	CDC_EVENT_BEGIN = 1,
	CDC_EVENT_CHANGE,
	CDC_EVENT_STATEMENT,
	CDC_EVENT_COMMIT,
	CDC_EVENT_ROLLBACK,			/* its changes never took effect (ROLLBACK text, or the log ends inside it) */
	CDC_EVENT_PREPARE,			/* XA: its changes take effect at a later XA COMMIT, if at all */
	CDC_EVENT_HEARTBEAT
} CdcEventKind;

typedef struct CdcEvent
{
	CdcEventKind kind;

	/*
	 * BEGIN: where the transaction starts. COMMIT, ROLLBACK, PREPARE, HEARTBEAT
	 * and STATEMENT outside a transaction: where to go on after it. Else unset.
	 */
	CdcPosition position;
	CdcPosition start;			/* STATEMENT outside a transaction: where it starts */
	CdcGtid		gtid;			/* BEGIN, and STATEMENT outside a transaction */
	bool		is_xa;			/* BEGIN: an XA transaction, which may end in PREPARE */
	int64_t		source_time_us; /* when the source wrote it, microseconds since 1970; 0 unknown */
	CdcChange	change;			/* CHANGE */
	CdcStatement statement;		/* STATEMENT */
	char		xid[CDC_XID_TEXT_MAX];	/* PREPARE */
} CdcEvent;

#endif							/* CDC_CORE_EVENT_H */
