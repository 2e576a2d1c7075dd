/*-------------------------------------------------------------------------
 *
 * format_avro.h
 *	  What the files of Avro share.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FORMAT_FORMAT_AVRO_H
#define CDC_FORMAT_FORMAT_AVRO_H

#include "format/format.h"

/* in format_avro_schema.c */

/* The schemas of the record's value and key, and their numbers, made when they are not there. */
extern CdcFormatCached *format_avro_schemas(CdcFormat *format, const CdcRecord *record);

/* How are a column's values written: as a decimal, as a string or bytes? */
extern bool format_avro_is_decimal(const CdcFormat *format, const CdcOutColumn *column);
extern bool format_avro_is_text(const CdcFormat *format, const CdcOutColumn *column);

#endif							/* CDC_FORMAT_FORMAT_AVRO_H */
