/*-------------------------------------------------------------------------
 *
 * transform_parse.c
 *	  Text of a projection or filter -> raw parse trees.
 *
 * NOTES
 *	  The server's own grammar reads them, as the list of a SELECT that has
 *	  nothing else. What only a query can do (subqueries) is refused here, what
 *	  takes catalogs to tell (aggregates, functions that return sets) when names
 *	  are looked up, see transform_row.c. Needs no transaction.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "parser/parser.h"

#include "transform/transform_parse.h"

/* What stands before a text, so that it is a statement. */
#define PREFIX "SELECT "

static void
frame_cb(void *arg)
{
	const TransformFrame *frame = arg;
	int			position = geterrposition();

	if (position > (int) strlen(PREFIX))
	{
		errposition(0);
		internalerrposition(position - (int) strlen(PREFIX));
		internalerrquery(frame->text);
	}
	errcontext("%s of member %d of option \"%s\"", frame->what, frame->rule->number, TRANSFORM_OPTION);
}

void
transform_frame_push(TransformFrame *frame, const TransformRule *rule, const char *what, const char *text)
{
	frame->callback.previous = error_context_stack;
	frame->callback.callback = frame_cb;
	frame->callback.arg = frame;
	frame->rule = rule;
	frame->what = what;
	frame->text = text;
	error_context_stack = &frame->callback;
}

void
transform_frame_pop(const TransformFrame *frame)
{
	error_context_stack = frame->callback.previous;
}

char *
transform_parse_source(const char *text)
{
	return psprintf(PREFIX "%s", text);
}

static _Noreturn void
throw_syntax(const TransformRule *rule, const char *what, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid %s in member %d of option \"%s\"", what, rule->number, TRANSFORM_OPTION),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

static bool
has_subquery(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		return true;
	return raw_expression_tree_walker(node, has_subquery, context);
}

/* Is it a SELECT with a list and nothing else? */
static bool
is_plain_list(const SelectStmt *select)
{
	return select->op == SETOP_NONE && select->targetList != NIL && select->distinctClause == NIL &&
		select->intoClause == NULL && select->fromClause == NIL && select->whereClause == NULL &&
		select->groupClause == NIL && select->havingClause == NULL && select->windowClause == NIL &&
		select->valuesLists == NIL && select->sortClause == NIL && select->limitOffset == NULL &&
		select->limitCount == NULL && select->lockingClause == NIL && select->withClause == NULL;
}

/* The list of ResTarget that a text is. */
static List *
parse_list(const TransformRule *rule, const char *what, const char *text)
{
	TransformFrame frame;
	List	   *trees;
	SelectStmt *select = NULL;
	ListCell   *lc;

	transform_frame_push(&frame, rule, what, text);
	trees = raw_parser(transform_parse_source(text), RAW_PARSE_DEFAULT);
	transform_frame_pop(&frame);

	if (list_length(trees) == 1 && IsA(linitial_node(RawStmt, trees)->stmt, SelectStmt))
		select = (SelectStmt *) linitial_node(RawStmt, trees)->stmt;
	if (select == NULL || !is_plain_list(select))
		throw_syntax(rule, what, "It is more than expressions over the columns of a row.",
					 "A projection is what stands between SELECT and FROM, a filter what stands behind WHERE.");
	foreach(lc, select->targetList)
	{
		if (has_subquery(((ResTarget *) lfirst(lc))->val, NULL))
			throw_syntax(rule, what, "It has a subquery, and only the row itself is at hand.",
						 "Call a function that runs the query.");
	}
	return select->targetList;
}

static bool
is_star(const Node *node)
{
	return IsA(node, ColumnRef) && IsA(llast(((const ColumnRef *) node)->fields), A_Star);
}

List *
transform_parse_projection(const TransformRule *rule)
{
	const char *text = rule->projection != NULL ? rule->projection : "*";
	List	   *result = NIL;
	int			stars = 0;
	ListCell   *lc;

	foreach(lc, parse_list(rule, "projection", text))
	{
		const ResTarget *target = lfirst(lc);
		TransformItem *item = palloc0(sizeof(TransformItem));
		const List *fields = IsA(target->val, ColumnRef) ? ((ColumnRef *) target->val)->fields : NIL;
		ListCell   *lc2;

		item->expr = target->val;
		item->name = target->name;
		if (target->indirection != NIL)
			throw_syntax(rule, "projection", "A name of a column has an index or a field.", "Name each column simply.");
		if (is_star(target->val))
		{
			if (list_length(fields) != 1 || target->name != NULL || ++stars > 1)
				throw_syntax(rule, "projection", "\"*\" stands in it in a way that means nothing.",
							 "\"*\" is all columns of the source's table, and stands once, by itself.");
		}
		else if (item->name == NULL && list_length(fields) == 1)
			item->name = strVal(linitial(fields));
		else if (item->name == NULL)
			throw_syntax(rule, "projection",
						 psprintf("Its expression %d has no name.", foreach_current_index(lc) + 1),
						 "Name what is computed: price * quantity AS total.");
		foreach(lc2, result)
		{
			const TransformItem *other = lfirst(lc2);

			if (item->name != NULL && other->name != NULL && strcmp(item->name, other->name) == 0)
				throw_syntax(rule, "projection", psprintf("Column \"%s\" stands in it twice.", item->name),
							 "A column that stands beside \"*\" takes the place of the source's column of the same name.");
		}
		result = lappend(result, item);
	}
	return result;
}

Node *
transform_parse_filter(const TransformRule *rule)
{
	List	   *targets;
	const ResTarget *target;

	if (rule->filter == NULL)
		return NULL;
	targets = parse_list(rule, "filter", rule->filter);
	target = linitial(targets);
	if (list_length(targets) != 1 || target->name != NULL || is_star(target->val))
		throw_syntax(rule, "filter", "It is not one expression.", "A filter is what stands behind WHERE.");
	return target->val;
}
