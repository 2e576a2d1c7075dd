/*-------------------------------------------------------------------------
 *
 * table_index.c
 *	  Indexes of a table: as they are written, what becomes of them when
 *	  columns go, and which of them is the key.
 *
 * NOTES
 *	  The order is the server's: the primary key, unique indexes (those over NOT NULL
 *	  columns first, and among these those over whole columns), the others, full-text
 *	  ones last; each kind in the order in which they were made. mysql_indexes.c picks the key in that order, and so
 *	  does this file.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "ddl/table_draft.h"

#define PRIMARY_NAME "PRIMARY"

/* What SHOW INDEX says is the prefix of a spatial index. */
#define SPATIAL_PREFIX 32

#define LAST_RANK 6

/* Bytes in a key of InnoDB at most; over longer values MariaDB makes a hash. */
#define MAX_KEY_BYTES 3072
#define BYTES_PER_CHARACTER 4

static DdlIndex *
add_index(DdlDraft *d)
{
	DdlIndex   *index;

	if (d->nindexes >= DDL_MAX_INDEXES)
	{
		d->certain = false;
		return NULL;
	}
	if (!ddl_grow(d, (void **) &d->indexes, d->nindexes, &d->indexes_allocated, sizeof(DdlIndex)))
		return NULL;
	index = &d->indexes[d->nindexes++];
	memset(index, 0, sizeof(*index));
	index->def.visible = true;
	index->is_new = true;
	d->changes_indexes = true;
	return index;
}

DdlIndex *
ddl_find_index(const DdlDraft *d, const char *name)
{
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		if (!d->indexes[i].is_gone && !d->indexes[i].is_primary && d->indexes[i].def.name != NULL &&
			ddl_name_equals(d->indexes[i].def.name, name))
			return &d->indexes[i];
	}
	return NULL;
}

DdlIndex *
ddl_find_primary(const DdlDraft *d)
{
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		if (!d->indexes[i].is_gone && d->indexes[i].is_primary)
			return &d->indexes[i];
	}
	return NULL;
}

static bool
add_part(DdlDraft *d, DdlIndex *index, uint32_t *allocated, const CdcIndexPart *part)
{
	if (!ddl_grow(d, (void **) &index->parts, index->def.nparts, allocated, sizeof(CdcIndexPart)))
		return false;
	index->parts[index->def.nparts++] = *part;
	return true;
}

static void
add_simple(DdlDraft *d, DdlIndex *index, const char *const *columns, uint32_t ncolumns)
{
	uint32_t	allocated = 0;

	for (uint32_t i = 0; i < ncolumns; i++)
	{
		CdcIndexPart part = {.column = columns[i]};

		if (!add_part(d, index, &allocated, &part))
			return;
	}
}

/* PRIMARY KEY or UNIQUE among a column's attributes. */
void
ddl_add_column_index(DdlDraft *d, const char *column, bool primary)
{
	DdlIndex   *index = add_index(d);

	if (index == NULL)
		return;
	index->def.is_unique = true;
	index->is_primary = primary;
	add_simple(d, index, &column, 1);
}

/* The index that a foreign key gets when no other serves it. */
void
ddl_add_foreign_index(DdlDraft *d, const char *name, const char *const *columns, uint32_t ncolumns)
{
	DdlIndex   *index = add_index(d);

	if (index == NULL)
		return;
	index->is_for_foreign = true;
	index->def.name = name;
	add_simple(d, index, columns, ncolumns);
}

/* ---- reading ---- */

/* Is it an index or a constraint, and no column? */
bool
ddl_at_index(const DdlDraft *d)
{
	static const char *const words[] = {
		"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CHECK", "CONSTRAINT", NULL
	};

	if (ddl_at_one_of(&d->p, words))
		return true;
	/* not reserved: they may be names of columns */
	if (ddl_at_word(&d->p, "VECTOR"))
		return ddl_next_is(d, "INDEX") || ddl_next_is(d, "KEY");
	return ddl_at_word(&d->p, "PERIOD") && ddl_next_is(d, "FOR");
}

/* (a, b(10) DESC, (lower(c))) */
static void
read_parts(DdlDraft *d, DdlIndex *index)
{
	DdlParser  *p = &d->p;
	uint32_t	allocated = 0;

	if (!ddl_accept_sign(p, '('))
	{
		d->certain = false;
		return;
	}
	do
	{
		CdcIndexPart part = {0};
		bool		given;

		if (ddl_at_sign(p, '('))
		{
			const char *begin = ddl_current(p)->text;

			ddl_skip_parentheses(p);
			part.expression = cdc_arena_strndup(p->arena, begin, (size_t) (ddl_current(p)->text - begin));
			if (part.expression == NULL)
				p->nomem = true;
		}
		else
		{
			part.column = ddl_read_name(d);
			if (part.column == NULL)
			{
				d->certain = false;
				break;
			}
			if (ddl_accept_sign(p, '('))
			{
				part.prefix = ddl_read_size(d, &given);
				(void) ddl_accept_sign(p, ')');
			}
		}
		if (ddl_accept_word(p, "DESC"))
			part.descending = true;
		else
			(void) ddl_accept_word(p, "ASC");
		if (ddl_accept_word(p, "WITHOUT"))	/* MariaDB: a period, which is no column */
		{
			(void) ddl_accept_word(p, "OVERLAPS");
			index->overlaps = true;
			continue;
		}
		if (!add_part(d, index, &allocated, &part))
			return;
	} while (ddl_accept_sign(p, ','));
	while (!ddl_at_end(p) && !ddl_accept_sign(p, ')'))
	{
		d->certain = false;
		ddl_advance(p);
	}
}

static void
read_using(DdlDraft *d, DdlIndex *index)
{
	if (ddl_accept_word(&d->p, "HASH"))
		index->def.type_text = "HASH";
	else if (ddl_accept_word(&d->p, "BTREE"))
		index->def.type_text = "BTREE";
	else
		ddl_advance(&d->p);
}

static void
read_options(DdlDraft *d, DdlIndex *index)
{
	static const char *const behind[] = {"PARTITION", "REMOVE", NULL};
	DdlParser  *p = &d->p;

	while (!ddl_at_end(p) && !ddl_at_sign(p, ',') && !ddl_at_sign(p, ')') && !ddl_at_one_of(p, behind))
	{
		if (ddl_accept_word(p, "USING") || ddl_accept_word(p, "TYPE"))
			read_using(d, index);
		else if (ddl_accept_word(p, "INVISIBLE") || ddl_accept_word(p, "IGNORED"))
			index->def.visible = false;
		else if (ddl_accept_word(p, "NOT"))
		{
			if (!ddl_accept_word(p, "IGNORED"))
				d->certain = false;
		}
		else
		{
			/* KEY_BLOCK_SIZE = 8, COMMENT 'x', WITH PARSER p, ALGORITHM = INPLACE, DISTANCE = cosine, ... */
			if (ddl_accept_word(p, "WITH"))
				(void) ddl_accept_word(p, "PARSER");
			else if (!ddl_accept_word(p, "VISIBLE") && ddl_at_name(p))
				ddl_advance(p);
			(void) ddl_accept_sign(p, '=');
			if (!ddl_at_end(p) && !ddl_at_sign(p, ',') && !ddl_at_sign(p, ')') && !ddl_at_word(p, "INVISIBLE"))
				ddl_advance(p);
		}
	}
}

/* [IF NOT EXISTS] [name] [USING type] [ON table] (parts) options */
static void
read_body(DdlDraft *d, DdlIndex *index, bool names_table)
{
	DdlParser  *p = &d->p;
	bool		if_not_exists = ddl_at_word(p, "IF");

	ddl_accept_if_exists(p);
	if (!ddl_at_word(p, "USING") && !ddl_at_word(p, "TYPE") && ddl_at_name(p))
	{
		const char *name = ddl_read_name(d);

		if (!index->is_primary)
			index->def.name = name;
	}
	if (ddl_accept_word(p, "USING") || ddl_accept_word(p, "TYPE"))
		read_using(d, index);
	if (names_table)
	{
		(void) ddl_accept_word(p, "ON");
		(void) ddl_read_table(p);
		ddl_accept_wait(p);
	}
	read_parts(d, index);
	read_options(d, index);
	if (if_not_exists && index->def.name != NULL && ddl_find_index(d, index->def.name) != index)
		index->is_gone = true;
}

/*
 * At UNIQUE, INDEX, PRIMARY KEY, ...; "constraint" is the name in front of it, or NULL. In
 * CREATE INDEX the name of the table comes before the parts.
 */
void
ddl_read_index(DdlDraft *d, const char *constraint, bool names_table)
{
	DdlParser  *p = &d->p;
	DdlIndex   *index = add_index(d);

	if (index == NULL)
		return;
	if (ddl_accept_word(p, "PRIMARY"))
	{
		index->is_primary = true;
		index->def.is_unique = true;
	}
	else if (ddl_accept_word(p, "UNIQUE"))
		index->def.is_unique = true;
	else if (ddl_accept_word(p, "FULLTEXT"))
		index->def.type_text = "FULLTEXT";
	else if (ddl_accept_word(p, "SPATIAL"))
		index->def.type_text = "SPATIAL";
	else if (ddl_accept_word(p, "VECTOR"))
		index->def.type_text = "VECTOR";
	if (!ddl_accept_word(p, "INDEX"))
		(void) ddl_accept_word(p, "KEY");
	if (!index->is_primary)
		index->def.name = constraint;
	read_body(d, index, names_table);
}

/* ---- what was there ---- */

/* Does the index have the columns of the key, in its order? */
static bool
is_key_of(const CdcTableDef *def, const CdcIndexDef *index)
{
	if (!index->is_unique || index->nparts != def->nkey)
		return false;
	for (uint32_t i = 0; i < index->nparts; i++)
	{
		int			column = index->parts[i].column != NULL
			? ddl_find_column(def->columns, def->ncolumns, index->parts[i].column) : -1;

		if (column < 0 || def->columns[column].key_part != i + 1)
			return false;
	}
	return true;
}

static bool
has_primary(const CdcTableDef *def)
{
	if (def->nkey == 0 || (def->known & CDC_KEY_IS_PRIMARY) != 0)
		return def->nkey > 0;
	for (uint32_t i = 0; i < def->nindexes; i++)
	{
		if (is_key_of(def, &def->indexes[i]))
			return false;
	}
	return true;
}

static void
take_primary(DdlDraft *d)
{
	DdlIndex   *index = add_index(d);
	uint32_t	allocated = 0;

	if (index == NULL)
		return;
	index->is_primary = true;
	index->is_new = false;
	index->def.is_unique = true;
	for (uint32_t part = 1; part <= d->before->nkey; part++)
	{
		for (uint32_t i = 0; i < d->before->ncolumns; i++)
		{
			const CdcColumnDef *column = &d->before->columns[i];
			CdcIndexPart taken = {.column = column->name,.prefix = column->key_prefix};

			if (column->key_part == part && !add_part(d, index, &allocated, &taken))
				return;
		}
	}
}

/* Was it made for a foreign key? The server does not tell, but names it after that. */
static bool
looks_made_for_foreign(const DdlDraft *d, const CdcIndexDef *index)
{
	const DdlForeign *foreign = ddl_find_foreign(d, index->name);

	if (foreign == NULL || index->is_unique || index->nparts != foreign->def.ncolumns)
		return false;
	for (uint32_t i = 0; i < index->nparts; i++)
	{
		if (index->parts[i].column == NULL || !ddl_name_equals(index->parts[i].column, foreign->columns[i]))
			return false;
	}
	return true;
}

/* Begin with the indexes of the table before; its foreign keys are there. */
bool
ddl_take_indexes(DdlDraft *d)
{
	if (has_primary(d->before))
		take_primary(d);
	for (uint32_t i = 0; i < d->before->nindexes; i++)
	{
		const CdcIndexDef *from = &d->before->indexes[i];
		DdlIndex   *index = add_index(d);
		uint32_t	allocated = 0;

		if (index == NULL)
			return !d->p.nomem;
		index->def = *from;
		index->def.nparts = 0;
		index->is_new = false;
		index->is_for_foreign = looks_made_for_foreign(d, from);
		for (uint32_t k = 0; k < from->nparts; k++)
		{
			if (!add_part(d, index, &allocated, &from->parts[k]))
				return false;
		}
	}
	d->changes_indexes = false;
	return true;
}

/* ---- what becomes of them ---- */

static bool
can_have_prefix(CdcType type)
{
	switch (type)
	{
		case CDC_TYPE_CHAR:
		case CDC_TYPE_VARCHAR:
		case CDC_TYPE_TEXT:
		case CDC_TYPE_BINARY:
		case CDC_TYPE_VARBINARY:
		case CDC_TYPE_BLOB:
		case CDC_TYPE_GEOMETRY:
			return true;
		default:
			return false;
	}
}

/* A prefix as long as the column is none. */
static uint32_t
fit_prefix(const CdcColumnDef *column, uint32_t prefix)
{
	if (!can_have_prefix(column->type) || (column->length > 0 && prefix >= column->length))
		return 0;
	return prefix;
}

/*
 * Let the index's parts follow the columns: renamed, gone, of another type. An index that
 * loses all of its parts is gone.
 */
static void
follow_columns(DdlDraft *d, DdlIndex *index, const CdcTableDef *def, const int *origin)
{
	uint32_t	kept = 0;

	for (uint32_t i = 0; i < index->def.nparts; i++)
	{
		CdcIndexPart part = index->parts[i];
		int			column = -1;

		if (part.column != NULL)
		{
			int			old = index->is_new ? -1 : ddl_find_column(d->before->columns, d->before->ncolumns, part.column);

			for (uint32_t k = 0; k < def->ncolumns && column < 0 && old >= 0; k++)
			{
				if (origin[k] == old)
					column = (int) k;
			}
			if (column < 0)
			{
				/* a column that is dropped and added under the same name keeps its place in the index */
				column = ddl_find_column(def->columns, def->ncolumns, part.column);
				if (column >= 0 && !index->is_new && origin[column] >= 0)
					column = -1;
			}
			if (column < 0)
			{
				d->certain = d->certain && !index->is_new;
				d->changes_indexes = true;
				continue;
			}
			part.column = def->columns[column].name;
			part.prefix = fit_prefix(&def->columns[column], part.prefix);
		}
		index->parts[kept++] = part;
	}
	index->def.nparts = kept;
	if (kept == 0)
		index->is_gone = true;
}

/* Another index that begins with the columns of this one, which was made for a foreign key? */
static bool
is_served(const DdlDraft *d, const DdlIndex *index)
{
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		const DdlIndex *other = &d->indexes[i];
		uint32_t	same = 0;

		if (other == index || other->is_gone || other->def.nparts < index->def.nparts ||
			(other->is_for_foreign && other < index && other->def.nparts == index->def.nparts))
			continue;			/* of two that are alike the later one stays */
		while (same < index->def.nparts && other->parts[same].column != NULL && other->parts[same].prefix == 0 &&
			   ddl_name_equals(other->parts[same].column, index->parts[same].column))
			same++;
		if (same == index->def.nparts)
			return true;
	}
	return false;
}

/* An index over a period ends with the period's columns, which are not in the definition. */
static void
add_period(DdlDraft *d, DdlIndex *index)
{
	uint32_t	allocated = index->def.nparts;

	if (!index->overlaps)
		return;
	if (d->period[0] == NULL || d->period[1] == NULL)
	{
		d->certain = false;
		return;
	}
	for (int i = 1; i >= 0; i--)
	{
		CdcIndexPart part = {.column = d->period[i]};

		if (!add_part(d, index, &allocated, &part))
			return;
	}
}

/* The name of an index without one: its first column's, with a number if it is taken. */
static void
choose_name(DdlDraft *d, DdlIndex *index)
{
	const char *column = index->parts[0].column != NULL ? index->parts[0].column : "functional_index";
	size_t		size = strlen(column) + 16;
	char	   *name = cdc_arena_alloc(d->p.arena, size);

	if (name == NULL)
	{
		d->p.nomem = true;
		index->def.name = "";
		return;
	}
	snprintf(name, size, "%s", column);
	for (uint32_t n = 2; ddl_find_index(d, name) != NULL || ddl_name_equals(name, PRIMARY_NAME); n++)
		snprintf(name, size, "%s_%u", column, n);
	index->def.name = name;
}

static bool
is_engine(const CdcTableDef *def, const char *name)
{
	return def->engine != NULL && ddl_name_equals(def->engine, name);
}

/* MariaDB: a unique index over values that are too long for one is a hash of them. */
static bool
is_long_unique(const DdlDraft *d, const DdlIndex *index, const CdcTableDef *def)
{
	uint64_t	bytes = 0;

	if (d->dialect != DDL_DIALECT_MARIADB || !index->def.is_unique || index->is_primary)
		return false;
	for (uint32_t i = 0; i < index->def.nparts; i++)
	{
		const CdcIndexPart *part = &index->parts[i];
		int			column = part->column ? ddl_find_column(def->columns, def->ncolumns, part->column) : -1;
		const CdcColumnDef *c = column >= 0 ? &def->columns[column] : NULL;

		if (c == NULL)
			return false;
		if ((c->type == CDC_TYPE_TEXT || c->type == CDC_TYPE_BLOB) && part->prefix == 0)
			return true;
		if (c->type == CDC_TYPE_CHAR || c->type == CDC_TYPE_VARCHAR)
			bytes += (uint64_t) (part->prefix > 0 ? part->prefix : c->length) * BYTES_PER_CHARACTER;
		else if (c->type == CDC_TYPE_BINARY || c->type == CDC_TYPE_VARBINARY)
			bytes += part->prefix > 0 ? part->prefix : c->length;
	}
	return bytes > MAX_KEY_BYTES;
}

static void
finish_type(const DdlDraft *d, DdlIndex *index, const CdcTableDef *def)
{
	const char *asked = index->def.type_text;

	if (asked != NULL && strcmp(asked, "HASH") != 0 && strcmp(asked, "BTREE") != 0)
	{
		/* FULLTEXT, SPATIAL, VECTOR */
		for (uint32_t i = 0; i < index->def.nparts; i++)
			index->parts[i].prefix = strcmp(asked, "SPATIAL") == 0 ? SPATIAL_PREFIX : 0;
	}
	else if (!index->is_new && !index->is_primary)
		;						/* as the server said */
	else if (is_engine(def, "MEMORY"))
		index->def.type_text = asked != NULL ? asked : "HASH";
	else
		index->def.type_text = is_long_unique(d, index, def) ||
			(asked != NULL && strcmp(asked, "HASH") == 0 && index->def.is_unique && d->dialect == DDL_DIALECT_MARIADB)
			? "HASH" : "BTREE";
}

/* Place among the others: see the head of the file. */
static int
rank(const DdlIndex *index, const CdcTableDef *def)
{
	bool		has_null = false;
	bool		has_prefix = false;

	if (index->is_primary)
		return 0;
	if (!index->def.is_unique)
		return strcmp(index->def.type_text, "FULLTEXT") == 0 ? LAST_RANK : LAST_RANK - 1;
	for (uint32_t i = 0; i < index->def.nparts; i++)
	{
		int			column = index->parts[i].column
			? ddl_find_column(def->columns, def->ncolumns, index->parts[i].column) : -1;

		has_null = has_null || column < 0 || def->columns[column].nullable;
		has_prefix = has_prefix || index->parts[i].prefix > 0;
	}
	return 1 + 2 * has_null + has_prefix;
}

/* As can_be_key in mysql_indexes.c. */
static bool
can_be_key(const DdlIndex *index, const CdcTableDef *def)
{
	if (!index->def.is_unique || index->def.nparts > UINT16_MAX)
		return false;
	if (!index->is_primary && strcmp(index->def.type_text, "HASH") == 0 && def->engine != NULL && !is_engine(def, "MEMORY"))
		return false;
	for (uint32_t i = 0; i < index->def.nparts; i++)
	{
		int			column = index->parts[i].column
			? ddl_find_column(def->columns, def->ncolumns, index->parts[i].column) : -1;

		if (column < 0 || def->columns[column].nullable || (index->parts[i].prefix > 0 && !index->is_primary))
			return false;
	}
	return true;
}

static void
take_key(const DdlIndex *index, CdcTableDef *def)
{
	for (uint32_t i = 0; i < index->def.nparts; i++)
	{
		CdcColumnDef *column = &def->columns[ddl_find_column(def->columns, def->ncolumns, index->parts[i].column)];

		column->key_part = (uint16_t) (i + 1);
		column->key_prefix = (uint16_t) (index->parts[i].prefix > UINT16_MAX ? UINT16_MAX : index->parts[i].prefix);
	}
	def->nkey = index->def.nparts;
	if (index->is_primary)
		def->known |= CDC_KEY_IS_PRIMARY;
}

/*
 * Give the definition its indexes and its key; its columns are complete but for
 * those. "origin" tells where each column comes from.
 */
void
ddl_finish_indexes(DdlDraft *d, CdcTableDef *def, const int *origin)
{
	CdcIndexDef *indexes = cdc_arena_alloc(d->p.arena, sizeof(CdcIndexDef) * (d->nindexes + 1));
	DdlIndex   *primary;

	if (indexes == NULL)
	{
		d->p.nomem = true;
		return;
	}
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		add_period(d, &d->indexes[i]);
		if (!d->indexes[i].is_gone)
			follow_columns(d, &d->indexes[i], def, origin);
	}
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		DdlIndex   *index = &d->indexes[i];

		if (!index->is_gone && index->is_for_foreign && is_served(d, index))
			index->is_gone = true;
		if (!index->is_gone && !index->is_primary && index->def.name == NULL)
			choose_name(d, index);
	}
	primary = ddl_find_primary(d);
	for (uint32_t i = 0; primary != NULL && i < primary->def.nparts; i++)
	{
		int			column = primary->parts[i].column
			? ddl_find_column(def->columns, def->ncolumns, primary->parts[i].column) : -1;

		if (column >= 0)
			def->columns[column].nullable = false;
	}
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		def->columns[i].key_part = 0;
		def->columns[i].key_prefix = 0;
	}
	def->nkey = 0;
	def->known &= ~(uint32_t) CDC_KEY_IS_PRIMARY;
	def->nindexes = 0;
	for (uint32_t i = 0; i < d->nindexes; i++)
	{
		if (!d->indexes[i].is_gone)
			finish_type(d, &d->indexes[i], def);
	}
	for (int place = 0; place <= LAST_RANK; place++)
	{
		for (uint32_t i = 0; i < d->nindexes; i++)
		{
			DdlIndex   *index = &d->indexes[i];

			if (index->is_gone || rank(index, def) != place)
				continue;
			if (def->nkey == 0 && can_be_key(index, def))
				take_key(index, def);
			index->def.parts = index->parts;
			if (!index->is_primary)
				indexes[def->nindexes++] = index->def;
		}
	}
	def->indexes = indexes;
}
