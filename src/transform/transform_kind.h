/*-------------------------------------------------------------------------
 *
 * transform_kind.h
 *	  Kinds of targets other than mirrors: the columns that they add to a
 *	  projection.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRANSFORM_KIND_H
#define CDC_TRANSFORM_KIND_H

#include "postgres.h"

#include "transform/transform_table.h"

/*
 * Add the columns of the rule's kind behind those of the projection, with the values that a row has which is there. Throws
 * when a table cannot be of that kind.
 */
extern void transform_kind_add(TransformTable *table);

/* "soft_delete", ... */
extern const char *transform_kind_name(TransformKind kind);

#endif							/* CDC_TRANSFORM_KIND_H */
