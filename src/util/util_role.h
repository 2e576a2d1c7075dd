/*-------------------------------------------------------------------------
 *
 * util_role.h
 *	  Become another role for a while, in a security-restricted operation.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_ROLE_H
#define CDC_UTIL_ROLE_H

#include "postgres.h"

/* The state of a switch of roles; active is false when there is none. */
typedef struct UtilRoleSwitch
{
	bool		active;
	Oid			userid;
	int			sec_context;
	int			guc_level;
} UtilRoleSwitch;

/* Become that role, with settings that last until the end; InvalidOid: stay who you are. */
extern void util_role_switch_begin(Oid role, UtilRoleSwitch *sw);

/* And oneself again. Not called after an error: ending the (sub)transaction restores role and settings. */
extern void util_role_switch_end(const UtilRoleSwitch *sw);

#endif							/* CDC_UTIL_ROLE_H */
