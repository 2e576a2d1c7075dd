/*-------------------------------------------------------------------------
 *
 * position.h
 *	  A point in a binary log: file name and 64-bit offset.
 *
 * NOTES
 *	  Offsets count bytes since the start of the file and may pass 4 GiB
 *	  although the log's own end positions are 32 bits wide. File names are
 *	  compared by base name and then by number ("mysql-bin.999999" comes before
 *	  "mysql-bin.1000000").
 *
 *	  After a reset of the log the same names and offsets come again. What tells
 *	  such files apart is when they were born: the time in the header of a file's
 *	  format description event, which is sent also when reading begins further
 *	  on. It takes no part in comparing, printing and parsing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_POSITION_H
#define CDC_CORE_POSITION_H

#include "core/status.h"

#define CDC_FILE_NAME_MAX 255
#define CDC_POSITION_TEXT_MAX (CDC_FILE_NAME_MAX + 24)

typedef struct CdcPosition
{
	char		file[CDC_FILE_NAME_MAX + 1];	/* "" when not known */
	uint64_t	offset;
	uint32_t	born;			/* of the file, in seconds since 1970; 0 when not known */
} CdcPosition;

static inline bool
cdc_position_is_known(const CdcPosition *pos)
{
	return pos->file[0] != '\0';
}

/*
 * Compare two known positions: *result is below, equal to or above 0. Returns
 * false when the file names have different bases, so that no order exists.
 */
extern bool cdc_position_compare(const CdcPosition *a, const CdcPosition *b, int *result);

/* "file:offset" into out (CDC_POSITION_TEXT_MAX bytes); "" when not known. */
extern void cdc_position_format(const CdcPosition *pos, char *out);

/* Parse "file:offset"; false when text is not of that form. */
extern bool cdc_position_parse(const char *text, CdcPosition *pos);

#endif							/* CDC_CORE_POSITION_H */
