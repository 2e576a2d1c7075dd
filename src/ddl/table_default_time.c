/*-------------------------------------------------------------------------
 *
 * table_default_time.c
 *	  Literals of dates and times, in the many forms that the servers take,
 *	  as they print them.
 *
 * NOTES
 *	  2020-1-2, 20200102, '2020-01-02T03:04:05.678', 99 of a YEAR, '1:2' of a TIME.
 *	  MySQL rounds a fraction that is too long, MariaDB cuts it, and sql_mode can turn
 *	  both around. A TIMESTAMP is meant in the time zone of the session, which is
 *	  not looked for: only the zero date of it is decided.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "ddl/table_draft.h"

#define MICROSECONDS 1000000
#define MAX_TEXT 40

/* Six groups of digits and a fraction. */
typedef struct Parts
{
	bool		negative;
	unsigned	year;
	unsigned	month;
	unsigned	day;
	unsigned	hour;
	unsigned	minute;
	unsigned	second;
	unsigned	micros;			/* six digits */
	unsigned	below;			/* the digit behind them */
} Parts;

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static unsigned
take(const char **p, int digits)
{
	unsigned	number = 0;

	for (int i = 0; i < digits && is_digit(**p); i++)
		number = number * 10 + (unsigned) (*(*p)++ - '0');
	return number;
}

static int
count_digits(const char *p)
{
	int			n = 0;

	while (is_digit(p[n]))
		n++;
	return n;
}

/* ".678" at *p, or nothing. */
static void
read_fraction(const char **p, Parts *parts)
{
	int			digits = 0;

	if (**p != '.')
		return;
	for ((*p)++; is_digit(**p); (*p)++, digits++)
	{
		if (digits < 6)
			parts->micros = parts->micros * 10 + (unsigned) (**p - '0');
		else if (digits == 6)
			parts->below = (unsigned) (**p - '0');
	}
	for (; digits < 6; digits++)
		parts->micros *= 10;
}

static unsigned
full_year(unsigned year)
{
	return year + (year < 70 ? 2000 : 1900);
}

/* YYYYMMDD, YYMMDD, YYYYMMDDHHMMSS, YYMMDDHHMMSS */
static bool
read_packed(const char **p, int digits, Parts *parts)
{
	bool		long_year = digits == 8 || digits == 14;

	if (digits != 6 && digits != 8 && digits != 12 && digits != 14)
		return false;
	parts->year = take(p, long_year ? 4 : 2);
	if (!long_year)
		parts->year = full_year(parts->year);
	parts->month = take(p, 2);
	parts->day = take(p, 2);
	parts->hour = take(p, 2);
	parts->minute = take(p, 2);
	parts->second = take(p, 2);
	return true;
}

/* Skip one sign between two groups; false when there is none. */
static bool
skip_sign(const char **p)
{
	if (**p == '\0' || is_digit(**p) || ((unsigned char) **p & 0x80) != 0)
		return false;
	(*p)++;
	return is_digit(**p);
}

static bool
read_datetime(const char *p, Parts *parts)
{
	int			digits = count_digits(p);

	if (digits > 4)
	{
		if (!read_packed(&p, digits, parts))
			return false;
	}
	else
	{
		if (digits == 0)
			return false;
		parts->year = take(&p, 4);
		if (digits <= 2)
			parts->year = full_year(parts->year);
		if (!skip_sign(&p))
			return false;
		parts->month = take(&p, 2);
		if (!skip_sign(&p))
			return false;
		parts->day = take(&p, 2);
		while (*p == ' ' && p[1] == ' ')
			p++;
		if (*p != '\0' && *p != '.')
		{
			if (!skip_sign(&p))
				return false;
			parts->hour = take(&p, 2);
			if (*p != '\0' && *p != '.')
			{
				if (!skip_sign(&p))
					return false;
				parts->minute = take(&p, 2);
			}
			if (*p != '\0' && *p != '.')
			{
				if (!skip_sign(&p))
					return false;
				parts->second = take(&p, 2);
			}
		}
	}
	read_fraction(&p, parts);
	return *p == '\0' && parts->month <= 12 && parts->day <= 31 && parts->hour <= 23 && parts->minute <= 59 &&
		parts->second <= 59;
}

/* [-][D ]HH:MM[:SS], or digits that are HHMMSS from the right */
static bool
read_time(const char *p, Parts *parts)
{
	int			digits;

	if (*p == '-')
	{
		parts->negative = true;
		p++;
	}
	digits = count_digits(p);
	if (digits == 0 || digits > 7)
		return false;
	if (p[digits] == ' ' && is_digit(p[digits + 1]))
	{
		parts->day = take(&p, 2);
		p++;
		digits = count_digits(p);
	}
	if (p[digits] == ':')
	{
		parts->hour = take(&p, 3);
		if (*p++ != ':' || !is_digit(*p))
			return false;
		parts->minute = take(&p, 2);
		if (*p == ':')
		{
			p++;
			parts->second = take(&p, 2);
		}
	}
	else if (parts->day > 0)
		parts->hour = take(&p, 3);
	else
	{
		unsigned	number = take(&p, 7);

		parts->second = number % 100;
		parts->minute = number / 100 % 100;
		parts->hour = number / 10000;
	}
	read_fraction(&p, parts);
	parts->hour += parts->day * 24;
	return *p == '\0' && parts->hour <= 838 && parts->minute <= 59 && parts->second <= 59;
}

/* Bring the fraction to the column's digits. False when that would reach over midnight, or the end of the range. */
static bool
fit_fraction(const DdlDraft *d, const CdcColumnDef *column, Parts *parts)
{
	bool		rounds = d->dialect == DDL_DIALECT_MARIADB
		? (d->sql_mode & DDL_MODE_MARIADB_ROUND) != 0
		: (d->sql_mode & DDL_MODE_MYSQL_TRUNCATE) == 0;
	unsigned	unit = 1;

	for (int i = column->type == CDC_TYPE_DATE ? 6 : column->scale; i < 6; i++)
		unit *= 10;
	if (column->type == CDC_TYPE_DATE)
		return true;
	if (rounds && (unit > 1 ? parts->micros % unit >= unit / 2 : parts->below >= 5))
		parts->micros += unit;
	parts->micros -= parts->micros % unit;
	if (parts->micros < MICROSECONDS)
		return true;
	parts->micros -= MICROSECONDS;
	if (++parts->second < 60)
		return true;
	parts->second = 0;
	if (++parts->minute < 60)
		return true;
	parts->minute = 0;
	return ++parts->hour < 24;
}

static void
add_fraction(const CdcColumnDef *column, const Parts *parts, char *out, size_t size)
{
	size_t		len = strlen(out);
	char		digits[8];

	if (column->scale == 0 || column->scale > 6)
		return;
	snprintf(digits, sizeof(digits), "%06u", parts->micros % MICROSECONDS);
	snprintf(out + len, size - len, ".%.*s", column->scale, digits);
}

static bool
format_year(const DdlValue *value, const char *text, char *out, size_t size)
{
	int			digits = count_digits(text);
	unsigned	year = take(&text, 4);

	if (digits == 0 || digits > 4 || *text != '\0')
		return false;
	/* 0 is a year of its own, '0' is 2000 */
	if (digits <= 2 && (year != 0 || value->kind == DDL_VALUE_STRING))
		year = full_year(year);
	snprintf(out, size, "%04u", year);
	return true;
}

/* A number may have lost its zeros in front. */
static bool
pad_number(char *text)
{
	int			have = count_digits(text);
	int			want = have <= 6 ? 6 : have <= 8 ? 8 : have <= 12 ? 12 : 14;

	if (have > 14)
		return false;
	if (have == 1 && text[0] == '0')
		want = 8;				/* the zero date */
	memmove(text + (want - have), text, strlen(text) + 1);
	memset(text, '0', (size_t) (want - have));
	return true;
}

bool
ddl_format_time(const DdlDraft *d, const CdcColumnDef *column, const DdlValue *value, char *out, size_t size)
{
	char		text[MAX_TEXT + 16];
	const char *digits = value->text;
	size_t		len = value->len;
	Parts		parts;

	memset(&parts, 0, sizeof(parts));
	if (value->kind != DDL_VALUE_STRING && value->kind != DDL_VALUE_NUMBER && value->kind != DDL_VALUE_BOOLEAN)
		return false;
	while (len > 0 && *digits == ' ')
	{
		digits++;
		len--;
	}
	while (len > 0 && digits[len - 1] == ' ')
		len--;
	if (len == 0 || len > MAX_TEXT || memchr(digits, '\0', len) != NULL)
		return false;
	memcpy(text, digits, len);
	text[len] = '\0';
	if (column->type == CDC_TYPE_YEAR)
		return format_year(value, text, out, size);
	if (column->type == CDC_TYPE_TIME)
	{
		if (!read_time(text, &parts) || !fit_fraction(d, column, &parts))
			return false;
		snprintf(out, size, "%s%02u:%02u:%02u", parts.negative ? "-" : "", parts.hour, parts.minute, parts.second);
		add_fraction(column, &parts, out, size);
		return true;
	}
	if (value->kind != DDL_VALUE_STRING && !pad_number(text))
		return false;
	if (!read_datetime(text, &parts) || !fit_fraction(d, column, &parts))
		return false;
	if (column->type == CDC_TYPE_TIMESTAMP && (parts.year != 0 || parts.month != 0 || parts.day != 0))
		return false;
	snprintf(out, size, "%04u-%02u-%02u", parts.year, parts.month, parts.day);
	if (column->type != CDC_TYPE_DATE)
	{
		snprintf(out + 10, size - 10, " %02u:%02u:%02u", parts.hour, parts.minute, parts.second);
		add_fraction(column, &parts, out, size);
	}
	return true;
}
