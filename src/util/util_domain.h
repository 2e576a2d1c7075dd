/*-------------------------------------------------------------------------
 *
 * util_domain.h
 *	  The message domain of our errors: what tells them from those of
 *	  PostgreSQL and of other extensions. Included before each file that includes
 *	  postgres.h, by the Makefile.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_UTIL_DOMAIN_H
#define CDC_UTIL_DOMAIN_H

#include "postgres.h"

#undef TEXTDOMAIN
#define TEXTDOMAIN "cdc_bridge"

#endif							/* CDC_UTIL_DOMAIN_H */
