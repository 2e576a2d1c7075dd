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

void
source_start_check_identity(const MysqlEndpoint *endpoint, const MysqlServerInfo *info, const CdcSourceStart *start)
{
	if (start->identity == NULL || strcmp(start->identity, info->identity) == 0)
		return;
	ereport(ERROR,
			(errcode(CDC_ERRCODE_SOURCE_REPLACED),
			 errmsg("source server \"%s\" is not the server that was followed", endpoint->server_name),
			 errdetail("The position belongs to server \"%s\"; server \"%s\" answers.",
					   start->identity, info->identity),
			 errhint("Let the address lead to the former server again, "
					 "or drop the pipeline with cdc_drop_pipeline() and start it anew.")));
}

/* Is the file of the position still there? Says it better than the server's refusal. */
static void
check_position(MysqlSession *session, const CdcPosition *position)
{
	char	   *oldest = NULL;
	bool		found = false;
	char		text[CDC_POSITION_TEXT_MAX];
	MysqlRow	row;

	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
	{
		const char *file = row.values[0] ? row.values[0] : "";

		if (oldest == NULL)
			oldest = pstrdup(file);
		if (strcmp(file, position->file) == 0)
			found = true;
	}
	if (found)
		return;
	cdc_position_format(position, text);
	ereport(ERROR,
			(errcode(CDC_ERRCODE_POSITION_LOST),
			 errmsg("source server \"%s\" no longer has the wanted position", mysql_session_server_name(session)),
			 errdetail("Wanted %s; the oldest binary log is %s.", text, oldest ? oldest : "not there"),
			 errhint("If the position was set with cdc_set_position(), set another one. "
					 "Else drop the target tables, and use cdc_drop_pipeline() and cdc_start_pipeline() to begin anew.")));
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

/* One GTID of MariaDB in a list, for mariadb_connect_state. */
typedef struct DomainState
{
	uint32		domain;
	uint32		server;
	uint64		sequence;
} DomainState;

/*
 * MariaDB wants the last GTID of each domain. Ours may hold one per domain and
 * server; in a domain the sequence only grows, so the highest is the last.
 */
static char *
mariadb_connect_state(const char *gtids)
{
	List	   *states = NIL;
	StringInfoData buf;
	ListCell   *lc;

	for (const char *p = gtids; *p != '\0';)
	{
		DomainState state;
		DomainState *known = NULL;
		unsigned long long sequence;
		int			used = 0;

		if (sscanf(p, " %u-%u-%llu%n", &state.domain, &state.server, &sequence, &used) != 3)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read the set of applied GTIDs")));
		state.sequence = sequence;
		foreach(lc, states)
		{
			if (((DomainState *) lfirst(lc))->domain == state.domain)
				known = lfirst(lc);
		}
		if (known == NULL)
		{
			known = palloc(sizeof(DomainState));
			*known = state;
			states = lappend(states, known);
		}
		else if (known->sequence < state.sequence)
			*known = state;
		p += used;
		p += strspn(p, ", \r\n\t");
	}
	initStringInfo(&buf);
	foreach(lc, states)
	{
		DomainState *state = lfirst(lc);

		appendStringInfo(&buf, "%s%u-%u-" UINT64_FORMAT, buf.len > 0 ? "," : "",
						 state->domain, state->server, state->sequence);
	}
	return buf.data;
}

/*
 * Decide between position and GTIDs and fill that part of the dump. When it is
 * GTIDs, *quiet_below becomes the end of the log now: positions below it do not
 * stand for what we have.
 */
void
source_start_plan(MysqlSession *session, const MysqlServerInfo *info, const CdcSourceStart *start,
				  MysqlDump *dump, CdcPosition *quiet_below)
{
	const char *gtids = start->gtids ? start->gtids : "";
	char		text[CDC_POSITION_TEXT_MAX];

	dump->is_mariadb = info->flavor == MYSQL_FLAVOR_MARIADB;
	if (cdc_position_is_known(&start->position))
	{
		check_position(session, &start->position);
		if (start->position.offset <= DUMP_OFFSET_MAX)
		{
			dump->from = start->position;
			return;
		}
		if (gtids[0] == '\0')
		{
			cdc_position_format(&start->position, text);
			ereport(ERROR,
					(errcode(CDC_ERRCODE_POSITION_LOST),
					 errmsg("cannot go on in source server \"%s\" at an offset above 4 GiB without GTIDs",
							mysql_session_server_name(session)),
					 errdetail("Wanted %s; the protocol's offset has 32 bits.", text)));
		}
	}
	mysql_server_log_position(session, info, quiet_below);
	if (dump->is_mariadb)
		dump->gtid_state = mariadb_connect_state(gtids);
	else
		encode_gtid_set(gtids, dump);
}
