/*-------------------------------------------------------------------------
 *
 * verify_source.c
 *	  Reading a source table: pages of rows in key order, sums of them, single
 *	  rows by key.
 *
 * NOTES
 *	  One session, one short SELECT at a time, no transaction open at the source
 *	  between two of them. The memory of a page is bounded as in the snapshot:
 *	  reading stops after PAGE_MAX_BYTES, and the last complete row then bounds
 *	  the page.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "mysql/mysql_sum.h"
#include "mysql/mysql_text.h"
#include "verify/verify_private.h"

/* Most bytes of row text in memory, in a page and in a round of settling. */
#define PAGE_MAX_BYTES (8 * 1024 * 1024)

/* Suspects that one query asks for. */
#define SUSPECTS_PER_QUERY 100

/* Connect if there is no connection; it must be the server that the stream reads from. */
void
verify_source_open(Verify *verify)
{
	MemoryContext old;

	if (verify->session != NULL)
		return;

	MemoryContextReset(verify->session_cxt);
	old = MemoryContextSwitchTo(verify->session_cxt);
	verify->session = mysql_server_open(verify->endpoint, verify->identity, &verify->info);
	MemoryContextSwitchTo(old);
}

/* Every answer to a query for rows has as many fields as we asked for. */
static void
check_fields(Verify *verify, const MysqlRow *row, int wanted)
{
	const VerifyWork *work = verify->work;

	if (row->nfields == wanted)
		return;
	mysql_session_drain(verify->session);
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("the source answered with other columns of table \"%s.%s\" than were asked for",
					work->def->schema, work->def->name)));
}

/* A key from a row's values, in the current context. */
static ChunkKey *
make_key(const VerifyWork *work, const char *const *values, const uint32 *lengths)
{
	ChunkKey   *key = palloc0(sizeof(ChunkKey));

	key->nkey = work->nkey;
	key->values = palloc(sizeof(char *) * work->nkey);
	key->lengths = palloc(sizeof(uint32) * work->nkey);
	for (int i = 0; i < work->nkey; i++)
	{
		if (values[i] == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent a NULL in the key of table \"%s.%s\"",
							work->def->schema, work->def->name)));
		key->lengths[i] = lengths[i];
		key->values[i] = pnstrdup(values[i], lengths[i]);
	}
	return key;
}

ChunkKey *
verify_copy_key(MemoryContext cxt, const ChunkKey *key)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ChunkKey   *copy = palloc0(sizeof(ChunkKey));

	copy->nkey = key->nkey;
	copy->values = palloc(sizeof(char *) * key->nkey);
	copy->lengths = palloc(sizeof(uint32) * key->nkey);
	for (int i = 0; i < key->nkey; i++)
	{
		copy->lengths[i] = key->lengths[i];
		copy->values[i] = pnstrdup(key->values[i], key->lengths[i]);
	}
	MemoryContextSwitchTo(old);
	return copy;
}

VerifyPage *
verify_source_page(Verify *verify, const ChunkKey *upper, const bool *wanted, uint64 rows)
{
	VerifyWork *work = verify->work;
	VerifyPage *page = palloc0(sizeof(VerifyPage));
	int			nfields = (int) work->def->ncolumns + work->nkey;
	uint64		limit = Min(work->limit, rows);
	bool		cut = false;
	MysqlRow	row;

	page->rows = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(MysqlRow) * limit);
	mysql_session_query(verify->session,
						chunk_range_query(work->def, work->key, work->nkey, verify->info->flavor,
										  wanted, work->after, upper, limit));
	while (mysql_session_fetch(verify->session, &row))
	{
		check_fields(verify, &row, nfields);
		if ((uint64) page->nrows == limit)
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("the source sent more rows of table \"%s.%s\" than were asked for",
							work->def->schema, work->def->name)));
		page->bytes += mysql_row_copy(CurrentMemoryContext, &row, &page->rows[page->nrows++]);
		if (page->bytes >= PAGE_MAX_BYTES && (uint64) page->nrows < limit)
		{
			cut = true;
			break;
		}
	}
	if (cut)
		mysql_session_drain(verify->session);

	if (page->nrows > 0)
		work->row_bytes = page->bytes / page->nrows;
	page->is_last = !cut && (uint64) page->nrows < limit;
	if (page->nrows > 0)
	{
		const MysqlRow *last = &page->rows[page->nrows - 1];

		page->last = make_key(work, &last->values[work->def->ncolumns], &last->lengths[work->def->ncolumns]);
	}
	if (cut)
		work->limit = page->nrows;
	else if (page->bytes < PAGE_MAX_BYTES / 4 && limit == work->limit)
		work->limit = Min(work->limit * 2, verify->max_rows);
	return page;
}

ChunkKey *
verify_source_bound(Verify *verify, const ChunkKey *upper, uint64 rows)
{
	VerifyWork *work = verify->work;
	ChunkKey   *bound = NULL;
	MysqlRow	row;

	mysql_session_query(verify->session,
						chunk_bound_query(work->def, work->key, work->nkey, verify->info->flavor,
										  work->after, upper, rows));
	if (mysql_session_fetch(verify->session, &row))
	{
		check_fields(verify, &row, work->nkey);
		bound = make_key(work, row.values, row.lengths);
		mysql_session_drain(verify->session);
	}
	return bound;
}

void
verify_source_sum(Verify *verify, const ChunkKey *upper, int64 *rows, uint64 *sum)
{
	VerifyWork *work = verify->work;
	MysqlRow	row;
	uint64		count = 0;
	bool		ok = false;

	mysql_session_query(verify->session,
						chunk_sum_query(work->def, work->key, work->nkey, verify->info->flavor, work->number,
										work->after, upper));
	if (mysql_session_fetch(verify->session, &row))
	{
		check_fields(verify, &row, 2);
		ok = row.values[0] != NULL && mysql_sum_parse(row.values[0], &count) && mysql_sum_parse(row.values[1], sum);
		mysql_session_drain(verify->session);
	}
	if (!ok)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("the source sent no sum of rows of table \"%s.%s\"", work->def->schema, work->def->name)));
	*rows = (int64) count;
}

void
verify_source_all_begin(Verify *verify)
{
	mysql_session_query(verify->session, chunk_all_query(verify->work->def, verify->info->flavor));
}

VerifyPage *
verify_source_all_page(Verify *verify, int64 bytes)
{
	VerifyPage *page = palloc0(sizeof(VerifyPage));
	int			room = 1024;
	MysqlRow	row;

	mysql_session_let_go(verify->session);
	page->rows = palloc(sizeof(MysqlRow) * room);
	page->is_last = true;
	while (mysql_session_fetch(verify->session, &row))
	{
		check_fields(verify, &row, (int) verify->work->def->ncolumns);
		if (page->nrows == room)
		{
			room *= 2;
			page->rows = repalloc_huge(page->rows, sizeof(MysqlRow) * room);
		}
		page->bytes += mysql_row_copy(CurrentMemoryContext, &row, &page->rows[page->nrows++]);
		if (page->bytes >= bytes)
		{
			page->is_last = false;
			break;
		}
	}
	return page;
}

char *
verify_source_condition(const Verify *verify, const MysqlRow *row)
{
	const VerifyWork *work = verify->work;
	StringInfoData sql;

	initStringInfo(&sql);
	for (int i = 0; i < work->nkey; i++)
	{
		const CdcColumnDef *column = &work->def->columns[work->key[i]];
		int			field = (int) work->def->ncolumns + i;

		appendStringInfo(&sql, "%s%s = %s", i > 0 ? " AND " : "",
						 mysql_key_order_expression(column, verify->info->flavor),
						 mysql_key_literal(column, verify->info->flavor, row->values[field], row->lengths[field]));
	}
	return sql.data;
}

uint64
verify_source_row_hash(const VerifyWork *work, const MysqlRow *row)
{
	uint64		hash = 1;

	for (int i = 0; i < (int) work->def->ncolumns; i++)
	{
		hash = row->values[i] == NULL ? hash * 31 + 7
			: hash_bytes_extended((const unsigned char *) row->values[i], (int) row->lengths[i], hash);
	}
	return hash == 0 ? 1 : hash;
}

/* Keep a row that was given for one of the suspects first .. end - 1; returns its size. */
static Size
keep_answer(VerifyWork *work, const MysqlRow *row, int first, int end)
{
	VerifyAnswer *answer;

	if (work->nanswers == work->nsuspects)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("the source sent more rows of table \"%s.%s\" than were asked for",
						work->def->schema, work->def->name)));
	answer = &work->answers[work->nanswers++];
	answer->first = first;
	answer->end = end;
	return mysql_row_copy(work->round_cxt, row, &answer->row);
}

/* The SELECT for up to SUSPECTS_PER_QUERY suspects from *next on, which moves behind them; NULL when none is left. */
static char *
suspects_query(Verify *verify, int *next)
{
	VerifyWork *work = verify->work;
	MysqlFlavor flavor = verify->info->flavor;
	int			asked = 0;
	Size		bytes = 0;
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (uint32 i = 0; i < work->def->ncolumns; i++)
		appendStringInfo(&sql, "%s%s", i > 0 ? ", " : "", mysql_text_expression(&work->def->columns[i], flavor));
	for (int i = 0; i < work->nkey; i++)
		appendStringInfo(&sql, ", %s", mysql_key_value_expression(&work->def->columns[work->key[i]], flavor));
	appendStringInfo(&sql, " FROM %s WHERE ", work->source_name);
	for (; *next < work->nsuspects && asked < SUSPECTS_PER_QUERY && sql.len < 256 * 1024 && bytes < PAGE_MAX_BYTES; (*next)++)
	{
		VerifySuspect *suspect = &work->suspects[*next];

		if (suspect->is_settled)
			continue;
		appendStringInfo(&sql, "%s(%s)", asked > 0 ? " OR " : "", suspect->condition);
		suspect->was_asked = true;
		bytes += suspect->row_bytes;
		asked++;
	}
	return asked > 0 ? sql.data : NULL;
}

void
verify_source_suspects(Verify *verify)
{
	VerifyWork *work = verify->work;
	int			nfields = (int) work->def->ncolumns + work->nkey;
	Size		bytes = 0;
	int			next = 0;

	MemoryContextReset(work->round_cxt);
	work->answers = MemoryContextAlloc(work->round_cxt, sizeof(VerifyAnswer) * work->nsuspects);
	work->nanswers = 0;
	for (int i = 0; i < work->nsuspects; i++)
		work->suspects[i].was_asked = false;

	while (next < work->nsuspects && bytes < PAGE_MAX_BYTES)
	{
		int			first = next;
		char	   *sql = suspects_query(verify, &next);
		MysqlRow	row;

		if (sql == NULL)
			break;
		mysql_session_query(verify->session, sql);
		while (mysql_session_fetch(verify->session, &row))
		{
			check_fields(verify, &row, nfields);
			bytes += keep_answer(work, &row, first, next);
		}
		pfree(sql);
	}
}

int64
verify_source_count(Verify *verify)
{
	char	   *text = mysql_session_scalar(verify->session,
											psprintf("SELECT COUNT(*) FROM %s", verify->work->source_name));

	return text == NULL ? 0 : strtoll(text, NULL, 10);
}

bool
verify_source_shows(Verify *verify, const CatalogPosition *applied)
{
	CdcPosition mark;
	char	   *gtids;
	int			order;

	if (verify->info->flavor == MYSQL_FLAVOR_MYSQL && verify->info->gtid_on)
	{
		char	   *answer;

		if (applied->gtids == NULL || applied->gtids[0] == '\0')
			return true;
		answer = mysql_session_scalar(verify->session,
									  psprintf("SELECT GTID_SUBSET(%s, @@global.gtid_executed)",
											   mysql_quote_literal(applied->gtids, strlen(applied->gtids))));
		return answer != NULL && strcmp(answer, "1") == 0;
	}
	mysql_server_start_mark(verify->session, verify->info, &mark, &gtids);
	return cdc_position_is_known(&mark) && cdc_position_is_known(&applied->position) &&
		cdc_position_compare(&mark, &applied->position, &order) && order >= 0;
}
