/*-------------------------------------------------------------------------
 *
 * decode_letter.c
 *	  Changes, and rows of a copy, whose expressions throw: handed to whoever
 *	  keeps them, so that all others go on.
 *
 * NOTES
 *	  Only where somebody keeps them and users' expressions are run is a
 *	  subtransaction spent on each.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decode/decode_private.h"
#include "util/util_error.h"

/* Is an error about the row, so that the others go on without it? */
static bool
is_of_row(int sqlstate)
{
	return util_error_class(sqlstate) == UTIL_ERROR_DATA && ERRCODE_TO_CATEGORY(sqlstate) != ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR);
}

bool
decode_letter_is_wanted(const DecodeState *state, const DecodeRelation *entry)
{
	return state != NULL && state->keep != NULL && entry->transform != NULL;
}

ErrorData *
decode_letter_try(const DecodeState *state, const DecodeRelation *entry, UtilStep step, void *arg)
{
	ErrorData  *edata = NULL;

	if (decode_letter_is_wanted(state, entry))
		edata = util_subtransaction(step, arg, true);
	else
		step(arg);
	if (edata != NULL && !is_of_row(edata->sqlerrcode))
		ReThrowError(edata);
	return edata;
}

bool
decode_letter_keep(const DecodeState *state, const DecodeRelation *entry, const DecodeRow *old, const DecodeRow *new, DecodeLetter *letter)
{
	decode_transform_name(entry, &letter->schema, &letter->name);
	if (old != NULL)
		letter->before = decode_transform_image(entry, old, true);
	if (new != NULL)
		letter->after = decode_transform_image(entry, new, false);
	return state->keep(state->emit_arg, letter);
}
