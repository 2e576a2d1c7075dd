/*-------------------------------------------------------------------------
 *
 * source_start.c
 *	  Where and as whom a binary log dump of the MySQL family begins.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "core/gtid.h"
#include "source/source_history.h"
#include "source/source_start.h"
#include "util/util_arena.h"
#include "util/util_error.h"
#include "util/util_fingerprint.h"
#include "util/util_gtid.h"

/* Offsets above this do not fit into COM_BINLOG_DUMP. */
#define DUMP_OFFSET_MAX PG_UINT32_MAX

/*
 * Hash of everything that makes this pipeline's connection unique: a copy of
 * the cluster on another host or in another directory gets another number, so
 * it never throws the original off the source.
 */
static uint64
pipeline_hash(int32 pipeline_id, uint64 seed)
{
	char	   *text = psprintf("%s/%u/%d", util_fingerprint(), MyDatabaseId, pipeline_id);
	uint64		hash;

	hash = hash_bytes_extended((const unsigned char *) text, (int) strlen(text), seed);
	pfree(text);
	return hash;
}

/* A number far from those that people give to servers, never the source's own. */
uint32
source_start_server_id(const MysqlEndpoint *endpoint, int32 pipeline_id, uint32 source_server_id)
{
	uint32		id;

	if (endpoint->server_id != 0)
		return endpoint->server_id;
	id = UINT32_C(0x40000000) | (uint32) (pipeline_hash(pipeline_id, 0) & 0x3FFFFFFF);
	return id == source_server_id ? id ^ 1 : id;
}

char *
source_start_replica_uuid(int32 pipeline_id)
{
	uint64		a = pipeline_hash(pipeline_id, 1);
	uint64		b = pipeline_hash(pipeline_id, 2);

	/* version 8: made by a rule of our own */
	return psprintf("%08x-%04x-8%03x-%04x-%04x%08x",
					(uint32) (a >> 32), (uint32) (a >> 16) & 0xFFFF, (uint32) a & 0xFFF,
					0x8000 | ((uint32) (b >> 48) & 0x3FFF), (uint32) (b >> 32) & 0xFFFF, (uint32) b);
}

bool
source_start_has_file(MysqlSession *session, const CdcPosition *position, char **oldest)
{
	bool		found = false;
	MysqlRow	row;

	*oldest = NULL;
	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
	{
		const char *file = row.values[0] ? row.values[0] : "";

		if (*oldest == NULL)
			*oldest = pstrdup(file);
		found |= strcmp(file, position->file) == 0;
	}
	return found;
}

/* Name of the binary log file that follows on the server, palloc'd; NULL when there is none. */
char *
source_start_next_file(MysqlSession *session, const char *file)
{
	bool		found = false;
	char	   *next = NULL;
	MysqlRow	row;

	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
	{
		const char *name = row.values[0] ? row.values[0] : "";

		if (found && next == NULL)
			next = pstrdup(name);
		else if (strcmp(name, file) == 0)
			found = true;
	}
	return next;
}

/* Text of GTIDs -> what COM_BINLOG_DUMP_GTID wants. */
static void
encode_gtid_set(const char *gtids, MysqlDump *dump)
{
	const CdcAllocator *allocator = util_context_allocator(CurrentMemoryContext);
	CdcGtidSet *set = util_gtid_set_create(CDC_GTID_MYSQL, allocator);
	CdcBuf		buf;

	util_gtid_set_add_text(set, gtids);
	cdc_buf_init(&buf, allocator, 0);
	cdc_gtid_set_encode(set, &buf);
	if (buf.status != CDC_OK)
		util_throw_out_of_memory();
	dump->gtid_set = (const uint8 *) buf.data;
	dump->gtid_set_len = buf.len;
}

/*
 * Decide between position and GTIDs and fill that part of the dump. When it is
 * GTIDs, *quiet_below becomes the end of the log now: positions below it do not
 * stand for what we have. Without GTIDs an offset that the protocol has no bits
 * for is come to from the beginning of its file: *skip_to is where events count.
 */
void
source_start_plan(MysqlSession *session, const MysqlServerInfo *info, const CdcSourceStart *start,
				  MysqlDump *dump, CdcPosition *quiet_below, CdcPosition *skip_to)
{
	const char *gtids = start->gtids ? start->gtids : "";
	bool		known = cdc_position_is_known(&start->position);
	bool		found;
	char	   *oldest = NULL;
	char		text[CDC_POSITION_TEXT_MAX];

	dump->is_mariadb = info->flavor == MYSQL_FLAVOR_MARIADB;
	found = known && source_start_has_file(session, &start->position, &oldest);
	if (found && (start->position.offset <= DUMP_OFFSET_MAX || gtids[0] == '\0'))
	{
		dump->from = start->position;
		if (start->position.offset > DUMP_OFFSET_MAX)
		{
			*skip_to = start->position;
			dump->from.offset = SOURCE_FIRST_OFFSET;
		}
		return;
	}
	if (known && gtids[0] == '\0')
	{
		cdc_position_format(&start->position, text);
		ereport(ERROR,
				(errcode(CDC_ERRCODE_POSITION_LOST),
				 errmsg("source server \"%s\" no longer has the wanted position", mysql_session_server_name(session)),
				 errdetail("Wanted %s; the oldest binary log is %s.", text, oldest ? oldest : "not there"),
				 errhint("If the position was set with cdc_set_position(), set another one.")));
	}
	mysql_server_log_position(session, info, quiet_below);
	if (dump->is_mariadb)
		dump->gtid_state = source_history_domains(gtids);
	else
		encode_gtid_set(gtids, dump);
}
