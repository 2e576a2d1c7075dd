/*-------------------------------------------------------------------------
 *
 * utf8.h
 *	  Is it UTF-8? Names and messages made of a server's bytes have to be.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_UTF8_H
#define CDC_CORE_UTF8_H

#include "core/status.h"

/*
 * Bytes of the character at p, of which there are left (at least one): 1 to 4,
 * or 0 when it is none in the shortest form or is no character.
 */
extern size_t cdc_utf8_char(const uint8_t *p, size_t left);

extern bool cdc_utf8_is_valid(const void *data, size_t len);

/* Put a question mark in place of every byte that is none of a character. */
extern void cdc_utf8_repair(char *text);

#endif							/* CDC_CORE_UTF8_H */
