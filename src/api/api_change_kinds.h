/*-------------------------------------------------------------------------
 *
 * api_change_kinds.h
 *	  Which kinds of changes of tables a statement makes.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_API_CHANGE_KINDS_H
#define CDC_API_CHANGE_KINDS_H

#include "postgres.h"
#include "nodes/nodes.h"

/* CATALOG_CHANGE_BITs of what a statement does to tables that are there after it; 0: none that has a name. */
extern uint32 api_change_kinds(const Node *statement);

#endif							/* CDC_API_CHANGE_KINDS_H */
