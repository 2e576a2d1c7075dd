/*-------------------------------------------------------------------------
 *
 * util_spi.h
 *	  Statements of ours, by SPI.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_SPI_H
#define CDC_UTIL_SPI_H

#include "postgres.h"

/* Run a statement; the caller is connected to SPI. Throws what the statement throws. */
extern void util_spi_run(const char *sql);

#endif							/* CDC_UTIL_SPI_H */
