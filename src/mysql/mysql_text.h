/*-------------------------------------------------------------------------
 *
 * mysql_text.h
 *	  Reading a column by SELECT so that it gives the same cell as the binary log.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_TEXT_H
#define CDC_MYSQL_TEXT_H

#include "postgres.h"

#include "core/arena.h"
#include "core/table_def.h"
#include "mysql/mysql_server.h"

/*
 * Expression for the select list whose text mysql_text_to_cell understands, for
 * example CAST(`f` AS DOUBLE) for a FLOAT, whose plain text would be rounded.
 */
extern char *mysql_text_expression(const CdcColumnDef *column, MysqlFlavor flavor);

/* Text of that expression -> cell (value NULL: the NULL cell), canonical as core/cell.h says. */
extern CdcStatus mysql_text_to_cell(const CdcColumnDef *column, const char *value, uint32 len,
                                    CdcArena *arena, CdcCell *cell, CdcError *err);

/*
 * For keyset paging over a key column: expression to order by and to compare,
 * expression to select, and the literal that stands for a selected value in a
 * comparison ("order expression > literal") on the server. ENUM and SET page
 * by number, FLOAT and BIT by typed literals, character and binary strings by
 * their exact bytes in the column's own character set and collation.
 */
extern char *mysql_key_order_expression(const CdcColumnDef *column, MysqlFlavor flavor);
extern char *mysql_key_value_expression(const CdcColumnDef *column, MysqlFlavor flavor);
extern char *mysql_key_literal(const CdcColumnDef *column, MysqlFlavor flavor, const char *value,
                               uint32 len);

#endif /* CDC_MYSQL_TEXT_H */
