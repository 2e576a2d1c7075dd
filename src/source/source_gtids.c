/*-------------------------------------------------------------------------
 *
 * source_gtids.c
 *	  Which GTIDs are applied at a position that somebody gave as file and offset.
 *
 * NOTES
 *	  The position log keeps the set of applied GTIDs beside the position. When
 *	  the position was set by hand the set is empty; going on from GTIDs later
 *	  would then begin much too early. MariaDB tells the set of a position;
 *	  MySQL's files begin with the set of all GTIDs before them, and those that
 *	  follow in the file up to the position are added here.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/gtid.h"
#include "source/source_start.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_gtid.h"
#include "util/util_wait.h"

/* What SHOW BINLOG EVENTS says of a GTID event, before the GTID and its quote. */
#define GTID_NEXT "SET @@SESSION.GTID_NEXT= '"

/* Columns of SHOW BINLOG EVENTS. */
enum
{
	COLUMN_POS = 1,
	COLUMN_EVENT_TYPE = 2,
	COLUMN_INFO = 5
};

static bool
has_file(MysqlSession *session, const char *file)
{
	bool		found = false;
	MysqlRow	row;

	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
		found |= row.values[0] != NULL && strcmp(row.values[0], file) == 0;
	return found;
}

/* Add what one event of a MySQL file says, when it lies before the offset. */
static void
add_event(CdcGtidSet *set, const MysqlRow *row, uint64 offset)
{
	const char *type = row->values[COLUMN_EVENT_TYPE];
	const char *info = row->values[COLUMN_INFO];
	const char *end;

	if (row->values[COLUMN_POS] == NULL || type == NULL || info == NULL ||
		strtoull(row->values[COLUMN_POS], NULL, 10) >= offset)
		return;
	if (strcmp(type, "Previous_gtids") == 0)
	{
		if (info[0] != '\0')
			util_gtid_set_add_text(set, info);
		return;
	}
	if (strncmp(info, GTID_NEXT, strlen(GTID_NEXT)) != 0)
		return;
	info += strlen(GTID_NEXT);
	end = strchr(info, '\'');
	if (end != NULL && strchr(info, ':') != NULL && strchr(info, ':') < end)
		util_gtid_set_add_text(set, pnstrdup(info, end - info));
}

static char *
read_mysql(MysqlSession *session, const CdcPosition *position)
{
	const CdcAllocator *allocator = util_context_allocator(CurrentMemoryContext);
	CdcGtidSet *set = util_gtid_set_create(CDC_GTID_MYSQL, allocator);
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "cdc gtid row", ALLOCSET_DEFAULT_SIZES);
	CdcBuf		buf;
	MysqlRow	row;

	mysql_session_query(session, psprintf("SHOW BINLOG EVENTS IN %s",
										  mysql_quote_literal(position->file, strlen(position->file))));
	while (mysql_session_fetch(session, &row))
	{
		MemoryContext old = MemoryContextSwitchTo(row_cxt);

		util_check_interrupts();
		if (row.nfields > COLUMN_INFO)
			add_event(set, &row, position->offset);
		MemoryContextSwitchTo(old);
		MemoryContextReset(row_cxt);
	}
	MemoryContextDelete(row_cxt);
	cdc_buf_init(&buf, allocator, 0);
	cdc_gtid_set_format(set, &buf);
	if (buf.status != CDC_OK)
		util_throw_out_of_memory();
	return buf.data != NULL ? pstrdup(buf.data) : NULL;
}

/* NULL when the source cannot tell: the position is not in its log, or it writes no GTIDs. */
static char *
read_gtids(MysqlSession *session, const MysqlServerInfo *info, const CatalogPosition *current)
{
	const CdcPosition *position = &current->position;

	if (!info->gtid_on || strcmp(info->identity, current->identity) != 0 || !has_file(session, position->file))
		return NULL;
	if (info->flavor == MYSQL_FLAVOR_MYSQL)
		return read_mysql(session, position);
	return mysql_session_scalar(session, psprintf("SELECT BINLOG_GTID_POS(%s, " UINT64_FORMAT ")",
												  mysql_quote_literal(position->file, strlen(position->file)),
												  position->offset));
}

void
source_complete_gtids(const MysqlEndpoint *endpoint, CatalogPositionLog *log)
{
	const CatalogPosition *current = catalog_position_log_current(log);
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt;
	CatalogPosition known;
	MysqlSession *session;
	const MysqlServerInfo *info;
	char	   *gtids;

	if (current == NULL || current->gtids[0] != '\0' || !cdc_position_is_known(&current->position))
		return;

	cxt = AllocSetContextCreate(caller, "cdc complete gtids", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(cxt);
	known.identity = pstrdup(current->identity);
	known.position = current->position;
	session = mysql_session_open(endpoint); /* closed with cxt when something throws */
	info = mysql_server_info(session);
	gtids = read_gtids(session, info, &known);
	if (gtids != NULL && gtids[0] != '\0')
	{
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		catalog_position_log_start(log, known.identity,
								   info->flavor == MYSQL_FLAVOR_MARIADB ? CDC_GTID_MARIADB : CDC_GTID_MYSQL,
								   &known.position, gtids);
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	MemoryContextSwitchTo(cxt);
	mysql_session_close(session);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(cxt);
}
