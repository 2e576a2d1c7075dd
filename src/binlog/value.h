/*-------------------------------------------------------------------------
 *
 * value.h
 *	  Column values of a row event -> cells.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_BINLOG_VALUE_H
#define CDC_BINLOG_VALUE_H

#include "core/event.h"

/*
 * How long a column's value is: "fixed" bytes, or, when "prefix" is not 0, as
 * many as a little-endian number of that many bytes before it says.
 */
typedef struct BinlogFieldShape
{
	uint16_t fixed;
	uint8_t prefix;
	bool known; /* false: rows of the table cannot be split */
} BinlogFieldShape;

/* wire_meta as binlog/table_map.c describes it. */
extern BinlogFieldShape binlog_field_shape(uint8_t wire_type, uint16_t wire_meta);

/*
 * The CdcFieldToCell of every change from the binary log. wire_type, wire_meta
 * and collation of the column tell how the bytes are written, "type" what they
 * mean where the log does not know: JSON, UUID, INET4, INET6 and VECTOR columns
 * of MariaDB look like LONGTEXT, BINARY and VARBINARY in the log, and a caller
 * that knows better passes a column with the true type.
 */
extern CdcStatus binlog_field_to_cell(const CdcColumnDef *column, const CdcField *field,
                                      CdcArena *arena, CdcCell *cell, CdcError *err);

#endif /* CDC_BINLOG_VALUE_H */
