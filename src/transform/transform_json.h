/*-------------------------------------------------------------------------
 *
 * transform_json.h
 *	  Options that are arrays of objects (routes, transforms): one member of such an
 *	  array, and what it says.
 *
 * NOTES
 *	  What is not of the right form is an error that names the option and the
 *	  number of the member. Results are palloc'd, in the database's encoding; no
 *	  transaction is needed.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_JSON_H
#define CDC_TRANSFORM_JSON_H

#include "postgres.h"
#include "nodes/pg_list.h"
#include "utils/jsonb.h"

typedef struct TransformJson
{
	const char *option;
	int			number;			/* its place in the option, from 1 */
	JsonbContainer *object;
} TransformJson;

/*
 * The option's text (NULL: not given) -> List of TransformJson. names: what its members may say, "a, b, c"; example: a whole
 * member.
 */
extern List *transform_json_read(const char *option, const char *json, const char *names, const char *example);

/* What a member says; NULL, NIL or false when it does not. hint: how it is written. */
extern char *transform_json_text(const TransformJson *json, const char *name, const char *hint);
extern bool transform_json_bool(const TransformJson *json, const char *name, const char *hint);
extern List *transform_json_texts(const TransformJson *json, const char *name, bool or_text, const char *hint);

/* Patterns of tables, one text or several, of which one at least takes tables in. */
extern List *transform_json_patterns(const TransformJson *json, const char *name);

extern _Noreturn void transform_json_throw(const char *option, int number, const char *detail, const char *hint);

#endif							/* CDC_TRANSFORM_JSON_H */
