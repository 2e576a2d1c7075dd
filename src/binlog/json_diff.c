/*-------------------------------------------------------------------------
 *
 * json_diff.c
 *	  MySQL's differences of JSON documents (PARTIAL_JSON), applied to the text
 *	  of a document.
 *
 * NOTES
 *	  A difference is an operation, a path and (but for "remove") a value in
 *	  binary JSON. They count one after the other, each for what the ones before
 *	  it left:
 *	  replace   the value at the path, which is there
 *	  insert    a new member into an object; an element into an array, in front of
 *	            what stands at that place, or behind the last one when the place
 *	            is beyond it
 *	  remove    the member or element at the path
 *	  Paths are written as in SQL: $.name, $."other name", $[3], $[last],
 *	  $[last-2]. A place in something that is no array means that thing itself
 *	  when it is the first or last one. Seen from MySQL 9.7.
 *
 *	  The document may have been printed by MySQL or by PostgreSQL. What no path
 *	  leads into is never looked at: a node is the text that it was found as
 *	  until a path goes through it, and only then taken apart into its members.
 *	  So numbers and strings stay as they were written, and the depth of what is
 *	  taken apart is the length of a path. New members go where both servers
 *	  order them: shorter names first, then by bytes.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "binlog/json_diff.h"

#include <string.h>

#include "binlog/json.h"
#include "core/cursor.h"

/* Legs of a path; a document has at most 100 levels. */
#define LEGS_MAX BINLOG_JSON_DEPTH_MAX

/* Members that an object or array has room for at first. */
#define MEMBERS_FIRST 8

typedef enum DiffOp
{
	DIFF_REPLACE = 0,
	DIFF_INSERT = 1,
	DIFF_REMOVE = 2
} DiffOp;

/* One step of a path: a member's name, or a place in an array. */
typedef struct Leg
{
	const char *name; /* without escapes; NULL: a place */
	size_t len;
	uint64_t index;
	bool from_end; /* index counts back from the last one */
} Leg;

typedef struct Path
{
	Leg legs[LEGS_MAX];
	int nlegs;
} Path;

/* One difference as it came. */
typedef struct Diff
{
	DiffOp op;
	const char *path;
	size_t pathlen;
	const uint8_t *value; /* NULL: none */
	size_t valuelen;
} Diff;

typedef enum NodeKind
{
	NODE_TEXT, /* not taken apart, or a scalar */
	NODE_OBJECT,
	NODE_ARRAY
} NodeKind;

typedef struct Node
{
	NodeKind kind;
	bool in_order;    /* NODE_OBJECT: by its members' names */
	const char *text; /* NODE_TEXT */
	size_t len;
	struct Member *members;
	uint32_t count;
	uint32_t room;
} Node;

typedef struct Member
{
	const char *written; /* its name with quotes and escapes; NULL in an array */
	size_t writtenlen;
	const char *name; /* without them */
	size_t namelen;
	Node node;
} Member;

static CdcStatus
damaged(CdcError *err)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "JSON difference is damaged");
}

static CdcStatus
unfit(CdcError *err)
{
	return cdc_fail(err, CDC_MALFORMED, 0, "JSON difference does not fit the document before it");
}

static CdcStatus
no_memory(CdcError *err)
{
	return cdc_fail(err, CDC_LIMIT, 0, "JSON document does not fit the memory limit");
}

/* --------------------------------------------------------------- reading differences */

static CdcStatus
read_diff(CdcCursor *c, Diff *diff, CdcError *err)
{
	uint8_t op = cdc_cursor_u8(c);
	uint64_t len = cdc_cursor_lenenc(c);

	if (op > DIFF_REMOVE)
		return damaged(err);
	diff->op = (DiffOp) op;
	diff->path = (const char *) cdc_cursor_bytes(c, len);
	diff->pathlen = (size_t) len;
	diff->value = NULL;
	diff->valuelen = 0;
	if (op != DIFF_REMOVE)
	{
		len = cdc_cursor_lenenc(c);
		diff->value = cdc_cursor_bytes(c, len);
		diff->valuelen = (size_t) len;
	}
	return c->failed ? damaged(err) : CDC_OK;
}

/* Four hexadecimal digits; -1 when they are none. */
static int
hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++)
	{
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static char *
put_utf8(char *out, uint32_t c)
{
	if (c < 0x80)
		*out++ = (char) c;
	else if (c < 0x800)
	{
		*out++ = (char) (0xc0 | c >> 6);
		*out++ = (char) (0x80 | (c & 0x3f));
	}
	else if (c < 0x10000)
	{
		*out++ = (char) (0xe0 | c >> 12);
		*out++ = (char) (0x80 | (c >> 6 & 0x3f));
		*out++ = (char) (0x80 | (c & 0x3f));
	}
	else
	{
		*out++ = (char) (0xf0 | c >> 18);
		*out++ = (char) (0x80 | (c >> 12 & 0x3f));
		*out++ = (char) (0x80 | (c >> 6 & 0x3f));
		*out++ = (char) (0x80 | (c & 0x3f));
	}
	return out;
}

/* A \u escape at p (behind the backslash), with a second one when they are a pair; NULL when damaged. */
static const char *
read_unicode(const char *p, const char *end, uint32_t *c)
{
	int high;
	int low;

	if (end - p < 5 || (high = hex4(p + 1)) < 0)
		return NULL;
	p += 5;
	*c = (uint32_t) high;
	if (high < 0xd800 || high > 0xdfff)
		return p;
	if (high > 0xdbff || end - p < 6 || p[0] != '\\' || p[1] != 'u' || (low = hex4(p + 2)) < 0xdc00 ||
	    low > 0xdfff)
		return NULL;
	*c = 0x10000 + (((uint32_t) high & 0x3ff) << 10 | ((uint32_t) low & 0x3ff));
	return p + 6;
}

/*
 * The characters of a string between its quotes, escapes resolved; in place when
 * there are none. Nothing becomes longer by that.
 */
static CdcStatus
unescape(const char *text, size_t len, CdcArena *arena, const char **out, size_t *outlen, CdcError *err)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *end = text + len;
	char *copy;
	char *q;

	*out = text;
	*outlen = len;
	if (len == 0 || memchr(text, '\\', len) == NULL)
		return CDC_OK;
	q = copy = cdc_arena_alloc(arena, len);
	if (copy == NULL)
		return no_memory(err);
	for (const char *p = text; p < end;)
	{
		const char *which;
		uint32_t c;

		if (*p != '\\')
		{
			*q++ = *p++;
			continue;
		}
		if (++p == end)
			return damaged(err);
		if (*p == 'u')
		{
			p = read_unicode(p, end, &c);
			if (p == NULL)
				return damaged(err);
			q = put_utf8(q, c);
			continue;
		}
		which = memchr(from, *p++, sizeof(from) - 1);
		if (which == NULL)
			return damaged(err);
		*q++ = to[which - from];
	}
	*out = copy;
	*outlen = (size_t) (q - copy);
	return CDC_OK;
}

/* Behind the string whose first quote is at p; NULL when it does not end. */
static const char *
skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
	{
		if (*p == '\\' && ++p == end)
			return NULL;
	}
	return p < end ? p + 1 : NULL;
}

/* Digits up to another character; large ones all mean "beyond the end". */
static const char *
read_index(const char *p, const char *end, uint64_t *index)
{
	const char *start = p;

	*index = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		*index = *index > UINT32_MAX ? *index : *index * 10 + (uint64_t) (*p - '0');
	return p > start ? p : NULL;
}

/* Behind the bracket of a leg. */
static const char *
read_place(const char *p, const char *end, Leg *leg)
{
	leg->name = NULL;
	leg->from_end = end - p >= 4 && memcmp(p, "last", 4) == 0;
	leg->index = 0;
	if (!leg->from_end)
		p = read_index(p, end, &leg->index);
	else
	{
		p += 4;
		if (p < end && *p == '-')
			p = read_index(p + 1, end, &leg->index);
	}
	return p != NULL && p < end && *p == ']' ? p + 1 : NULL;
}

/* Behind the point of a leg. */
static CdcStatus
read_name(const char **pos, const char *end, CdcArena *arena, Leg *leg, CdcError *err)
{
	const char *p = *pos;
	const char *start = p;

	if (p < end && *p == '"')
	{
		p = skip_string(p, end);
		if (p == NULL)
			return damaged(err);
		*pos = p;
		return unescape(start + 1, (size_t) (p - start) - 2, arena, &leg->name, &leg->len, err);
	}
	while (p < end && *p != '.' && *p != '[')
		p++;
	if (p == start)
		return damaged(err);
	leg->name = start;
	leg->len = (size_t) (p - start);
	*pos = p;
	return CDC_OK;
}

static CdcStatus
read_path(const Diff *diff, CdcArena *arena, Path *path, CdcError *err)
{
	const char *p = diff->path;
	const char *end = p + diff->pathlen;

	path->nlegs = 0;
	if (diff->pathlen == 0 || *p++ != '$')
		return damaged(err);
	while (p < end)
	{
		Leg *leg = &path->legs[path->nlegs];

		if (path->nlegs == LEGS_MAX)
			return cdc_fail(err, CDC_LIMIT, 0, "path of a JSON difference is too long");
		path->nlegs++;
		if (*p == '.')
		{
			CdcStatus status;

			p++;
			status = read_name(&p, end, arena, leg, err);
			if (status != CDC_OK)
				return status;
		}
		else if (*p != '[' || (p = read_place(p + 1, end, leg)) == NULL)
			return damaged(err);
	}
	return CDC_OK;
}

/* -------------------------------------------------------------- taking a text apart */

static const char *
skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* Behind the value at p; NULL when it is damaged. What is inside of it is believed. */
static const char *
skip_value(const char *p, const char *end)
{
	const char *start = p;
	size_t depth = 0;

	while (p < end)
	{
		switch (*p)
		{
			case '"':
				p = skip_string(p, end);
				if (p == NULL || depth == 0)
					return p;
				continue;
			case '{':
			case '[':
				depth++;
				break;
			case '}':
			case ']':
				if (depth == 0)
					return p > start ? p : NULL;
				if (--depth == 0)
					return p + 1;
				break;
			case ',':
			case ' ':
			case '\t':
			case '\n':
			case '\r':
				if (depth == 0)
					return p > start ? p : NULL;
				break;
		}
		p++;
	}
	return depth == 0 && p > start ? p : NULL;
}

/* Room for one more member at place i. */
static Member *
open_place(Node *node, uint32_t i, CdcArena *arena)
{
	if (node->count == node->room)
	{
		uint32_t room = node->room == 0 ? MEMBERS_FIRST : node->room * 2;
		Member *members;

		if (room > UINT32_MAX / 2)
			return NULL;
		members = cdc_arena_alloc(arena, room * sizeof(Member));
		if (members == NULL)
			return NULL;
		if (node->count > 0)
			memcpy(members, node->members, node->count * sizeof(Member));
		node->members = members;
		node->room = room;
	}
	memmove(&node->members[i + 1], &node->members[i], (node->count - i) * sizeof(Member));
	node->count++;
	memset(&node->members[i], 0, sizeof(Member));
	return &node->members[i];
}

/* Order of members' names: shorter ones first, then by bytes. */
static int
compare_names(const char *a, size_t alen, const char *b, size_t blen)
{
	if (alen != blen)
		return alen < blen ? -1 : 1;
	return alen == 0 ? 0 : memcmp(a, b, alen);
}

/* The name and the colon in front of an object's member. */
static CdcStatus
read_member_name(const char **pos, const char *end, CdcArena *arena, Member *member, CdcError *err)
{
	const char *p = *pos;

	if (p == end || *p != '"')
		return unfit(err);
	member->written = p;
	p = skip_string(p, end);
	if (p == NULL)
		return unfit(err);
	member->writtenlen = (size_t) (p - member->written);
	p = skip_space(p, end);
	if (p == end || *p != ':')
		return unfit(err);
	*pos = skip_space(p + 1, end);
	return unescape(member->written + 1, member->writtenlen - 2, arena, &member->name, &member->namelen, err);
}

/* The next member of an object or array that is taken apart. */
static CdcStatus
read_member(const char **pos, const char *end, Node *node, CdcArena *arena, CdcError *err)
{
	Member *member = open_place(node, node->count, arena);
	const char *start;
	CdcStatus status;

	if (member == NULL)
		return no_memory(err);
	if (node->kind == NODE_OBJECT)
	{
		status = read_member_name(pos, end, arena, member, err);
		if (status != CDC_OK)
			return status;
		if (node->count > 1 &&
		    compare_names(member[-1].name, member[-1].namelen, member->name, member->namelen) >= 0)
			node->in_order = false;
	}
	start = *pos;
	*pos = skip_value(start, end);
	if (*pos == NULL)
		return unfit(err);
	member->node.kind = NODE_TEXT;
	member->node.text = start;
	member->node.len = (size_t) (*pos - start);
	*pos = skip_space(*pos, end);
	return CDC_OK;
}

/* Take an object or array apart into its members. A scalar stays what it is. */
static CdcStatus
expand(Node *node, CdcArena *arena, CdcError *err)
{
	const char *p;
	const char *end;
	char close;

	if (node->kind != NODE_TEXT || (node->text[0] != '{' && node->text[0] != '['))
		return CDC_OK;
	close = node->text[0] == '{' ? '}' : ']';
	end = node->text + node->len;
	p = skip_space(node->text + 1, end);
	node->kind = close == '}' ? NODE_OBJECT : NODE_ARRAY;
	node->in_order = true;
	node->members = NULL;
	node->count = node->room = 0;
	while (p < end && *p != close)
	{
		CdcStatus status = read_member(&p, end, node, arena, err);

		if (status != CDC_OK)
			return status;
		if (p < end && *p == ',')
		{
			p = skip_space(p + 1, end);
			if (p == end || *p == close)
				return unfit(err);
		}
		else if (p == end || *p != close)
			return unfit(err);
	}
	return p + 1 == end ? CDC_OK : unfit(err);
}

/* ------------------------------------------------------------------ finding places */

/*
 * Where the leg's member stands in an object, or (false) where it is to be put.
 * The servers' objects are in order; one that is not is searched as a whole.
 */
static bool
find_member(const Node *node, const Leg *leg, uint32_t *place)
{
	uint32_t low = 0;
	uint32_t high = node->count;

	while (low < high)
	{
		uint32_t i = node->in_order ? low + (high - low) / 2 : low;
		int order = compare_names(node->members[i].name, node->members[i].namelen, leg->name, leg->len);

		if (order == 0)
		{
			*place = i;
			return true;
		}
		if (order < 0 || !node->in_order)
			low = i + 1;
		else
			high = i;
	}
	*place = low;
	return false;
}

/* Which element of an array of that size a leg means; false when none. */
static bool
find_element(const Leg *leg, uint32_t count, uint32_t *place)
{
	if (leg->index >= count)
		return false;
	*place = leg->from_end ? count - 1 - (uint32_t) leg->index : (uint32_t) leg->index;
	return true;
}

/* Does a place in something that is no array mean that thing itself? */
static bool
means_itself(const Node *node, const Leg *leg)
{
	return leg->name == NULL && node->kind != NODE_ARRAY && leg->index == 0;
}

/* The member of a node that a leg leads to; *node is moved on, *parent and *place say where it stands. */
static CdcStatus
follow(Node **node, const Leg *leg, Node **parent, uint32_t *place, CdcArena *arena, CdcError *err)
{
	bool found = false;
	CdcStatus status = expand(*node, arena, err);

	if (status != CDC_OK)
		return status;
	if (means_itself(*node, leg))
		return CDC_OK;
	if (leg->name != NULL && (*node)->kind == NODE_OBJECT)
		found = find_member(*node, leg, place);
	else if (leg->name == NULL && (*node)->kind == NODE_ARRAY)
		found = find_element(leg, (*node)->count, place);
	if (!found)
		return unfit(err);
	*parent = *node;
	*node = &(*node)->members[*place].node;
	return CDC_OK;
}

/* Follow the first nlegs legs from the root. parent stays NULL when the root is what they lead to. */
static CdcStatus
find(Node *root, const Path *path, int nlegs, Node **node, Node **parent, uint32_t *place, CdcArena *arena,
     CdcError *err)
{
	*node = root;
	*parent = NULL;
	for (int i = 0; i < nlegs; i++)
	{
		CdcStatus status = follow(node, &path->legs[i], parent, place, arena, err);

		if (status != CDC_OK)
			return status;
	}
	return CDC_OK;
}

/* ---------------------------------------------------------------- the three operations */

/* A text of its own in the arena, as a node. */
static CdcStatus
keep_text(CdcBuf *text, CdcStatus status, CdcArena *arena, const char **out, size_t *len, CdcError *err)
{
	if (status == CDC_OK && text->status != CDC_OK)
		status = no_memory(err);
	if (status == CDC_OK)
	{
		*len = text->len;
		*out = cdc_arena_strndup(arena, text->data, text->len);
		if (*out == NULL)
			status = no_memory(err);
	}
	cdc_buf_free(text);
	return status;
}

static CdcStatus
make_value(const Diff *diff, CdcArena *arena, Node *node, CdcError *err)
{
	CdcBuf text;
	CdcStatus status;

	memset(node, 0, sizeof(*node));
	cdc_buf_init(&text, arena->allocator, arena->limit);
	status = binlog_json_to_text(diff->value, diff->valuelen, BINLOG_JSON_DEPTH_MAX, &text, err);
	return keep_text(&text, status, arena, &node->text, &node->len, err);
}

static CdcStatus
make_name(const Leg *leg, CdcArena *arena, Member *member, CdcError *err)
{
	CdcBuf text;

	member->name = leg->name;
	member->namelen = leg->len;
	cdc_buf_init(&text, arena->allocator, arena->limit);
	binlog_json_add_string((const uint8_t *) leg->name, leg->len, &text);
	return keep_text(&text, CDC_OK, arena, &member->written, &member->writtenlen, err);
}

static CdcStatus
insert(Node *root, const Path *path, const Node *value, CdcArena *arena, CdcError *err)
{
	const Leg *leg;
	Node *node;
	Node *parent;
	uint32_t place = 0;
	Member *member;
	CdcStatus status;

	if (path->nlegs == 0)
		return damaged(err);
	leg = &path->legs[path->nlegs - 1];
	status = find(root, path, path->nlegs - 1, &node, &parent, &place, arena, err);
	if (status == CDC_OK)
		status = expand(node, arena, err);
	if (status != CDC_OK)
		return status;
	if (leg->name != NULL && node->kind == NODE_OBJECT)
	{
		if (find_member(node, leg, &place))
			return unfit(err);
	}
	else if (leg->name == NULL && node->kind == NODE_ARRAY)
	{
		if (!find_element(leg, node->count, &place))
			place = leg->from_end ? 0 : node->count;
	}
	else
		return unfit(err);
	member = open_place(node, place, arena);
	if (member == NULL)
		return no_memory(err);
	member->node = *value;
	return leg->name != NULL ? make_name(leg, arena, member, err) : CDC_OK;
}

static CdcStatus
apply_one(const Diff *diff, Path *path, Node *root, CdcArena *arena, CdcError *err)
{
	Node value = {.kind = NODE_TEXT};
	Node *node;
	Node *parent;
	uint32_t place = 0;
	CdcStatus status = read_path(diff, arena, path, err);

	if (status == CDC_OK && diff->op != DIFF_REMOVE)
		status = make_value(diff, arena, &value, err);
	if (status != CDC_OK)
		return status;
	if (diff->op == DIFF_INSERT)
		return insert(root, path, &value, arena, err);

	status = find(root, path, path->nlegs, &node, &parent, &place, arena, err);
	if (status != CDC_OK)
		return status;
	if (diff->op == DIFF_REPLACE)
		*node = value;
	else if (parent == NULL)
		return unfit(err);
	else
	{
		memmove(&parent->members[place], &parent->members[place + 1],
		        (parent->count - place - 1) * sizeof(Member));
		parent->count--;
	}
	return CDC_OK;
}

/* Only what paths led into has members, so this goes no deeper than a path is long. */
static void
write_node(const Node *node, CdcBuf *out)
{
	if (node->kind == NODE_TEXT)
	{
		cdc_buf_add(out, node->text, node->len);
		return;
	}
	cdc_buf_add_char(out, node->kind == NODE_OBJECT ? '{' : '[');
	for (uint32_t i = 0; i < node->count && out->status == CDC_OK; i++)
	{
		const Member *member = &node->members[i];

		if (i > 0)
			cdc_buf_add(out, ", ", 2);
		if (member->written != NULL)
		{
			cdc_buf_add(out, member->written, member->writtenlen);
			cdc_buf_add(out, ": ", 2);
		}
		write_node(&member->node, out);
	}
	cdc_buf_add_char(out, node->kind == NODE_OBJECT ? '}' : ']');
}

/*
 * Apply differences to a document. Without any the text comes out as it is. The
 * text is not checked where no path leads.
 */
CdcStatus
binlog_json_diff_apply(const uint8_t *diff, size_t len, const char *text, size_t textlen,
                       CdcArena *arena, CdcBuf *out, CdcError *err)
{
	const char *start = skip_space(text, text + textlen);
	const char *end = skip_value(start, text + textlen);
	Node root = {.kind = NODE_TEXT, .text = start};
	Path *path;
	CdcCursor c;

	if (end == NULL || skip_space(end, text + textlen) != text + textlen)
		return unfit(err);
	root.len = (size_t) (end - start);
	path = cdc_arena_alloc(arena, sizeof(Path));
	if (path == NULL)
		return no_memory(err);
	cdc_cursor_init(&c, diff, len);
	while (cdc_cursor_left(&c) > 0)
	{
		Diff one;
		CdcStatus status = read_diff(&c, &one, err);

		if (status == CDC_OK)
			status = apply_one(&one, path, &root, arena, err);
		if (status != CDC_OK)
			return status;
	}
	write_node(&root, out);
	return out->status == CDC_OK ? CDC_OK : no_memory(err);
}

CdcStatus
binlog_json_diff_to_text(const uint8_t *diff, size_t len, CdcBuf *out, CdcError *err)
{
	static const char *const names[] = {"replace", "insert", "remove"};
	CdcCursor c;
	bool first = true;

	cdc_cursor_init(&c, diff, len);
	cdc_buf_add_char(out, '[');
	for (; cdc_cursor_left(&c) > 0; first = false)
	{
		Diff one;
		CdcStatus status = read_diff(&c, &one, err);

		if (status != CDC_OK)
			return status;
		cdc_buf_printf(out, "%s{\"op\": \"%s\", \"path\": ", first ? "" : ", ", names[one.op]);
		binlog_json_add_string((const uint8_t *) one.path, one.pathlen, out);
		if (one.value != NULL)
		{
			cdc_buf_add_str(out, ", \"value\": ");
			status = binlog_json_to_text(one.value, one.valuelen, BINLOG_JSON_DEPTH_MAX, out, err);
			if (status != CDC_OK)
				return status;
		}
		cdc_buf_add_char(out, '}');
	}
	cdc_buf_add_char(out, ']');
	return out->status == CDC_OK ? CDC_OK : no_memory(err);
}
