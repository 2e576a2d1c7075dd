/*-------------------------------------------------------------------------
 *
 * iso_time.c
 *	  Dates and times as ISO 8601 text.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "format/iso_time.h"

#include <string.h>

#define MICROS_PER_SECOND INT64_C(1000000)
#define MICROS_PER_DAY (INT64_C(86400) * MICROS_PER_SECOND)

/* From 0000-03-01 to 2000-01-01 in the Gregorian calendar. */
#define DAYS_TO_2000 730425
#define DAYS_PER_400_YEARS 146097

#define DAYS_1970_TO_2000 10957

static char *
add_digits(char *p, uint32_t value, int width)
{
	for (int i = width - 1; i >= 0; i--)
	{
		p[i] = (char) ('0' + value % 10);
		value /= 10;
	}
	return p + width;
}

static char *
add_word(char *p, const char *word)
{
	size_t		len = strlen(word);

	memcpy(p, word, len);
	return p + len;
}

/*
 * Year, month and day; returns whether the year is one before 1, which is then
 * given as PostgreSQL counts: 1 BC is the year before 1.
 *
 * Years are counted from the first of March, so that a leap day is the last one
 * of its year, and the months from there have 153 days in each run of five.
 */
static char *
add_date(char *p, int64_t days, bool *bc)
{
	int64_t		from_march = days + DAYS_TO_2000;
	int64_t		era = (from_march >= 0 ? from_march : from_march - (DAYS_PER_400_YEARS - 1)) / DAYS_PER_400_YEARS;
	uint32_t	in_era = (uint32_t) (from_march - era * DAYS_PER_400_YEARS);
	uint32_t	year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	uint32_t	in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	uint32_t	from_march_month = (5 * in_year + 2) / 153;
	uint32_t	day = in_year - (153 * from_march_month + 2) / 5 + 1;
	uint32_t	month = from_march_month < 10 ? from_march_month + 3 : from_march_month - 9;
	int64_t		year = year_of_era + era * 400 + (month <= 2);
	int			width = 4;

	*bc = year <= 0;
	if (*bc)
		year = 1 - year;
	for (int64_t limit = 10000; width < 9 && year >= limit; limit *= 10)
		width++;
	p = add_digits(p, (uint32_t) year, width);
	*p++ = '-';
	p = add_digits(p, month, 2);
	*p++ = '-';
	return add_digits(p, day, 2);
}

static char *
add_time(char *p, int64_t micros)
{
	uint32_t	seconds = (uint32_t) (micros / MICROS_PER_SECOND);
	uint32_t	fraction = (uint32_t) (micros % MICROS_PER_SECOND);

	p = add_digits(p, seconds / 3600, 2);
	*p++ = ':';
	p = add_digits(p, seconds / 60 % 60, 2);
	*p++ = ':';
	p = add_digits(p, seconds % 60, 2);
	if (fraction != 0)
	{
		*p++ = '.';
		p = add_digits(p, fraction, 6);
		while (p[-1] == '0')
			p--;
	}
	return p;
}

static size_t
finish(char *text, char *p)
{
	*p = '\0';
	return (size_t) (p - text);
}

size_t
iso_date(int32_t days, char *text)
{
	char	   *p = text;
	bool		bc = false;

	if (days == INT32_MIN)
		p = add_word(p, "-infinity");
	else if (days == INT32_MAX)
		p = add_word(p, "infinity");
	else
		p = add_date(p, days, &bc);
	if (bc)
		p = add_word(p, " BC");
	return finish(text, p);
}

size_t
iso_timestamp(int64_t micros, bool utc, char *text)
{
	char	   *p = text;

	if (micros == INT64_MIN)
		p = add_word(p, "-infinity");
	else if (micros == INT64_MAX)
		p = add_word(p, "infinity");
	else
	{
		int64_t		days = micros / MICROS_PER_DAY;
		int64_t		rest = micros % MICROS_PER_DAY;
		bool		bc;

		if (rest < 0)
		{
			rest += MICROS_PER_DAY;
			days--;
		}
		p = add_date(p, days, &bc);
		*p++ = 'T';
		p = add_time(p, rest);
		if (utc)
			*p++ = 'Z';
		if (bc)
			p = add_word(p, " BC");
	}
	return finish(text, p);
}

/* Of a time that is not within a day, only the day's part is told: hours are two digits. */
size_t
iso_time(int64_t micros, char *text)
{
	if (micros < 0 || micros > MICROS_PER_DAY)
		micros = ((micros % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
	return finish(text, add_time(text, micros));
}

size_t
iso_unix_time(int64_t micros, char *text)
{
	const int64_t shift = DAYS_1970_TO_2000 * MICROS_PER_DAY;

	return iso_timestamp(micros < INT64_MIN + 1 + shift ? INT64_MIN + 1 : micros - shift, true, text);
}
