/*-------------------------------------------------------------------------
 *
 * table_draft.c
 *	  Begin and end of a draft: what the clauses that were collected come to.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/table_draft.h"

#include <string.h>

#include "core/utf8.h"

/* Sizes above this are none that a type has. */
#define MAX_SIZE UINT32_C(4294967295)

/* ---- what the readers share ---- */

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
}

/* Names of columns and indexes are compared without regard to case; here only to that of ASCII. */
bool
ddl_name_equals(const char *a, const char *b)
{
	for (; *a != '\0' && fold(*a) == fold(*b); a++, b++)
		;
	return *a == *b;
}

int
ddl_find_column(const CdcColumnDef *columns, uint32_t ncolumns, const char *name)
{
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		if (columns[i].name != NULL && ddl_name_equals(columns[i].name, name))
			return (int) i;
	}
	return -1;
}

/* Make room for one item behind the n that are there. */
bool
ddl_grow(DdlDraft *d, void **items, uint32_t n, uint32_t *allocated, size_t size)
{
	uint32_t	want = *allocated == 0 ? 4 : *allocated * 2;
	void	   *grown;

	if (n < *allocated)
		return true;
	grown = cdc_arena_alloc(d->p.arena, (size_t) want * size);
	if (grown == NULL)
	{
		d->p.nomem = true;
		return false;
	}
	if (n > 0)
		memcpy(grown, *items, (size_t) n * size);
	*items = grown;
	*allocated = want;
	return true;
}

/* Is that keyword the token behind the current one? */
bool
ddl_next_is(const DdlDraft *d, const char *keyword)
{
	DdlLexer	ahead = d->p.lexer;

	ddl_lexer_next(&ahead);
	return ddl_token_is(&ahead.token, keyword);
}

/* A name at the current token, or NULL. Character sets may stand in quotes, too. */
const char *
ddl_read_name(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	const char *name;
	size_t		len;

	(void) ddl_accept_sign(p, '=');
	if (ddl_current(p)->kind == DDL_TOKEN_STRING)
		name = ddl_token_string(&p->lexer, ddl_current(p), p->arena, &len);
	else if (ddl_at_name(p))
		name = ddl_token_copy(ddl_current(p), p->arena);
	else
		return NULL;
	if (name == NULL)
		p->nomem = true;
	ddl_advance(p);
	return name;
}

/* The name of a column; what may stand before it, its table and schema, does not matter. */
const char *
ddl_read_column_name(DdlDraft *d)
{
	DdlParser  *p = &d->p;
	const char *name;

	(void) ddl_accept_sign(p, '.');
	if (!ddl_at_name(p))
		return NULL;
	name = ddl_read_name(d);
	while (ddl_accept_sign(p, '.'))
		name = ddl_at_name(p) ? ddl_read_name(d) : NULL;
	return name;
}

/* A whole number; 0, and not certain, when there is none. */
uint32_t
ddl_read_size(DdlDraft *d, bool *given)
{
	const DdlToken *token = ddl_current(&d->p);
	uint64_t	number = 0;

	*given = false;
	if (token->kind != DDL_TOKEN_WORD || token->len == 0)
	{
		d->certain = false;
		return 0;
	}
	for (size_t i = 0; i < token->len; i++)
	{
		if (token->text[i] < '0' || token->text[i] > '9')
		{
			d->certain = false;
			number = 0;
			break;
		}
		number = number * 10 + (uint64_t) (token->text[i] - '0');
		if (number > MAX_SIZE)
			number = MAX_SIZE;
	}
	*given = true;
	ddl_advance(&d->p);
	return (uint32_t) number;
}

/* ---- begin ---- */

/*
 * The text with a question mark for each byte that is none of UTF-8, which is left where the client's
 * character set is not known. Mostly it is the text itself.
 */
static const char *
repair_text(DdlDraft *d, const char *text, size_t len)
{
	char	   *copy;
	size_t		n;

	if (cdc_utf8_is_valid(text, len))
		return text;
	d->certain = false;
	copy = cdc_arena_strndup(d->p.arena, text, len);
	for (size_t i = 0; copy != NULL && i < len; i += n)
	{
		n = cdc_utf8_char((const uint8_t *) copy + i, len - i);
		if (n == 0)
		{
			copy[i] = '?';
			n = 1;
		}
	}
	return copy;
}

/* False when out of memory. "before" is NULL for a table that is made. */
bool
ddl_draft_begin(DdlDraft *d, const char *text, size_t len, const char *default_schema, uint64_t sql_mode,
				DdlDialect dialect, const CdcTableDef *before, CdcArena *arena)
{
	memset(d, 0, sizeof(*d));
	d->p.arena = arena;
	d->p.out = &d->statement;
	d->statement.certain = true;
	d->certain = true;
	d->dialect = dialect;
	d->sql_mode = sql_mode;
	d->p.default_schema = default_schema ? cdc_arena_strndup(arena, default_schema, strlen(default_schema)) : "";
	text = repair_text(d, text, len);
	if (d->p.default_schema == NULL || text == NULL)
		return false;
	ddl_lexer_init_dialect(&d->p.lexer, text, len, sql_mode, dialect);
	if (before == NULL)
		return true;
	d->before = cdc_table_def_copy(before, arena);
	return d->before != NULL && ddl_take_foreign(d) && ddl_take_indexes(d);
}

/* ---- columns ---- */

/* The columns of the table behind the statement, while they find their places. */
typedef struct Result
{
	CdcColumnDef *columns;
	int		   *origin;
	uint32_t	ncolumns;
} Result;

static void
insert_column(Result *result, uint32_t at, const CdcColumnDef *column, int origin)
{
	memmove(&result->columns[at + 1], &result->columns[at], sizeof(CdcColumnDef) * (result->ncolumns - at));
	memmove(&result->origin[at + 1], &result->origin[at], sizeof(int) * (result->ncolumns - at));
	result->columns[at] = *column;
	result->origin[at] = origin;
	result->ncolumns++;
}

static void
remove_column(Result *result, uint32_t at)
{
	result->ncolumns--;
	memmove(&result->columns[at], &result->columns[at + 1], sizeof(CdcColumnDef) * (result->ncolumns - at));
	memmove(&result->origin[at], &result->origin[at + 1], sizeof(int) * (result->ncolumns - at));
}

static bool
is_dropped(const DdlDraft *d, const char *name)
{
	for (uint32_t i = 0; i < d->nactions; i++)
	{
		if (d->actions[i].kind == DDL_ACTION_DROP && ddl_name_equals(d->actions[i].name, name))
			return true;
	}
	return false;
}

/* The column that MODIFY or CHANGE puts in that one's place. */
static DdlColumn *
find_change(const DdlDraft *d, const char *name)
{
	for (uint32_t i = 0; i < d->ncolumns; i++)
	{
		if (d->columns[i].old_name != NULL && ddl_name_equals(d->columns[i].old_name, name))
			return &d->columns[i];
	}
	return NULL;
}

/* CONVERT TO CHARACTER SET: of a column that is there. */
static void
convert_column(DdlDraft *d, CdcColumnDef *column)
{
	DdlColumn	converted;

	if (!cdc_type_is_text(column->type))
		return;
	column->collation = 0;
	if (!ddl_name_equals(d->convert_charset, "binary"))
		return;
	memset(&converted, 0, sizeof(converted));
	converted.def = *column;
	ddl_become_binary(d, &converted);
	*column = converted.def;
}

/* What is done to a column that stays. */
static void
apply_actions(DdlDraft *d, CdcColumnDef *column, const char *name)
{
	for (uint32_t i = 0; i < d->nactions; i++)
	{
		const DdlAction *action = &d->actions[i];

		if (!ddl_name_equals(action->name, name))
			continue;
		switch (action->kind)
		{
			case DDL_ACTION_RENAME:
				column->name = action->new_name;
				break;
			case DDL_ACTION_DEFAULT:
				ddl_set_default(d, column, &action->value);
				break;
			case DDL_ACTION_VISIBLE:
				column->visible = action->visible;
				break;
			case DDL_ACTION_DROP:
				break;
		}
	}
}

static void
take_old_columns(DdlDraft *d, Result *result)
{
	for (uint32_t i = 0; d->before != NULL && i < d->before->ncolumns; i++)
	{
		const char *name = d->before->columns[i].name;
		DdlColumn  *change;
		CdcColumnDef column;

		if (name == NULL)
		{
			d->certain = false;
			continue;
		}
		if (is_dropped(d, name))
			continue;
		change = find_change(d, name);
		if (change != NULL)
		{
			change->origin = (int) i;
			column = change->def;	/* where the old one was; it may move later */
		}
		else
		{
			column = d->before->columns[i];
			if (d->converts)
				convert_column(d, &column);
		}
		apply_actions(d, &column, name);
		insert_column(result, result->ncolumns, &column, (int) i);
	}
}

/* The clause has nothing to do after all: nor have the indexes that its column asked for. */
static void
forget_column(DdlDraft *d, const DdlColumn *column)
{
	for (uint32_t i = column->first_index; i < column->last_index; i++)
		d->indexes[i].is_gone = true;
}

/* Put a column where its clause says: FIRST, AFTER another one of the result, or at the end. */
static void
place_column(DdlDraft *d, Result *result, const DdlColumn *clause, const CdcColumnDef *column)
{
	int			after;

	switch (clause->place)
	{
		case DDL_PLACE_NONE:
			insert_column(result, result->ncolumns, column, clause->origin);
			break;
		case DDL_PLACE_FIRST:
			insert_column(result, 0, column, clause->origin);
			break;
		case DDL_PLACE_AFTER:
			after = ddl_find_column(result->columns, result->ncolumns, clause->after);
			if (after < 0)
				d->certain = false;
			insert_column(result, after < 0 ? result->ncolumns : (uint32_t) after + 1, column, clause->origin);
			break;
	}
}

/* Move a column that was changed; false when it is not there. */
static bool
move_column(DdlDraft *d, Result *result, const DdlColumn *clause)
{
	for (uint32_t i = 0; i < result->ncolumns; i++)
	{
		CdcColumnDef column = result->columns[i];

		if (result->origin[i] != clause->origin)
			continue;
		if (clause->place != DDL_PLACE_NONE)
		{
			remove_column(result, i);
			place_column(d, result, clause, &column);
		}
		return true;
	}
	return false;
}

/* Columns that are new, and those that go to another place: one after the other, in the order of the text. */
static void
place_columns(DdlDraft *d, Result *result)
{
	for (uint32_t i = 0; i < d->ncolumns; i++)
	{
		const DdlColumn *column = &d->columns[i];

		if (column->old_name != NULL)
		{
			/* no such column? Or changed twice, which no server allows */
			if (column->origin < 0 || !move_column(d, result, column))
			{
				d->certain = d->certain && column->conditional;
				forget_column(d, column);
			}
		}
		else if (column->conditional && d->before != NULL &&
				 ddl_find_column(d->before->columns, d->before->ncolumns, column->def.name) >= 0)
			continue;			/* ADD IF NOT EXISTS, also when the statement drops that one; its UNIQUE is added all the same */
		else if (ddl_find_column(result->columns, result->ncolumns, column->def.name) >= 0)
		{
			d->certain = d->certain && column->conditional;
			forget_column(d, column);
		}
		else
			place_column(d, result, column, &column->def);
	}
}

/* Every action is about a column that there is. */
static void
check_actions(DdlDraft *d)
{
	for (uint32_t i = 0; i < d->nactions; i++)
	{
		if (!d->actions[i].if_exists &&
			(d->before == NULL || ddl_find_column(d->before->columns, d->before->ncolumns, d->actions[i].name) < 0))
			d->certain = false;
	}
}

/* MariaDB's versions of rows, and periods. */
static void
finish_versioning(DdlDraft *d, CdcTableDef *def)
{
	for (int i = 0; i < 2; i++)
	{
		int			column = d->period[i] ? ddl_find_column(def->columns, def->ncolumns, d->period[i]) : -1;

		if (column >= 0)
			def->columns[column].nullable = false;
	}
	if (d->adds_versioning)
		def->row_end = d->row_end != NULL ? d->row_end : "row_end";
	else if (d->drops_versioning)
		def->row_end = NULL;
}

/*
 * The definition that the clauses make, and where its columns come from. NULL when
 * out of memory.
 */
CdcTableDef *
ddl_draft_finish(DdlDraft *d, const char *schema, const char *name, const int **origin)
{
	uint32_t	most = d->ncolumns + (d->before != NULL ? d->before->ncolumns : 0);
	CdcTableDef *def = cdc_arena_zalloc(d->p.arena, sizeof(CdcTableDef));
	Result		result;

	result.columns = cdc_arena_alloc(d->p.arena, sizeof(CdcColumnDef) * (most + 1));
	result.origin = cdc_arena_alloc(d->p.arena, sizeof(int) * (most + 1));
	result.ncolumns = 0;
	if (def == NULL || result.columns == NULL || result.origin == NULL)
	{
		d->p.nomem = true;
		return NULL;
	}
	if (d->before != NULL)
		*def = *d->before;
	else
		def->known = CDC_KNOWS_SIGN | CDC_KNOWS_CHARSET | CDC_KNOWS_NAMES | CDC_KNOWS_LABELS | CDC_KNOWS_KEY |
			CDC_KNOWS_DECLARED | CDC_KNOWS_DEFAULTS |
			(d->dialect == DDL_DIALECT_MARIADB ? CDC_FOREIGN_UNLOGGED : 0);
	def->schema = schema;
	def->name = name;
	if (d->engine != NULL)
		def->engine = d->engine;
	if (d->comment != NULL)
		def->comment = d->comment[0] != '\0' ? d->comment : NULL;
	check_actions(d);
	take_old_columns(d, &result);
	place_columns(d, &result);
	def->columns = result.columns;
	def->ncolumns = result.ncolumns;
	finish_versioning(d, def);
	ddl_finish_foreign(d, def, result.origin);
	ddl_finish_indexes(d, def, result.origin);
	d->certain = d->certain && d->statement.certain && def->ncolumns > 0;
	*origin = result.origin;
	return d->p.nomem ? NULL : def;
}
