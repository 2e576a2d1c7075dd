/*-------------------------------------------------------------------------
 *
 * test_table_change.c
 *	  What statements make of a table's definition.
 *
 * NOTES
 *	  That the outcome is what servers have after the same statements is shown
 *	  by test/t/580_ddl_text.pl; here is what needs no server. Definitions stand as
 *	  text, see table_text.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "ddl/statement.h"
#include "ddl/table_change.h"

#include <stdlib.h>
#include <string.h>

#include "table_text.h"
#include "tap.h"

/* Exactly as long as the text, so that a read past its end is noticed. */
static char *
exact_copy(const char *text, size_t len)
{
	char	   *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, text, len);
	return copy;
}

/*
 * Make a table by "create", change it by "change", and show what is left. Flags come
 * first.
 */
static void
show(CdcBuf *out, DdlDialect dialect, uint64_t sql_mode, const char *create, const char *change, size_t len)
{
	CdcArena	arena;
	DdlTableCreate made;
	DdlTableChange changed;
	char	   *text = exact_copy(create, strlen(create));
	char	   *copy = exact_copy(change, len);

	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	if (ddl_table_create(text, strlen(create), "db", sql_mode, dialect, &arena, &made) != CDC_OK || made.def == NULL)
		cdc_buf_add_str(out, "not created");
	else if (ddl_table_change(copy, len, "db", sql_mode, dialect, made.def, &arena, &changed) != CDC_OK)
		cdc_buf_add_str(out, "no memory");
	else
	{
		cdc_buf_printf(out, "%s%s%s%s%s%s%s", made.certain ? "" : "created? ", changed.certain ? "" : "? ",
					   changed.moves_rows ? "moves " : "", changed.changes_indexes ? "indexes " : "",
					   changed.changes_comment ? "comment " : "", changed.changes_key ? "key " : "",
					   changed.computes_anew ? "generated " : "");
		if (changed.convert_charset != NULL)
			cdc_buf_printf(out, "charset=%s ", changed.convert_charset);
		if (changed.rename_table != NULL)
			cdc_buf_printf(out, "rename=%s.%s ", changed.rename_schema, changed.rename_table);
		cdc_buf_add_char(out, '\n');
		table_text_add(out, changed.after, changed.origin);
	}
	cdc_arena_free(&arena);
	free(text);
	free(copy);
}

static const char base[] = "CREATE TABLE t (id INT NOT NULL, a INT, b VARCHAR(20) DEFAULT 'x', PRIMARY KEY (id), KEY k (a, b(5)))";

#define ID "column id int int not-null key=1 from=0\n"
#define A "column a int int from=1\n"
#define B "column b varchar(20) varchar length=20 default 'x' from=2\n"
#define K "index k BTREE (a, b(5))\n"
#define END "table key=1 primary\n"

static void
check_all(DdlDialect dialect, uint64_t sql_mode, const char *create, const char *change, size_t len, const char *want)
{
	CdcBuf		out;
	CdcBuf		name;

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	cdc_buf_init(&name, &cdc_malloc_allocator, 0);
	show(&out, dialect, sql_mode, create, change, len);
	for (size_t i = 0; i < len; i++)
		cdc_buf_add_char(&name, change[i] == '#' || (unsigned char) change[i] < ' ' ? ' ' : change[i]);
	is_str(out.data, want, name.data);
	cdc_buf_free(&name);
	cdc_buf_free(&out);
}

static void
check(const char *change, const char *want)
{
	check_all(DDL_DIALECT_MYSQL, 0, base, change, strlen(change), want);
}

static void
test_columns(void)
{
	check("ALTER TABLE t ADD COLUMN c INT", "\n" ID A B "column c int int new\n" K END);
	check("ALTER TABLE t ADD c INT FIRST", "\ncolumn c int int new\n" ID A B K END);
	check("ALTER TABLE t ADD (c INT, d DATE), ADD e TIME(3) AFTER c",
		  "\n" ID A B "column c int int new\ncolumn e time(3) time scale=3 new\ncolumn d date date new\n" K END);
	check("ALTER TABLE t DROP a", "indexes \n" ID B "index k BTREE (b(5))\n" END);
	check("ALTER TABLE t DROP COLUMN a, DROP COLUMN b CASCADE", "indexes \n" ID END);
	check("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
		  "\n" ID "column b int int from=1\ncolumn a varchar(20) varchar length=20 default 'x' from=2\n"
		  "index k BTREE (b, a(5))\n" END);
	check("ALTER TABLE t CHANGE a b BIGINT UNSIGNED, CHANGE b a TEXT",
		  "\n" ID "column b bigint unsigned bigint unsigned from=1\ncolumn a text text from=2\nindex k BTREE (b, a(5))\n" END);
	check("ALTER TABLE t MODIFY b VARCHAR(30) NOT NULL FIRST",
		  "\ncolumn b varchar(30) varchar not-null length=30 from=2\n" ID A K END);
	check("ALTER TABLE t MODIFY id BIGINT", "\ncolumn id bigint bigint not-null key=1 from=0\n" A B K END);
	check("ALTER TABLE t MODIFY b VARCHAR(5)", "\n" ID A "column b varchar(5) varchar length=5 from=2\nindex k BTREE (a, b)\n" END);
	check("ALTER TABLE t ALTER a SET DEFAULT 7, ALTER COLUMN b DROP DEFAULT",
		  "\n" ID "column a int int default '7' from=1\ncolumn b varchar(20) varchar length=20 from=2\n" K END);
	check("ALTER TABLE t MODIFY a INT AS (id * 2) STORED", "generated \ncolumn id int int not-null key=1 from=0\ncolumn a int int generated from=1\n" B K END);
	check("ALTER TABLE t ADD c INT AS (id * 2)", "\n" ID A B "column c int int generated new\n" K END);
	check("ALTER TABLE t ALTER COLUMN a SET INVISIBLE", "\n" ID "column a int int hidden from=1\n" B K END);
}

static void
test_uncertain(void)
{
	check("ALTER TABLE t DROP zz", "? \n" ID A B K END);
	check("ALTER TABLE t ADD c FROBNICATE(5)", "? \n" ID A B "column c  unknown new\n" K END);
	check("ALTER TABLE t FROB a", "? \n" ID A B K END);
	check("ALTER TABLE t ADD", "? \n" ID A B K END);
	check("ALTER TABLE t ADD c INT FROB, DROP a", "? indexes \n" ID B "column c int int new\nindex k BTREE (b(5))\n" END);
	check("INSERT INTO t VALUES (1)", "? \n" ID A B K END);
	check("ALTER TABLE t ADD a INT", "? \n" ID A B K END);
	check("", "? \n" ID A B K END);
}

/* D1, D2, D3, D4 */
static void
test_text(void)
{
	static const char nul[] = "ALTER TABLE t DROP a\0";

	check_all(DDL_DIALECT_MYSQL, 0, base, nul, sizeof(nul) - 1 + 1, "indexes \n" ID B "index k BTREE (b(5))\n" END);
	check_all(DDL_DIALECT_MYSQL, DDL_MODE_ANSI_QUOTES, base, "ALTER TABLE \"t\" RENAME COLUMN \"a\" TO \"x \"\"y\"",
			  strlen("ALTER TABLE \"t\" RENAME COLUMN \"a\" TO \"x \"\"y\""),
			  "\n" ID "column x \"y int int from=1\n" B "index k BTREE (x \"y, b(5))\n" END);
	check_all(DDL_DIALECT_MYSQL, DDL_MODE_NO_BACKSLASH_ESCAPES, base, "ALTER TABLE t ADD c CHAR(5) DEFAULT 'a\\', DROP a",
			  strlen("ALTER TABLE t ADD c CHAR(5) DEFAULT 'a\\', DROP a"),
			  "indexes \n" ID B "column c char(5) char length=5 default 'a\\' new\nindex k BTREE (b(5))\n" END);
	check("/* c */ ALTER -- x\n TABLE # y\n t /*!80000 ADD */ COLUMN c INT /*!80023 INVISIBLE */ /*M! NOT NULL */",
		  "\n" ID A B "column c int int hidden new\n" K END);
	check("ALTER TABLE t ADD beginning INT COMMENT 'DROP COLUMN a, \"b\" it''s'",
		  "\n" ID A B "column beginning int int comment 'DROP COLUMN a, \"b\" it's' new\n" K END);
	check("ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'a' ', DROP b'",
		  "\n" ID A B "column c varchar(9) varchar length=9 default 'a, DROP b' new\n" K END);
}

/* D31 */
static void
test_keys(void)
{
	check("ALTER TABLE t DROP PRIMARY KEY", "key \ncolumn id int int not-null from=0\n" A B K "table\n");
	check("ALTER TABLE t DROP PRIMARY KEY, ADD CONSTRAINT p PRIMARY KEY USING BTREE (a, id)",
		  "indexes key \ncolumn id int int not-null key=2 from=0\ncolumn a int int not-null key=1 from=1\n" B K
		  "table key=2 primary\n");
	check("ALTER TABLE t DROP id, ADD u INT NOT NULL UNIQUE",
		  "indexes key \n" A B "column u int int not-null key=1 new\nindex u BTREE unique (u)\n" K "table key=1\n");
	check("CREATE UNIQUE INDEX u USING HASH ON t (b(3) DESC, (a+1)) COMMENT 'x' INVISIBLE",
		  "indexes \n" ID A B "index u BTREE unique hidden (desc b(3), <expression>)\n" K END);
	check("DROP INDEX k ON t ALGORITHM=INPLACE", "indexes \n" ID A B END);
	check("ALTER TABLE t ADD INDEX (a), ADD INDEX (a), RENAME KEY k TO a_3",
		  "indexes \n" ID A B "index a_3 BTREE (a, b(5))\nindex a BTREE (a)\nindex a_2 BTREE (a)\n" END);
}

static void
test_other_clauses(void)
{
	check("ALTER TABLE t RENAME TO s.u, ENGINE=InnoDB COMMENT='y', FORCE, ORDER BY a DESC, b, ALGORITHM=COPY, DROP a",
		  "indexes comment rename=s.u \n" ID B "index k BTREE (b(5))\ntable engine=InnoDB comment='y' key=1 primary\n");
	check("ALTER TABLE t TRUNCATE PARTITION p0, p1", "moves \n" ID A B K END);
	check("ALTER TABLE t ADD c INT PARTITION BY HASH (id) PARTITIONS 4", "\n" ID A B "column c int int new\n" K END);
	check("ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin", "charset=latin1 \n" ID A B K END);
	check("ALTER TABLE t CONVERT TO CHARACTER SET binary",
		  "charset=binary \n" ID A "column b varbinary(20) varbinary length=20 collation=63 default 'x' from=2\n" K END);
	check("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (x) ON DELETE SET NULL ON UPDATE CASCADE",
		  "indexes \n" ID A B K "foreign t_ibfk_1 (a) parent db.p (x) delete=2 update=1\n" END);
	check_all(DDL_DIALECT_MARIADB, 0, base, "SET STATEMENT max_statement_time=5 FOR ALTER TABLE IF EXISTS t WAIT 5 ADD IF NOT EXISTS a DATE, "
			  "DROP IF EXISTS zz, MODIFY IF EXISTS yy INT, DROP a, ADD SYSTEM VERSIONING",
			  strlen("SET STATEMENT max_statement_time=5 FOR ALTER TABLE IF EXISTS t WAIT 5 ADD IF NOT EXISTS a DATE, "
					 "DROP IF EXISTS zz, MODIFY IF EXISTS yy INT, DROP a, ADD SYSTEM VERSIONING"),
			  "indexes \ncolumn id int(11) int not-null key=1 from=0\n" B "index k BTREE (b(5))\ntable key=1 primary row_end='row_end'\n");
}

/* The table's default collation is not in the definition: what MODIFY leaves open is open then. */
static void
test_collation(void)
{
	static const struct
	{
		const char *change;
		uint16_t	want;
		uint16_t	have;
	} cases[] = {
		{"ALTER TABLE t MODIFY a INT", 224, 224},
		{"ALTER TABLE t CHANGE b c VARCHAR(20)", 0, 224},
		{"ALTER TABLE t RENAME COLUMN b TO c", 224, 224},
		{"ALTER TABLE t CHARACTER SET latin1", 224, 224},
		{"ALTER TABLE t CONVERT TO CHARACTER SET latin1", 0, 224},
		{"ALTER TABLE t MODIFY b VARBINARY(20)", 63, 224},
		{"ALTER TABLE t MODIFY b INT", 0, 224},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		CdcArena	arena;
		DdlTableCreate made;
		DdlTableChange changed;

		cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
		(void) ddl_table_create(base, sizeof(base) - 1, "db", 0, DDL_DIALECT_MYSQL, &arena, &made);
		made.def->columns[2].collation = cases[i].have;
		(void) ddl_table_change(cases[i].change, strlen(cases[i].change), "db", 0, DDL_DIALECT_MYSQL, made.def, &arena, &changed);
		is_int(changed.after->columns[2].collation, cases[i].want, cases[i].change);
		is_int(made.def->columns[2].collation, cases[i].have, "the table before stays as it is");
		ok(changed.after->columns[2].name != made.def->columns[2].name, "and is not pointed into");
		cdc_arena_free(&arena);
	}
}

static void
check_create(const char *text, const char *want)
{
	CdcArena	arena;
	DdlTableCreate made;
	CdcBuf		out;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	(void) ddl_table_create(text, strlen(text), "db", 0, DDL_DIALECT_MARIADB, &arena, &made);
	cdc_buf_printf(&out, "%s%s%s%s%s%s", made.def != NULL ? "table " : "", made.certain ? "" : "? ", made.as_select ? "select " : "",
				   made.if_not_exists ? "if-not-exists " : "", made.or_replace ? "or-replace " : "",
				   made.temporary ? "temporary " : "");
	if (made.def != NULL)
		cdc_buf_printf(&out, "%s.%s(%u)", made.def->schema, made.def->name, made.def->ncolumns);
	if (made.like_table != NULL)
		cdc_buf_printf(&out, "like %s.%s", made.like_schema, made.like_table);
	is_str(out.data, want, text);
	cdc_buf_free(&out);
	cdc_arena_free(&arena);
}

static void
test_create(void)
{
	check_create("CREATE TABLE t (a INT)", "table db.t(1)");
	check_create("CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS s.t (a INT, b INT)", "table if-not-exists or-replace temporary s.t(2)");
	check_create("CREATE TABLE t LIKE s.u", "like s.u");
	check_create("CREATE TABLE t (LIKE u)", "like db.u");
	check_create("CREATE TABLE t SELECT 1 AS a", "select ");
	check_create("CREATE TABLE t (a INT) ENGINE=InnoDB AS SELECT 1", "select ");
	check_create("CREATE TABLE t (a INT) ENGINE=InnoDB IGNORE SELECT 1", "select ");
	check_create("CREATE TABLE t (a INT) WITH x AS (SELECT 1) SELECT * FROM x", "select ");
	check_create("CREATE TABLE t AS (SELECT 1)", "select ");
	check_create("CREATE TABLE t (SELECT 1)", "select ");
	check_create("CREATE TABLE t (`a` int) START TRANSACTION", "table db.t(1)");
	check_create("CREATE TABLE t (a INT, LIKE b)", "table ? db.t(2)");
	check_create("CREATE TABLE t", "table ? db.t(0)");
	check_create("CREATE VIEW v AS SELECT 1", "? ");
}

/* More clauses than any server takes: read in a moment, and not believed. */
static void
test_many(void)
{
	static const char *const clauses[] = {"ADD x%d INT FIRST,", "ADD INDEX (a),", "DROP x%d,", "ADD FOREIGN KEY (a) REFERENCES p (x) ON DELETE CASCADE,"};

	for (size_t c = 0; c < sizeof(clauses) / sizeof(clauses[0]); c++)
	{
		CdcBuf		text;
		CdcArena	arena;
		DdlTableCreate made;
		DdlTableChange changed;

		cdc_buf_init(&text, &cdc_malloc_allocator, 0);
		cdc_arena_init(&arena, &cdc_malloc_allocator, 0);
		cdc_buf_add_str(&text, "ALTER TABLE t ");
		for (int i = 0; i < 20000; i++)
			cdc_buf_printf(&text, clauses[c], i);
		(void) ddl_table_create(base, sizeof(base) - 1, "db", 0, DDL_DIALECT_MYSQL, &arena, &made);
		ok(ddl_table_change(text.data, text.len, "db", 0, DDL_DIALECT_MYSQL, made.def, &arena, &changed) == CDC_OK && !changed.certain,
		   clauses[c]);
		cdc_arena_free(&arena);
		cdc_buf_free(&text);
	}
}

/* Every prefix and every damage of a text with everything in it must be read without harm, and memory that ends. */
static void
test_damage(void)
{
	static const char text[] =
		"ALTER TABLE `a``b`.c ADD (x INT(5) ZEROFILL DEFAULT -1.5e3, y ENUM('a\\'b',x'41') DEFAULT 'a''b'), CHANGE a z "
		"DECIMAL(5,2) DEFAULT (1+(2)) AFTER x, ADD s SET('a','b') DEFAULT 'b,a', ADD d DATETIME(3) DEFAULT '2020-1-2 3:4:5.6789', "
		"ADD UNIQUE KEY (b(3), z), ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p.q (x) ON DELETE CASCADE, COMMENT 'x'";
	size_t		len = sizeof(text) - 1;
	CdcBuf		out;
	char		damaged[sizeof(text)];

	cdc_buf_init(&out, &cdc_malloc_allocator, 0);
	for (size_t i = 0; i <= len; i++)
	{
		cdc_buf_reset(&out);
		show(&out, DDL_DIALECT_MARIADB, 0, base, text, i);
	}
	for (size_t i = 0; i < len; i++)
	{
		static const char bytes[] = "'\"`\\(),.;*/!#-9\0";

		for (size_t b = 0; b < sizeof(bytes); b++)
		{
			memcpy(damaged, text, len);
			damaged[i] = bytes[b];
			cdc_buf_reset(&out);
			show(&out, DDL_DIALECT_MYSQL, 0, base, damaged, len);
		}
	}
	ok(true, "damaged texts are read");
	cdc_buf_free(&out);

	for (size_t limit = 0; limit < 60000; limit += 331)
	{
		CdcArena	arena;
		DdlTableCreate made;
		DdlTableChange changed;
		CdcStatus	status;

		cdc_arena_init(&arena, &cdc_malloc_allocator, limit + 1);
		status = ddl_table_create(base, sizeof(base) - 1, "db", 0, DDL_DIALECT_MYSQL, &arena, &made);
		if (status == CDC_OK)
			status = ddl_table_change(text, len, "db", 0, DDL_DIALECT_MYSQL, made.def, &arena, &changed);
		if (status != CDC_OK && status != CDC_NOMEM)
			ok(false, "memory that ends is told");
		cdc_arena_free(&arena);
	}
	ok(true, "memory that ends does no harm");
}

int
main(void)
{
	test_columns();
	test_uncertain();
	test_text();
	test_keys();
	test_other_clauses();
	test_collation();
	test_create();
	test_many();
	test_damage();
	return done_testing();
}
