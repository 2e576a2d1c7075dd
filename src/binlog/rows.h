/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  Rows events: header, then one row at a time.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_ROWS_H
#define CDC_BINLOG_ROWS_H

#include "binlog/reader.h"
#include "binlog/table_map.h"
#include "core/cursor.h"

typedef struct BinlogRowsState
{
	BinlogTable *table;
	CdcChangeOp op;
	bool partial;
	bool cascades_logged;
	CdcCursor rows;                /* what is left */
	const uint8_t *before_columns; /* bitmaps of the columns in the images; NULL without image */
	const uint8_t *after_columns;
	uint32_t nbefore; /* bits set in them */
	uint32_t nafter;
	CdcField *before; /* one array per image, used for every row */
	CdcField *after;
} BinlogRowsState;

/* Is this one of the rows events? */
extern bool binlog_is_rows_event(uint8_t type_code);

/*
 * Begin a rows event. Fills *rows for the caller; state->table stays NULL for
 * the event that only ends a statement. id_len is the size of the table id.
 */
extern CdcStatus binlog_rows_begin(BinlogRowsState *state, uint8_t type_code, const uint8_t *body,
                                   size_t len, int id_len, BinlogTableCache *tables,
                                   CdcArena *arena, BinlogRows *rows, CdcError *err);

/* The next row, or CDC_END. */
extern CdcStatus binlog_rows_next(BinlogRowsState *state, CdcChange *change, CdcError *err);

#endif /* CDC_BINLOG_ROWS_H */
