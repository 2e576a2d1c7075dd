/*-------------------------------------------------------------------------
 *
 * apply_versioned.c
 *	  Changes of system-versioned tables (MariaDB).
 *
 * NOTES
 *	  Such a table keeps the former versions of its rows beside the current
 *	  ones. A SELECT shows what is current, and that is what is copied and
 *	  mirrored; the log shows both (seen on MariaDB 10.11):
 *
 *	  INSERT	a row whose end is the end of time
 *	  UPDATE	the row, then an INSERT of its former version, which is over
 *	  DELETE	an update that sets the row's end to now
 *	  DELETE HISTORY	deletes of versions that are over
 *
 *	  So an update to a version that is over is a delete, and what begins
 *	  and ends with versions that are over is none of ours. The row's end is in
 *	  the column def->row_end, which the table may have declared or not. In the
 *	  key that the log tells it stands too; ours is without it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "apply/apply_private.h"

/* The ends of time: of 32-bit seconds, signed (up to MariaDB 11.4) and unsigned, with six digits. */
#define END_OF_TIME_SIGNED INT64CONST(2147483647999999)
#define END_OF_TIME_UNSIGNED INT64CONST(4294967295999999)

/* Does a version with that row end still count? */
static bool
is_current(Apply *apply, const ApplyTable *table, const CdcChange *change, const CdcField *image)
{
	const CdcField *field = &image[table->row_end];
	CdcCell		cell;
	CdcError	err = {0};

	/* an image that leaves it out leaves it unchanged */
	if (field->state == CDC_FIELD_ABSENT && image == change->after && change->before != NULL)
		field = &change->before[table->row_end];
	if (field->state == CDC_FIELD_VALUE &&
		change->cell(&change->table->columns[table->row_end], field, &apply->arena, &cell, &err) == CDC_OK)
	{
		if (cell.kind == CDC_CELL_TIMESTAMP)
			return cell.v.epoch_us == END_OF_TIME_SIGNED || cell.v.epoch_us == END_OF_TIME_UNSIGNED;
		if (cell.kind == CDC_CELL_UINT)
			return cell.v.u == PG_UINT64_MAX;
	}
	ereport(ERROR,
			(errcode(CDC_ERRCODE_UNSUPPORTED_EVENT),
			 errmsg("row event of source table \"%s.%s\" does not tell whether its row is current", table->schema, table->name),
			 errdetail("The table is system-versioned; column \"%s\" says where a row's version ends.", table->def->row_end),
			 errhint("Run SET GLOBAL binlog_row_image = FULL on the source and reconnect its clients. " APPLY_HINT_ANEW)));
}

/*
 * Make of a change of versions what it is for the current rows. False when it is
 * nothing.
 */
bool
apply_versioned_change(Apply *apply, const ApplyTable *table, CdcChange *change)
{
	bool		before = change->op != CDC_INSERT && is_current(apply, table, change, change->before);
	bool		after = change->op != CDC_DELETE && is_current(apply, table, change, change->after);

	if (!before && !after)
		return false;
	change->op = !before ? CDC_INSERT : !after ? CDC_DELETE : CDC_UPDATE;
	return true;
}
