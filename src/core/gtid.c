/*-------------------------------------------------------------------------
 *
 * gtid.c
 *	  Global transaction ids and sets of them.
 *
 * NOTES
 *	  A set is a sorted array of sources; a source is a (uuid, tag) with its
 *	  sorted, disjoint, non-adjacent intervals (MySQL), or a (domain, server)
 *	  with the highest sequence (MariaDB). A stream adds ids in nearly rising
 *	  order, so that an addition is a binary search and one assignment.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "core/gtid.h"

#include <stdio.h>
#include <string.h>

#define GNO_MAX ((uint64_t) INT64_MAX - 1)

typedef struct Interval
{
	uint64_t first;
	uint64_t last; /* inclusive */
} Interval;

typedef struct Source
{
	uint8_t uuid[16];
	char tag[CDC_GTID_TAG_MAX + 1];
	uint32_t domain;
	uint32_t server_id;
	uint64_t sequence;   /* MariaDB */
	Interval *intervals; /* MySQL */
	size_t nintervals;
	size_t cap;
} Source;

struct CdcGtidSet
{
	CdcGtidKind kind;
	const CdcAllocator *allocator;
	Source *sources;
	size_t nsources;
	size_t cap;
};

static void
format_uuid(const uint8_t *uuid, char *out)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 0; i < 16; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = hex[uuid[i] >> 4];
		*out++ = hex[uuid[i] & 15];
	}
	*out = '\0';
}

void
cdc_gtid_format(const CdcGtid *gtid, char *out)
{
	char uuid[37];

	switch (gtid->kind)
	{
		case CDC_GTID_MYSQL:
			format_uuid(gtid->uuid, uuid);
			snprintf(out, CDC_GTID_TEXT_MAX, "%s%s%s:%llu", uuid, gtid->tag[0] != '\0' ? ":" : "",
			         gtid->tag, (unsigned long long) gtid->sequence);
			return;
		case CDC_GTID_MARIADB:
			snprintf(out, CDC_GTID_TEXT_MAX, "%u-%u-%llu", (unsigned) gtid->domain,
			         (unsigned) gtid->server_id, (unsigned long long) gtid->sequence);
			return;
		case CDC_GTID_NONE:
			break;
	}
	out[0] = '\0';
}

bool
cdc_gtid_tag_is_valid(const char *tag, size_t len)
{
	if (len > CDC_GTID_TAG_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		if (!((tag[i] >= 'a' && tag[i] <= 'z') || tag[i] == '_' ||
		      (i > 0 && tag[i] >= '0' && tag[i] <= '9')))
			return false;
	}
	return true;
}

CdcGtidSet *
cdc_gtid_set_create(CdcGtidKind kind, const CdcAllocator *allocator)
{
	CdcGtidSet *set = allocator->alloc(allocator->ctx, sizeof(CdcGtidSet));

	if (set == NULL)
		return NULL;
	set->kind = kind;
	set->allocator = allocator;
	set->sources = NULL;
	set->nsources = 0;
	set->cap = 0;
	return set;
}

void
cdc_gtid_set_free(CdcGtidSet *set)
{
	if (set == NULL)
		return;
	for (size_t i = 0; i < set->nsources; i++)
	{
		if (set->sources[i].intervals != NULL)
			set->allocator->free(set->allocator->ctx, set->sources[i].intervals);
	}
	if (set->sources != NULL)
		set->allocator->free(set->allocator->ctx, set->sources);
	set->allocator->free(set->allocator->ctx, set);
}

/* Order of sources: uuid then tag, or domain then server. */
static int
compare_source(const Source *source, const CdcGtid *gtid)
{
	int cmp;

	if (gtid->kind == CDC_GTID_MARIADB)
	{
		if (source->domain != gtid->domain)
			return source->domain < gtid->domain ? -1 : 1;
		if (source->server_id != gtid->server_id)
			return source->server_id < gtid->server_id ? -1 : 1;
		return 0;
	}
	cmp = memcmp(source->uuid, gtid->uuid, sizeof(source->uuid));
	return cmp != 0 ? cmp : strcmp(source->tag, gtid->tag);
}

/* Index of the source of gtid, or where it would have to be put in. */
static size_t
find_source(const CdcGtidSet *set, const CdcGtid *gtid, bool *found)
{
	size_t low = 0;
	size_t high = set->nsources;

	*found = false;
	while (low < high)
	{
		size_t mid = low + (high - low) / 2;
		int cmp = compare_source(&set->sources[mid], gtid);

		if (cmp == 0)
		{
			*found = true;
			return mid;
		}
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Grow an array of elements of the given size so that one more fits. Returns
 * the array, maybe moved, or NULL when out of memory (the old one stays).
 */
static void *
grow_array(const CdcAllocator *allocator, void *array, size_t used, size_t *cap, size_t size)
{
	size_t newcap;
	void *moved;

	if (used < *cap)
		return array;
	newcap = *cap == 0 ? 4 : *cap * 2;
	if (newcap > SIZE_MAX / 2 / size)
		return NULL;
	moved = allocator->alloc(allocator->ctx, newcap * size);
	if (moved == NULL)
		return NULL;
	if (array != NULL)
	{
		memcpy(moved, array, used * size);
		allocator->free(allocator->ctx, array);
	}
	*cap = newcap;
	return moved;
}

/* The source of gtid, made when it is not there; NULL when out of memory. */
static Source *
get_source(CdcGtidSet *set, const CdcGtid *gtid)
{
	bool found;
	size_t at = find_source(set, gtid, &found);
	Source *moved;
	Source *source;

	if (found)
		return &set->sources[at];
	moved = grow_array(set->allocator, set->sources, set->nsources, &set->cap, sizeof(Source));
	if (moved == NULL)
		return NULL;
	set->sources = moved;
	memmove(&moved[at + 1], &moved[at], (set->nsources - at) * sizeof(Source));
	set->nsources++;
	source = &moved[at];
	memset(source, 0, sizeof(Source));
	memcpy(source->uuid, gtid->uuid, sizeof(source->uuid));
	memcpy(source->tag, gtid->tag, sizeof(source->tag));
	source->domain = gtid->domain;
	source->server_id = gtid->server_id;
	return source;
}

/* First interval that ends at or after value - 1, that is, may touch value. */
static size_t
find_interval(const Source *source, uint64_t value)
{
	size_t low = 0;
	size_t high = source->nintervals;

	while (low < high)
	{
		size_t mid = low + (high - low) / 2;

		if (source->intervals[mid].last + 1 < value)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Add first..last and merge what overlaps or touches. */
static bool
add_interval(CdcGtidSet *set, Source *source, uint64_t first, uint64_t last)
{
	size_t at = find_interval(source, first);
	size_t end = at;
	Interval *moved;

	while (end < source->nintervals && source->intervals[end].first <= last + 1)
		end++;
	if (end > at)
	{
		if (source->intervals[at].first < first)
			first = source->intervals[at].first;
		if (source->intervals[end - 1].last > last)
			last = source->intervals[end - 1].last;
		source->intervals[at].first = first;
		source->intervals[at].last = last;
		memmove(&source->intervals[at + 1], &source->intervals[end],
		        (source->nintervals - end) * sizeof(Interval));
		source->nintervals -= end - at - 1;
		return true;
	}
	moved = grow_array(set->allocator, source->intervals, source->nintervals, &source->cap,
	                   sizeof(Interval));
	if (moved == NULL)
		return false;
	source->intervals = moved;
	memmove(&moved[at + 1], &moved[at], (source->nintervals - at) * sizeof(Interval));
	moved[at].first = first;
	moved[at].last = last;
	source->nintervals++;
	return true;
}

/* Add a range of sequence numbers of the source that gtid names. */
static CdcStatus
add_range(CdcGtidSet *set, const CdcGtid *gtid, uint64_t last, CdcError *err)
{
	Source *source;

	if (gtid->kind == CDC_GTID_MYSQL &&
	    (gtid->sequence < 1 || last < gtid->sequence || last > GNO_MAX))
		return cdc_fail(err, CDC_MALFORMED, 0, "GTID sequence number is out of range");
	source = get_source(set, gtid);
	if (source == NULL)
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	if (gtid->kind == CDC_GTID_MARIADB)
	{
		if (source->sequence < last)
			source->sequence = last;
		return CDC_OK;
	}
	if (!add_interval(set, source, gtid->sequence, last))
		return cdc_fail(err, CDC_NOMEM, 0, "out of memory");
	return CDC_OK;
}

CdcStatus
cdc_gtid_set_add(CdcGtidSet *set, const CdcGtid *gtid, CdcError *err)
{
	if (gtid->kind == CDC_GTID_NONE || gtid->kind != set->kind)
		return cdc_fail(err, CDC_MALFORMED, 0, "GTID is of another kind than the set");
	return add_range(set, gtid, gtid->sequence, err);
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static void
skip_space(const char **p, const char *end)
{
	while (*p < end && (**p == ' ' || **p == '\t' || **p == '\n' || **p == '\r'))
		(*p)++;
}

/* An unsigned number; false when there is none or it does not fit. */
static bool
parse_number(const char **p, const char *end, uint64_t *value)
{
	const char *start = *p;
	uint64_t v = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
	{
		uint64_t digit = (uint64_t) (**p - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*value = v;
	return *p > start;
}

static bool
parse_uuid(const char **p, const char *end, uint8_t *uuid)
{
	for (int i = 0; i < 16; i++)
	{
		int high;
		int low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *p < end && **p == '-')
			(*p)++;
		if (end - *p < 2)
			return false;
		high = hex_value((*p)[0]);
		low = hex_value((*p)[1]);
		if (high < 0 || low < 0)
			return false;
		uuid[i] = (uint8_t) (high << 4 | low);
		*p += 2;
	}
	return true;
}

/* A tag: letters, digits and underscores, not starting with a digit, folded to lower case. */
static bool
parse_tag(const char **p, const char *end, char *tag)
{
	size_t len = 0;

	for (; *p < end; (*p)++)
	{
		char c = **p;

		if (c >= 'A' && c <= 'Z')
			c = (char) (c - 'A' + 'a');
		if (!((c >= 'a' && c <= 'z') || c == '_' || (len > 0 && c >= '0' && c <= '9')))
			break;
		if (len == CDC_GTID_TAG_MAX)
			return false;
		tag[len++] = c;
	}
	tag[len] = '\0';
	return len > 0;
}

/* "uuid:tag:1-5:7:othertag:1": everything up to the next comma. */
static CdcStatus
parse_mysql_source(CdcGtidSet *set, const char **p, const char *end, CdcError *err,
                   const char *text)
{
	CdcGtid gtid = {.kind = CDC_GTID_MYSQL};
	bool any = false;

	if (!parse_uuid(p, end, gtid.uuid))
		return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text), "GTID set has an invalid uuid");
	for (;;)
	{
		uint64_t last;
		CdcStatus status;

		skip_space(p, end);
		if (*p == end || **p != ':')
			break;
		(*p)++;
		skip_space(p, end);
		if (*p < end && (**p < '0' || **p > '9'))
		{
			if (!parse_tag(p, end, gtid.tag))
				return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
				                "GTID set has an invalid tag");
			any = false;
			continue;
		}
		if (!parse_number(p, end, &gtid.sequence))
			return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
			                "GTID set has an invalid interval");
		last = gtid.sequence;
		skip_space(p, end);
		if (*p < end && **p == '-')
		{
			(*p)++;
			skip_space(p, end);
			if (!parse_number(p, end, &last))
				return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
				                "GTID set has an invalid interval");
		}
		status = add_range(set, &gtid, last, err);
		if (status != CDC_OK)
			return status;
		any = true;
	}
	if (!any)
		return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
		                "GTID set has a uuid without interval");
	return CDC_OK;
}

static CdcStatus
parse_mariadb_gtid(CdcGtidSet *set, const char **p, const char *end, CdcError *err,
                   const char *text)
{
	CdcGtid gtid = {.kind = CDC_GTID_MARIADB};
	uint64_t parts[3];

	for (int i = 0; i < 3; i++)
	{
		if (i > 0)
		{
			if (*p == end || **p != '-')
				return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
				                "invalid GTID, expected domain-server-sequence");
			(*p)++;
		}
		if (!parse_number(p, end, &parts[i]) || (i < 2 && parts[i] > UINT32_MAX))
			return cdc_fail(err, CDC_MALFORMED, (uint64_t) (*p - text),
			                "invalid GTID, expected domain-server-sequence");
	}
	gtid.domain = (uint32_t) parts[0];
	gtid.server_id = (uint32_t) parts[1];
	gtid.sequence = parts[2];
	return add_range(set, &gtid, gtid.sequence, err);
}

CdcStatus
cdc_gtid_set_add_text(CdcGtidSet *set, const char *text, size_t len, CdcError *err)
{
	const char *p = text;
	const char *end = text + len;

	for (;;)
	{
		CdcStatus status;

		skip_space(&p, end);
		while (p < end && *p == ',')
		{
			p++;
			skip_space(&p, end);
		}
		if (p == end)
			return CDC_OK;
		if (set->kind == CDC_GTID_MYSQL)
			status = parse_mysql_source(set, &p, end, err, text);
		else
			status = parse_mariadb_gtid(set, &p, end, err, text);
		if (status != CDC_OK)
			return status;
		skip_space(&p, end);
		if (p < end && *p != ',')
			return cdc_fail(err, CDC_MALFORMED, (uint64_t) (p - text),
			                "unexpected character in GTID set");
	}
}

bool
cdc_gtid_set_contains(const CdcGtidSet *set, const CdcGtid *gtid)
{
	bool found;
	size_t at;
	const Source *source;

	if (gtid->kind == CDC_GTID_NONE || gtid->kind != set->kind)
		return false;
	at = find_source(set, gtid, &found);
	if (!found)
		return false;
	source = &set->sources[at];
	if (set->kind == CDC_GTID_MARIADB)
		return source->sequence >= gtid->sequence;
	at = find_interval(source, gtid->sequence);
	for (; at < source->nintervals && source->intervals[at].first <= gtid->sequence; at++)
	{
		if (source->intervals[at].last >= gtid->sequence)
			return true;
	}
	return false;
}

bool
cdc_gtid_set_is_empty(const CdcGtidSet *set)
{
	return set->nsources == 0;
}

void
cdc_gtid_set_format(const CdcGtidSet *set, CdcBuf *out)
{
	for (size_t i = 0; i < set->nsources; i++)
	{
		const Source *source = &set->sources[i];
		char uuid[37];

		if (set->kind == CDC_GTID_MARIADB)
		{
			cdc_buf_printf(out, "%s%u-%u-%llu", i > 0 ? "," : "", (unsigned) source->domain,
			               (unsigned) source->server_id, (unsigned long long) source->sequence);
			continue;
		}
		/* One uuid's tags follow each other under one mention of the uuid. */
		if (i == 0 || memcmp(source->uuid, source[-1].uuid, sizeof(source->uuid)) != 0)
		{
			format_uuid(source->uuid, uuid);
			cdc_buf_printf(out, "%s%s", i > 0 ? "," : "", uuid);
		}
		if (source->tag[0] != '\0')
			cdc_buf_printf(out, ":%s", source->tag);
		for (size_t k = 0; k < source->nintervals; k++)
		{
			const Interval *interval = &source->intervals[k];

			cdc_buf_printf(out, ":%llu", (unsigned long long) interval->first);
			if (interval->last != interval->first)
				cdc_buf_printf(out, "-%llu", (unsigned long long) interval->last);
		}
	}
	cdc_buf_add(out, "", 0);
}

static void
add_uint64(CdcBuf *out, uint64_t value)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t) (value >> (8 * i));
	cdc_buf_add(out, bytes, sizeof(bytes));
}

/*
 * Write the set as MySQL's COM_BINLOG_DUMP_GTID carries it. The first word is
 * the number of sources; with tags it is shifted by 8 between two format marks
 * (observed with MySQL 9.7), and each uuid is followed by its tag.
 */
void
cdc_gtid_set_encode(const CdcGtidSet *set, CdcBuf *out)
{
	bool tagged = false;

	for (size_t i = 0; i < set->nsources; i++)
		tagged |= set->sources[i].tag[0] != '\0';
	if (tagged)
		add_uint64(out, (uint64_t) 1 << 56 | (uint64_t) set->nsources << 8 | 1);
	else
		add_uint64(out, set->nsources);
	for (size_t i = 0; i < set->nsources; i++)
	{
		const Source *source = &set->sources[i];

		cdc_buf_add(out, source->uuid, sizeof(source->uuid));
		if (tagged)
		{
			size_t len = strlen(source->tag);

			cdc_buf_add_char(out, (char) (len << 1));
			cdc_buf_add(out, source->tag, len);
		}
		add_uint64(out, source->nintervals);
		for (size_t k = 0; k < source->nintervals; k++)
		{
			add_uint64(out, source->intervals[k].first);
			add_uint64(out, source->intervals[k].last + 1);
		}
	}
}
