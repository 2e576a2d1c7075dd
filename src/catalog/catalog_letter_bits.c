/*-------------------------------------------------------------------------
 *
 * catalog_letter_bits.c
 *	  Which keys may have open dead letters: a bitmap of their hashes.
 *
 * NOTES
 *	  It has one size, however many letters there are, and only gains bits: those of
 *	  letters that are settled cost a look that finds nothing.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog_dead_letter.h"
#include "compat/pg_compat.h"

/* Two bits for each key, so that a hundred thousand letters leave one look in twenty-five. */
#define BITMAP_BITS (1 << 20)

static uint32
bit_of(int32 table_id, const bytea *key, int which)
{
	uint32		hash;

	memcpy(&hash, VARDATA_ANY(key) + which * sizeof(hash), sizeof(hash));
	return (hash ^ ((uint32) table_id * 2654435761u)) % BITMAP_BITS;
}

uint8 *
catalog_letter_bits_make(void)
{
	return palloc0(BITMAP_BITS / 8);
}

void
catalog_letter_bits_add(uint8 *bits, int32 table_id, const bytea *key)
{
	for (int i = 0; i < 2; i++)
	{
		uint32		bit = bit_of(table_id, key, i);

		bits[bit / 8] |= 1 << bit % 8;
	}
}

bool
catalog_letter_bits_may_have(const uint8 *bits, int32 table_id, const bytea *key)
{
	for (int i = 0; i < 2; i++)
	{
		uint32		bit = bit_of(table_id, key, i);

		if ((bits[bit / 8] & 1 << bit % 8) == 0)
			return false;
	}
	return true;
}
