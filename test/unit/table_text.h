/*-------------------------------------------------------------------------
 *
 * table_text.h
 *	  Definition of a table as text: for the unit tests, and to compare with
 *	  what a server says.
 *
 * NOTES
 *	  One line each for columns, indexes and foreign keys; what is not there is left out:
 *
 *	  column id int(11) int not-null auto_increment key=1 from=0
 *	  column s varchar(10) varchar length=10 default 'x' comment 'y' new
 *	  index i BTREE unique (a, s(3), desc b)
 *	  foreign f (a) parent db.p (x) delete=1 update=2
 *	  table engine=InnoDB comment='c' key=1 primary
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_TABLE_TEXT_H
#define CDC_TEST_TABLE_TEXT_H

#include "core/buf.h"
#include "core/table_def.h"

/* origin: where each column comes from, or NULL */
extern void table_text_add(CdcBuf *out, const CdcTableDef *def, const int *origin);

#endif							/* CDC_TEST_TABLE_TEXT_H */
