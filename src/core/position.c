/*-------------------------------------------------------------------------
 *
 * position.c
 *	  Compare, print and parse binary log positions.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/position.h"

#include <stdio.h>
#include <string.h>

/* Length of the name before its ".number"; *number is 0 and the whole length returned when there is none. */
static size_t
split_file_name(const char *file, uint64_t *number)
{
	size_t len = strlen(file);
	size_t i = len;
	uint64_t value = 0;

	*number = 0;
	while (i > 0 && file[i - 1] >= '0' && file[i - 1] <= '9')
		i--;
	if (i == len || i == 0 || file[i - 1] != '.' || len - i > 18)
		return len;
	for (size_t k = i; k < len; k++)
		value = value * 10 + (uint64_t) (file[k] - '0');
	*number = value;
	return i;
}

bool
cdc_position_compare(const CdcPosition *a, const CdcPosition *b, int *result)
{
	uint64_t anum;
	uint64_t bnum;
	size_t alen = split_file_name(a->file, &anum);
	size_t blen = split_file_name(b->file, &bnum);

	if (alen != blen || memcmp(a->file, b->file, alen) != 0)
		return false;
	if (anum != bnum)
		*result = anum < bnum ? -1 : 1;
	else if (a->offset != b->offset)
		*result = a->offset < b->offset ? -1 : 1;
	else
		*result = 0;
	return true;
}

void
cdc_position_format(const CdcPosition *pos, char *out)
{
	if (!cdc_position_is_known(pos))
		out[0] = '\0';
	else
		snprintf(out, CDC_POSITION_TEXT_MAX, "%s:%llu", pos->file,
		         (unsigned long long) pos->offset);
}

bool
cdc_position_parse(const char *text, CdcPosition *pos)
{
	const char *colon = strrchr(text, ':');
	uint64_t offset = 0;

	if (colon == NULL || colon == text || colon[1] == '\0' ||
	    (size_t) (colon - text) > CDC_FILE_NAME_MAX)
		return false;
	for (const char *p = colon + 1; *p != '\0'; p++)
	{
		if (*p < '0' || *p > '9')
			return false;
		if (offset > (UINT64_MAX - (uint64_t) (*p - '0')) / 10)
			return false;
		offset = offset * 10 + (uint64_t) (*p - '0');
	}
	memcpy(pos->file, text, (size_t) (colon - text));
	pos->file[colon - text] = '\0';
	pos->offset = offset;
	pos->born = 0;
	return true;
}
