/*-------------------------------------------------------------------------
 *
 * statement_alter.c
 *	  ALTER TABLE: which tables, and can it touch columns, key or rows?
 *
 * NOTES
 *	  The text is cut into clauses at its commas, and the first words of a
 *	  clause decide. The list of clauses that leave everything alone is closed;
 *	  any other counts as one that does not.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/parser.h"

/* Verbs on partitions that keep all rows. Each is alone in its statement: what follows are partitions. */
static const char *const harmless_partition_verbs[] = {
	"ANALYZE", "CHECK", "COALESCE", "OPTIMIZE", "REBUILD", "REORGANIZE", "REPAIR", NULL
};

/* Behind ADD: indexes and constraints that are no key. */
static const char *const harmless_additions[] = {
	"INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PARTITION", NULL
};

/* Is it one of ADD's clauses that cannot matter? Behind the word ADD. */
static bool
addition_is_harmless(DdlParser *p)
{
	if (ddl_accept_word(p, "CONSTRAINT"))
	{
		ddl_accept_if_exists(p);
		if (!ddl_at_word(p, "FOREIGN") && !ddl_at_word(p, "CHECK") && !ddl_at_word(p, "UNIQUE") && !ddl_at_word(p, "PRIMARY"))
			ddl_advance(p);			/* its name */
		return ddl_at_word(p, "FOREIGN") || ddl_at_word(p, "CHECK");
	}
	if (ddl_accept_word(p, "VECTOR"))	/* not reserved: it may be a column's name */
		return ddl_at_word(p, "INDEX") || ddl_at_word(p, "KEY");
	return ddl_at_one_of(p, harmless_additions);
}

/* Behind the word ALTER of a clause. */
static bool
alteration_is_harmless(DdlParser *p)
{
	static const char *const not_columns[] = {"INDEX", "KEY", "CHECK", "CONSTRAINT", NULL};

	if (ddl_at_one_of(p, not_columns))
		return true;			/* visible or not, enforced or not */
	(void) ddl_accept_word(p, "COLUMN");
	ddl_accept_if_exists(p);
	ddl_advance(p);					/* the column */
	if (!ddl_accept_word(p, "SET") && !ddl_accept_word(p, "DROP"))
		return false;
	if (!ddl_at_word(p, "DEFAULT"))
		return false;
	p->out->changes_default = true;
	return true;
}

/* Such a clause is alone in its statement: commas in it are between partitions. */
static void
skip_partitions(DdlParser *p)
{
	while (!ddl_at_end(p))
		ddl_advance(p);
}

/*
 * Read the first words of a clause: can it touch columns, key or rows? Other
 * tables that it names are added.
 */
static bool
clause_is_harmless(DdlParser *p)
{
	if (ddl_accept_word(p, "ADD"))
		return addition_is_harmless(p);
	if (ddl_accept_word(p, "ALTER"))
		return alteration_is_harmless(p);
	if (ddl_accept_word(p, "DROP"))
	{
		if (ddl_at_word(p, "PARTITION"))
		{
			p->out->moves_rows = p->out->removes_rows = true;
			skip_partitions(p);
			return true;
		}
		p->out->changes_cascades |= ddl_at_word(p, "FOREIGN");
		return ddl_at_word(p, "FOREIGN") || ddl_at_word(p, "CHECK");
	}
	if (ddl_accept_word(p, "ENGINE") || ddl_accept_word(p, "TYPE"))
	{
		(void) ddl_accept_sign(p, '=');
		return !ddl_at_word(p, "BLACKHOLE");	/* which forgets all rows */
	}
	if (ddl_accept_word(p, "RENAME"))
	{
		if (ddl_at_word(p, "INDEX") || ddl_at_word(p, "KEY"))
			return true;
		if (ddl_at_word(p, "COLUMN"))
			return false;
		if (!ddl_accept_word(p, "TO") && !ddl_accept_word(p, "AS"))
			(void) ddl_accept_sign(p, '=');
		/* a later clause wins; one that cannot be read leaves the statement uncertain */
		p->out->ntables = 1;
		p->out->renames = true;
		(void) ddl_read_table(p);
		return true;
	}
	if (ddl_accept_word(p, "EXCHANGE"))
	{
		/* EXCHANGE PARTITION p WITH TABLE t */
		while (!ddl_at_end(p) && !ddl_at_word(p, "TABLE"))
			ddl_advance(p);
		if (ddl_accept_word(p, "TABLE"))
			(void) ddl_read_table(p);
		p->out->moves_rows = true;
		return true;
	}
	if (ddl_accept_word(p, "CONVERT"))
	{
		bool		is_table;

		/* MariaDB: CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p; else TO CHARACTER SET */
		if (ddl_accept_word(p, "PARTITION"))
		{
			while (!ddl_at_end(p) && !ddl_at_word(p, "TABLE"))
				ddl_advance(p);
		}
		is_table = ddl_accept_word(p, "TABLE");
		if (is_table)
			(void) ddl_read_table(p);
		p->out->moves_rows |= is_table;
		return is_table;
	}
	if (ddl_at_word(p, "TRUNCATE") || ddl_at_word(p, "DISCARD") || ddl_at_word(p, "IMPORT"))
	{
		/* TRUNCATE PARTITION; DISCARD or IMPORT [PARTITION p] TABLESPACE */
		p->out->moves_rows = true;
		p->out->removes_rows = ddl_at_word(p, "TRUNCATE");
		skip_partitions(p);
		return true;
	}
	if (ddl_at_word(p, "WITH") || ddl_at_word(p, "WITHOUT"))
	{
		/* WITH or WITHOUT VALIDATION; but WITH SYSTEM VERSIONING adds columns */
		ddl_advance(p);
		return ddl_at_word(p, "VALIDATION");
	}
	return ddl_at_harmless_option(p);
}

static void
read_alter_table(DdlParser *p)
{
	ddl_set_kind(p, DDL_ALTER_TABLE, "ALTER TABLE");
	p->out->certain = true;
	ddl_accept_if_exists(p);
	if (!ddl_read_table(p))
	{
		p->out->changes_shape = true;
		return;
	}
	ddl_accept_wait(p);
	if (ddl_at_one_of(p, harmless_partition_verbs))
		return;
	while (!ddl_at_end(p))
	{
		bool		is_order = ddl_at_word(p, "ORDER");

		if (!clause_is_harmless(p))
			p->out->changes_shape = true;
		if (is_order)
			ddl_skip_order_columns(p);
		else
			ddl_skip_clause(p);
		if (!ddl_accept_sign(p, ','))
			break;
	}
}

void
ddl_read_alter(DdlParser *p)
{
	/* old forms: ALTER ONLINE TABLE, ALTER OFFLINE TABLE, ALTER IGNORE TABLE */
	while (ddl_accept_word(p, "ONLINE") || ddl_accept_word(p, "OFFLINE") || ddl_accept_word(p, "IGNORE"))
		;
	if (ddl_accept_word(p, "TABLE"))
		read_alter_table(p);
	else
		ddl_set_harmless(p, "ALTER");	/* DATABASE, EVENT, FUNCTION, INSTANCE, SEQUENCE, SERVER, USER, VIEW, ... */
}
