/*-------------------------------------------------------------------------
 *
 * transform_parse.h
 *	  Text of a projection or filter -> raw parse trees.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_PARSE_H
#define CDC_TRANSFORM_PARSE_H

#include "postgres.h"
#include "nodes/parsenodes.h"

#include "transform/transform_rule.h"

/* One item of a projection. */
typedef struct TransformItem
{
	char	   *name;			/* of the column it makes; NULL: this is "*" */
	Node	   *expr;			/* raw */
} TransformItem;

/* Items of a rule's projection, one "*" when it has none; throws what cannot be one. */
extern List *transform_parse_projection(const TransformRule *rule);

/* The raw expression of a rule's filter; NULL when it has none. */
extern Node *transform_parse_filter(const TransformRule *rule);

/* The text that places in these trees count from, for ParseState.p_sourcetext. */
extern char *transform_parse_source(const char *text);

/* An error context that tells which text an error is about, and where in it. */
typedef struct TransformFrame
{
	ErrorContextCallback callback;
	const TransformRule *rule;
	const char *what;			/* "projection", "filter" */
	const char *text;
} TransformFrame;

extern void transform_frame_push(TransformFrame *frame, const TransformRule *rule, const char *what, const char *text);
extern void transform_frame_pop(const TransformFrame *frame);

#endif							/* CDC_TRANSFORM_PARSE_H */
