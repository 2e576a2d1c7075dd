/*-------------------------------------------------------------------------
 *
 * util_role.c
 *	  Become another role for a while, in a security-restricted operation.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "util/util_role.h"

void
util_role_switch_begin(Oid role, UtilRoleSwitch *sw)
{
	sw->active = OidIsValid(role);
	if (!sw->active)
		return;

	GetUserIdAndSecContext(&sw->userid, &sw->sec_context);
	SetUserIdAndSecContext(role, sw->sec_context | SECURITY_RESTRICTED_OPERATION);
	sw->guc_level = NewGUCNestLevel();
}

void
util_role_switch_end(const UtilRoleSwitch *sw)
{
	if (!sw->active)
		return;

	AtEOXact_GUC(false, sw->guc_level);
	SetUserIdAndSecContext(sw->userid, sw->sec_context);
}
