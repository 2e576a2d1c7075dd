/*-------------------------------------------------------------------------
 *
 * source_choose.c
 *	  Which of the servers behind a SERVER a pipeline goes on with, and where.
 *
 * NOTES
 *	  A position belongs to one server: file and offset mean nothing elsewhere.
 *	  As long as one of the hosts is that server, it is the one. When it is gone,
 *	  or another one answers at its address, the set of applied GTIDs says whether
 *	  that one can take its place: it must have all that is applied here, and its
 *	  log must still have all that is not. Then it sends just what we lack, and
 *	  nothing is lost or comes twice. In all other cases it is refused, with what
 *	  is missing; nothing is skipped by guess.
 *
 *	  A server that lacks something while it applies what its own source sends it
 *	  may come to have it: that one is asked again later. One that does not was
 *	  promoted without it, reset, or never was a part of the same replication.
 *
 *	  Copies of tables that are under way are tied to the server too; see
 *	  snapshot_move.c. So a server that is only restarted is waited for a while.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "source/source_check.h"
#include "source/source_choose.h"
#include "source/source_history.h"
#include "source/source_start.h"
#include "util/util_error.h"
#include "util/util_wait.h"

/* Pause between two looks for the server that was followed. */
#define LOOK_AGAIN_MS 500

/* What one host is good for. */
typedef struct Verdict
{
	int			host;
	char	   *identity;
	bool		is_followed;	/* it is the server of the position */
	bool		goes_on;		/* by its own position, or by GTIDs */
	int			sqlstate;		/* else why not: of class 08 when that may pass */
	char	   *why;			/* a sentence */
	CatalogMove	move;			/* where it would go on */
} Verdict;

/* A round over all hosts. */
typedef struct Round
{
	Verdict    *chosen;			/* the followed server, else the first that can take its place */
	Verdict    *refused;		/* the followed server, else the first that cannot, for good */
	Verdict    *lagging;		/* the first that cannot yet */
	List	   *errors;			/* ErrorData of those that were not reached */
	StringInfoData detail;		/* what each host that was reached says */
	int			nreached;
} Round;

static void
refuse(Verdict *verdict, int sqlstate, char *why)
{
	verdict->sqlstate = sqlstate;
	verdict->why = why;
}

/* Does the server's log go on where the set of GTIDs ends? */
static void
judge_gtids(Verdict *verdict, MysqlSession *session, const MysqlServerInfo *info, const char *gtids)
{
	char	   *missing = source_history_lacks(session, info, gtids);
	/* the server that was followed had it all, and does not get it again */
	SourceApplying applying = missing != NULL && !verdict->is_followed ? source_history_applying(session, info) : SOURCE_APPLYING_NO;

	if (applying == SOURCE_APPLYING_YES)
		refuse(verdict, ERRCODE_SQLSERVER_REJECTED_ESTABLISHMENT_OF_SQLCONNECTION,
			   psprintf("It does not have %s yet, which the pipeline has applied, and is applying what its own source sends.", missing));
	else if (applying == SOURCE_APPLYING_UNKNOWN)
		refuse(verdict, ERRCODE_SQLSERVER_REJECTED_ESTABLISHMENT_OF_SQLCONNECTION,
			   psprintf("It does not have %s, which the pipeline has applied, and the user %s may not ask whether that is still to come.",
						missing, mysql_session_account(session)));
	else if (missing != NULL)
		refuse(verdict, CDC_ERRCODE_SOURCE_REPLACED,
			   psprintf("It does not have %s, which the pipeline has applied.", missing));
	else if ((missing = source_history_purged(session, info, gtids)) != NULL)
		refuse(verdict, CDC_ERRCODE_POSITION_LOST,
			   psprintf("Its binary log no longer has %s, which the pipeline has not applied.", missing));
	else
		verdict->goes_on = true;
}

/* The server that was followed: is the position still in its log? */
static void
judge_followed(Verdict *verdict, MysqlSession *session, const MysqlServerInfo *info, const CatalogPosition *durable)
{
	char		text[CDC_POSITION_TEXT_MAX];
	char	   *oldest;

	if (cdc_position_is_known(&durable->position) && source_start_has_file(session, &durable->position, &oldest))
		verdict->goes_on = true;
	else if (durable->gtids[0] != '\0' && info->gtid_on)
		judge_gtids(verdict, session, info, durable->gtids);
	else if (!cdc_position_is_known(&durable->position))
		verdict->goes_on = true;	/* an empty set: from the beginning */
	if (verdict->goes_on || !cdc_position_is_known(&durable->position))
		return;

	cdc_position_format(&durable->position, text);
	refuse(verdict, verdict->sqlstate == CDC_ERRCODE_SOURCE_REPLACED ? verdict->sqlstate : CDC_ERRCODE_POSITION_LOST,
		   psprintf("Wanted %s; the oldest binary log is %s.%s%s", text, oldest ? oldest : "not there",
					verdict->why ? " " : "", verdict->why ? verdict->why : ""));
}

/* Another server: can it take the place of the one that was followed? */
static void
judge_other(Verdict *verdict, MysqlSession *session, const MysqlServerInfo *info, const CatalogPosition *durable)
{
	CdcGtidKind kind = durable->gtids[0] == '\0' ? CDC_GTID_NONE
		: strchr(durable->gtids, ':') != NULL ? CDC_GTID_MYSQL : CDC_GTID_MARIADB;

	if (kind == CDC_GTID_NONE)
		refuse(verdict, CDC_ERRCODE_SOURCE_REPLACED,
			   pstrdup("The position is a file and an offset of the former server's log, without GTIDs."));
	else if (kind != verdict->move.kind)
		refuse(verdict, CDC_ERRCODE_SOURCE_REPLACED,
			   psprintf("It does not write GTIDs like those of the position, %s.", durable->gtids));
	else
		judge_gtids(verdict, session, info, durable->gtids);
	verdict->move.gtids = pstrdup(durable->gtids);
	verdict->move.reason = psprintf("It followed server \"%s\". The new one has all transactions that are applied here.",
									durable->identity);
}

/* Where the tables would be copied anew from, when what lies between is given up. */
static void
plan_anew(Verdict *verdict, MysqlSession *session, const MysqlServerInfo *info)
{
	CatalogMove *move = &verdict->move;

	mysql_server_start_mark(session, info, &move->position, &move->gtids);
	if (move->gtids == NULL)
		move->gtids = pstrdup("");
	move->copy_all = true;
}

static Verdict *
judge(MysqlSession *session, int host, const CatalogPosition *durable)
{
	Verdict    *verdict = palloc0(sizeof(Verdict));
	const MysqlServerInfo *info = mysql_server_info(session);

	verdict->host = host;
	verdict->identity = pstrdup(info->identity);
	/* a position that was set for restored tables has no server yet: the first that is reached */
	verdict->is_followed = durable->identity[0] == '\0' || strcmp(info->identity, durable->identity) == 0;
	verdict->move.identity = verdict->identity;
	verdict->move.target = pstrdup(mysql_session_target(session));
	verdict->move.kind = info->flavor == MYSQL_FLAVOR_MARIADB ? CDC_GTID_MARIADB
		: info->gtid_on ? CDC_GTID_MYSQL : CDC_GTID_NONE;
	if (strcmp(durable->identity, CATALOG_ANY_SERVER) == 0)
	{
		plan_anew(verdict, session, info);
		verdict->goes_on = true;
		verdict->move.reason = pstrdup("Its position was set so that all tables are copied anew.");
	}
	else if (verdict->is_followed)
		judge_followed(verdict, session, info, durable);
	else
		judge_other(verdict, session, info, durable);
	return verdict;
}

/*
 * Settings and privileges without which a server cannot be followed: of one host the error itself, which has the statement
 * that mends it; of several a refusal that may pass.
 */
static void
judge_settings(Verdict *verdict, const MysqlEndpoint *endpoint, MysqlSession *session, int32 pipeline_id)
{
	MemoryContext cxt = CurrentMemoryContext;
	const MysqlServerInfo *info = mysql_server_info(session);
	SourceCheck check = {
		.session = session,
		.info = info,
		.our_server_id = source_start_server_id(endpoint, pipeline_id, info->server_id),
	};

	PG_TRY();
	{
		source_check_require(&check);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		if (geterrcode() != CDC_ERRCODE_SOURCE_SETTING || endpoint->nhosts == 1)
			PG_RE_THROW();
		MemoryContextSwitchTo(cxt);
		edata = CopyErrorData();
		FlushErrorState();
		verdict->goes_on = false;
		refuse(verdict, CDC_ERRCODE_SOURCE_SETTING,
			   psprintf("It cannot be followed. %s", edata->detail ? edata->detail : edata->message));
	}
	PG_END_TRY();
}

static void
note(Round *round, Verdict *verdict, const MysqlEndpoint *endpoint)
{
	if (verdict->goes_on)
	{
		if (round->chosen == NULL || verdict->is_followed)
			round->chosen = verdict;
		return;
	}
	appendStringInfo(&round->detail, "%s%s is server \"%s\". %s", round->detail.len > 0 ? " " : "",
					 mysql_host_text(endpoint, verdict->host), verdict->identity, verdict->why);
	if (util_error_class(verdict->sqlstate) != UTIL_ERROR_LOST)
	{
		if (round->lagging == NULL)
			round->lagging = verdict;
	}
	else if (round->refused == NULL || verdict->is_followed)
		round->refused = verdict;
}

/* Ask the hosts in turn, until one is the server that was followed. */
static void
ask_hosts(const MysqlEndpoint *endpoint, int32 pipeline_id, const CatalogPosition *durable, Round *round)
{
	memset(round, 0, sizeof(*round));
	initStringInfo(&round->detail);
	for (int i = 0; i < endpoint->nhosts; i++)
	{
		int			host = (endpoint->first + i) % endpoint->nhosts;
		ErrorData  *error;
		MysqlSession *session = mysql_session_try_host(endpoint, host, &error);
		Verdict    *verdict;

		if (session == NULL)
		{
			round->errors = lappend(round->errors, error);
			continue;
		}
		round->nreached++;
		verdict = judge(session, host, durable);
		if (verdict->goes_on && !verdict->is_followed)
			judge_settings(verdict, endpoint, session, pipeline_id);
		note(round, verdict, endpoint);
		mysql_session_close(session);
		if (verdict->is_followed && verdict->goes_on)
			break;
	}
}

static const char *
way_out_hint(const CatalogPipeline *pipeline)
{
	return psprintf("If the former server comes back, start the pipeline again. Else stop it and run SELECT cdc_set_position(%s, anew => true), "
					"or set its option \"on_position_lost\" to \"resync\": all tables are copied anew beside their rows.",
					quote_literal_cstr(pipeline->name));
}

/* No host goes on, and one at least was reached. */
static _Noreturn void
throw_refusal(const MysqlEndpoint *endpoint, const CatalogPipeline *pipeline, const CatalogPosition *durable, Round *round)
{
	const Verdict *verdict = round->refused != NULL && (round->lagging == NULL || round->refused->is_followed)
		? round->refused : round->lagging;
	ListCell   *lc;

	foreach(lc, round->errors)
	{
		const ErrorData *edata = lfirst(lc);

		appendStringInfo(&round->detail, " %s", edata->detail ? edata->detail : edata->message);
	}
	if (verdict->is_followed && endpoint->nhosts == 1)
		ereport(ERROR,
				(errcode(verdict->sqlstate),
				 verdict->sqlstate == CDC_ERRCODE_POSITION_LOST
				 ? errmsg("source server \"%s\" no longer has the wanted position", endpoint->server_name)
				 : errmsg("source server \"%s\" does not have the log that was followed", endpoint->server_name),
				 errdetail_internal("%s", verdict->why),
				 errhint("If the position was set with cdc_set_position(), set another one. %s", way_out_hint(pipeline))));
	if (verdict == round->lagging)
		ereport(ERROR,
				(errcode(verdict->sqlstate),
				 errmsg("source server \"%s\" cannot take the place of the one that was followed yet", endpoint->server_name),
				 errdetail_internal("The pipeline follows server \"%s\". %s", durable->identity, round->detail.data),
				 errhint("It is tried again. Let the source's user see the state of replication (MySQL: REPLICATION CLIENT, MariaDB: SLAVE MONITOR). %s",
						 way_out_hint(pipeline))));
	ereport(ERROR,
			(errcode(verdict->sqlstate),
			 errmsg("source server \"%s\" is not the server that was followed", endpoint->server_name),
			 errdetail_internal("The position belongs to server \"%s\". %s", durable->identity, round->detail.data),
			 errhint("%s", way_out_hint(pipeline))));
}

static bool
resyncs_when_lost(const CatalogPipeline *pipeline)
{
	const char *word = util_option_text(&catalog_pipeline_options, "on_position_lost",
										catalog_pipeline_option(pipeline, "on_position_lost"));

	return strcmp(word, "resync") == 0;
}

/* Turn to the server that cannot go on for good, and have all tables copied anew. */
static void
move_anew(MysqlEndpoint *endpoint, const Verdict *verdict, const char *detail, CatalogMove *move)
{
	MysqlServerInfo *info;
	MysqlSession *session = mysql_server_open(endpoint, verdict->identity, &info);
	Verdict		anew = *verdict;

	plan_anew(&anew, session, info);
	mysql_session_close(session);
	anew.move.reason = psprintf("%s Its option \"on_position_lost\" has all tables copied anew.", detail);
	endpoint->first = verdict->host;
	*move = anew.move;
}

bool
source_choose(MysqlEndpoint *endpoint, const CatalogPipeline *pipeline, const CatalogPosition *durable, CatalogMove *move)
{
	TimestampTz begun = GetCurrentTimestamp();
	Round		round;

	for (;;)
	{
		ask_hosts(endpoint, pipeline->id, durable, &round);
		if (round.nreached == 0)
			mysql_hosts_throw(endpoint, round.errors);
		/* may one that was not reached be the followed one, which is only away for a moment? */
		if ((round.chosen != NULL && round.chosen->is_followed) || round.errors == NIL ||
			strcmp(durable->identity, CATALOG_ANY_SERVER) == 0 ||
			TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), endpoint->failover_delay * 1000))
			break;
		(void) util_wait(PGINVALID_SOCKET, LOOK_AGAIN_MS, UTIL_WAIT_SOURCE_CONNECT);
	}

	if (round.chosen != NULL)
	{
		endpoint->first = round.chosen->host;
		*move = round.chosen->move;
		return !round.chosen->is_followed;
	}
	if (round.refused == NULL || round.lagging != NULL || !resyncs_when_lost(pipeline))
		throw_refusal(endpoint, pipeline, durable, &round);
	move_anew(endpoint, round.refused, round.detail.data, move);
	return true;
}

/* ---- for a check ---- */

/* How far the file of the position is from the end that the source removes files at. */
static void
check_file(MysqlSession *session, const CatalogPosition *durable, CdcCheckLine *line)
{
	char		text[CDC_POSITION_TEXT_MAX];
	char	   *retention;
	double		age = (double) (GetCurrentTimestamp() - durable->committed_at) / USECS_PER_SEC;
	double		kept;
	int			files = 0;
	int			found = 0;
	MysqlRow	row;

	mysql_session_query(session, "SHOW BINARY LOGS");
	while (mysql_session_fetch(session, &row))
	{
		files++;
		if (row.values[0] != NULL && strcmp(row.values[0], durable->position.file) == 0)
			found = files;
	}
	mysql_session_query(session, "SHOW GLOBAL VARIABLES LIKE 'binlog\\_expire\\_logs\\_seconds'");
	retention = NULL;
	while (mysql_session_fetch(session, &row))
		retention = row.nfields > 1 && row.values[1] != NULL ? pnstrdup(row.values[1], row.lengths[1]) : NULL;
	kept = retention != NULL ? strtod(retention, NULL) : 0;

	cdc_position_format(&durable->position, text);
	if (found == 0)
		line->detail = psprintf("The source no longer has the file of the position %s, but all GTIDs that are not applied.", text);
	else if (found == 1 && files > 1)
	{
		line->status = "warning";
		line->detail = psprintf("The position %s is in the oldest of the source's %d binary logs, which is the next to be removed.", text, files);
		line->hint = "Let the pipeline catch up soon, or keep the source's binary logs for longer (binlog_expire_logs_seconds).";
	}
	else if (kept > 0 && found < files && age > kept / 2)
	{
		line->status = "warning";
		line->detail = psprintf("The position %s is %.0f s old, and the source removes binary logs after %.0f s.", text, age, kept);
		line->hint = "Let the pipeline catch up soon, or keep the source's binary logs for longer (binlog_expire_logs_seconds).";
	}
	else
		line->detail = psprintf("The source has the position %s; %d older binary logs would be removed before its own.", text, found - 1);
}

List *
source_choose_check(const MysqlEndpoint *endpoint, const CatalogPipeline *pipeline, const CatalogPosition *durable)
{
	List	   *lines = NIL;

	for (int host = 0; host < endpoint->nhosts; host++)
	{
		ErrorData  *error;
		MysqlSession *session = mysql_session_try_host(endpoint, host, &error);
		CdcCheckLine *line = palloc0(sizeof(CdcCheckLine));
		Verdict    *verdict;

		lines = lappend(lines, line);
		line->check = "position";
		if (session == NULL)
		{
			line->status = "warning";
			line->detail = error->detail ? error->detail : error->message;
			line->hint = error->hint;
			continue;
		}
		verdict = judge(session, host, durable);
		line->status = verdict->goes_on ? "ok"
			: util_error_class(verdict->sqlstate) == UTIL_ERROR_LOST && (verdict->is_followed || endpoint->nhosts == 1) ? "error" : "warning";
		if (!verdict->goes_on)
		{
			line->detail = verdict->is_followed ? psprintf("The source no longer has the position. %s", verdict->why)
				: psprintf("The position belongs to server \"%s\"; %s is server \"%s\". %s", durable->identity,
						   mysql_host_text(endpoint, host), verdict->identity, verdict->why);
			line->hint = way_out_hint(pipeline);
		}
		else if (verdict->is_followed && cdc_position_is_known(&durable->position))
			check_file(session, durable, line);
		else if (verdict->is_followed)
			line->detail = psprintf("The source has all that is not in the position %s.", durable->gtids);
		else
			line->detail = psprintf("%s is server \"%s\", which can take the place of server \"%s\".",
									mysql_host_text(endpoint, host), verdict->identity, durable->identity);
		mysql_session_close(session);
	}
	return lines;
}
