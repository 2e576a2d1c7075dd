/*-------------------------------------------------------------------------
 *
 * mysql_sum.h
 *	  A number for each row that the source computes, so that many rows can be
 *	  compared without being read.
 *
 * NOTES
 *	  The number is the first 64 bits of the SHA-256 of a text of the row; the sum
 *	  of the numbers of some rows, modulo 2^64, does not depend on their order. The
 *	  text, of the columns that are wanted, in the order of the definition:
 *
 *	    head ":" bodies
 *
 *	  The head has one field for each column, with commas between them: N for a
 *	  NULL; for numbers, dates, times and uuids the value; for texts and binary strings the
 *	  length of their bytes. The bodies are the bytes of texts (as UTF-8) and binary
 *	  strings, one behind the other. Fields of the head have no commas, so two
 *	  different rows have different texts. X stands for a value that has no such form:
 *	  it never comes out equal.
 *
 *	  schema/schema_sum.c makes the same number of a row here. MD5 would do, but
 *	  MySQL 9 has no MD5() any more.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_SUM_H
#define CDC_MYSQL_SUM_H

#include "postgres.h"

#include "core/table_def.h"

typedef enum MysqlSumForm
{
	MYSQL_SUM_NONE,				/* the servers print it differently: FLOAT, DOUBLE, JSON, ... */
	MYSQL_SUM_HEAD,				/* its text stands in the head */
	MYSQL_SUM_BODY				/* its bytes stand in the bodies */
} MysqlSumForm;

extern MysqlSumForm mysql_sum_form(const CdcColumnDef *column);

/*
 * Expression for the number of a row, over the columns for which wanted is set,
 * at least one; all of them have a form. palloc'd.
 */
extern char *mysql_sum_expression(const CdcTableDef *def, const bool *wanted);

/* A sum of such numbers as the server prints it, modulo 2^64; NULL: no rows. False when it is no number. */
extern bool mysql_sum_parse(const char *text, uint64 *sum);

#endif							/* CDC_MYSQL_SUM_H */
