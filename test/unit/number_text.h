/*-------------------------------------------------------------------------
 *
 * number_text.h
 *	  Texts of floating point numbers, for formats that are tested without the
 *	  backend's: they read back as the number, and are not the shortest.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_NUMBER_TEXT_H
#define CDC_TEST_NUMBER_TEXT_H

#include <stdio.h>

#include "format/format.h"

static inline int
double_text(double value, char *text)
{
	return snprintf(text, CDC_FORMAT_NUMBER_MAX, "%.17g", value);
}

static inline int
float_text(float value, char *text)
{
	return snprintf(text, CDC_FORMAT_NUMBER_MAX, "%.9g", (double) value);
}

#endif							/* CDC_TEST_NUMBER_TEXT_H */
