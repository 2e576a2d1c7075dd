/*-------------------------------------------------------------------------
 *
 * gtid.h
 *	  Global transaction ids of both families, and sets of them.
 *
 * NOTES
 *	  MySQL: a set of intervals per (server uuid, tag), text
 *	  "uuid[:tag]:1-5:7,uuid2:1-3" as @@gtid_executed prints it (white space
 *	  and line feeds are accepted, upper case too). MariaDB: the last
 *	  "domain-server-sequence" per (domain, server), text "0-1-5,1-1-7" as
 *	  @@gtid_binlog_pos and @@gtid_binlog_state print it.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CORE_GTID_H
#define CDC_CORE_GTID_H

#include "core/buf.h"

typedef enum CdcGtidKind
{
	CDC_GTID_NONE = 0,			/* anonymous: the server writes no GTIDs */
	CDC_GTID_MYSQL,
	CDC_GTID_MARIADB
} CdcGtidKind;

#define CDC_GTID_TAG_MAX 32
#define CDC_GTID_TEXT_MAX 128

typedef struct CdcGtid
{
	CdcGtidKind kind;
	uint8_t		uuid[16];		/* MySQL */
	char		tag[CDC_GTID_TAG_MAX + 1];	/* MySQL 8.3 and later; "" when untagged */
	uint32_t	domain;			/* MariaDB */
	uint32_t	server_id;		/* MariaDB */
	uint64_t	sequence;		/* MySQL gno, MariaDB sequence number */
} CdcGtid;

/* May it be a tag? "" may, as none; else letters in lower case, digits and underscores, and no digit first. */
extern bool cdc_gtid_tag_is_valid(const char *tag, size_t len);

/* Text of one GTID into out (CDC_GTID_TEXT_MAX bytes); "" for CDC_GTID_NONE. */
extern void cdc_gtid_format(const CdcGtid *gtid, char *out);

typedef struct CdcGtidSet CdcGtidSet;

/* NULL when out of memory. The allocator must outlive the set. */
extern CdcGtidSet *cdc_gtid_set_create(CdcGtidKind kind, const CdcAllocator *allocator);
extern void cdc_gtid_set_free(CdcGtidSet *set);

/* Add everything that text holds. */
extern CdcStatus cdc_gtid_set_add_text(CdcGtidSet *set, const char *text, size_t len, CdcError *err);
extern CdcStatus cdc_gtid_set_add(CdcGtidSet *set, const CdcGtid *gtid, CdcError *err);

/* MySQL: membership. MariaDB: a sequence of that domain and server at or above this one was added. */
extern bool cdc_gtid_set_contains(const CdcGtidSet *set, const CdcGtid *gtid);
extern bool cdc_gtid_set_is_empty(const CdcGtidSet *set);

/* Canonical text, sorted; the same set gives the same text. */
extern void cdc_gtid_set_format(const CdcGtidSet *set, CdcBuf *out);

/* MySQL only: the binary form that COM_BINLOG_DUMP_GTID wants (with tags only when there are any). */
extern void cdc_gtid_set_encode(const CdcGtidSet *set, CdcBuf *out);

#endif							/* CDC_CORE_GTID_H */
