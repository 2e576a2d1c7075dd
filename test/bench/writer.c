/*-------------------------------------------------------------------------
 *
 * writer.c
 *	  Insert rows at a steady rate, each with the time at which it was sent.
 *
 * NOTES
 *	  writer SOCKET USER FIRST_ID RATE SECONDS TX_ROWS
 *
 *	  Writes into bench.tick (id, sent_us, pad): transactions of TX_ROWS rows,
 *	  RATE rows per second in all. Times are microseconds since 1970 of the
 *	  system's clock, taken just before a statement is sent: what is measured
 *	  from there holds the source's own commit too. When a transaction is due is
 *	  told by the clock and not by when the one before it was done, so that a
 *	  stall is made up for and shows. Prints rows, seconds, and by how many
 *	  milliseconds a transaction was sent late at worst.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <mysql.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROW_TEXT_MAX 200

static int64_t
now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void
wait_until(int64_t due_us)
{
	struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0)
		;
}

int
main(int argc, char **argv)
{
	MYSQL	   *mysql = mysql_init(NULL);
	int64_t		first;
	int64_t		rate;
	int64_t		total;
	int64_t		tx_rows;
	int64_t		start;
	int64_t		late = 0;
	char	   *sql;

	if (argc != 7 || mysql == NULL)
	{
		fprintf(stderr, "usage: writer SOCKET USER FIRST_ID RATE SECONDS TX_ROWS\n");
		return 2;
	}
	first = atoll(argv[3]);
	rate = atoll(argv[4]);
	total = rate * atoll(argv[5]);
	tx_rows = atoll(argv[6]);
	sql = malloc(64 + (size_t) tx_rows * ROW_TEXT_MAX);
	if (sql == NULL || mysql_real_connect(mysql, NULL, argv[2], "", "bench", 0, argv[1], 0) == NULL)
	{
		fprintf(stderr, "writer: could not connect: %s\n", mysql_error(mysql));
		return 1;
	}

	start = now_us(CLOCK_MONOTONIC);
	for (int64_t sent = 0; sent < total; sent += tx_rows)
	{
		int64_t		due = start + sent * 1000000 / rate;
		int64_t		behind = now_us(CLOCK_MONOTONIC) - due;
		int64_t		time_us;
		int			len = sprintf(sql, "insert into tick (id, sent_us, pad) values ");

		if (behind < 0)
			wait_until(due);
		else if (behind > late)
			late = behind;
		time_us = now_us(CLOCK_REALTIME);
		for (int64_t i = 0; i < tx_rows; i++)
			len += sprintf(sql + len, "%s(%lld,%lld,'%080lld')", i > 0 ? "," : "",
						   (long long) (first + sent + i), (long long) time_us, (long long) sent);
		if (mysql_real_query(mysql, sql, (unsigned long) len) != 0)
		{
			fprintf(stderr, "writer: %s\n", mysql_error(mysql));
			return 1;
		}
	}
	printf("%lld %.3f %.1f\n", (long long) total, (now_us(CLOCK_MONOTONIC) - start) / 1e6, late / 1e3);
	mysql_close(mysql);
	free(sql);
	return 0;
}
