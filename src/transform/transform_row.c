/*-------------------------------------------------------------------------
 *
 * transform_row.c
 *	  A projection and a filter over rows of one type: compiled, and run for a
 *	  row in a slot.
 *
 * NOTES
 *	  Names of columns become Vars over the one row by a hook of the parser; the
 *	  rest is the server's: operators, functions of any language, casts,
 *	  collations.
 *
 *	  Names are looked up with search_path "pg_catalog, pg_temp", wherever that
 *	  is done: a check in a user's session and the worker mean the same, and
 *	  nobody can put a function of his in the way. Functions of users are
 *	  written with their schema.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_node.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "transform/transform_parse.h"
#include "transform/transform_row.h"

static const struct
{
	const char *name;
	Oid			type;
} metadata[TRANSFORM_METAS] = {
	[TRANSFORM_SERVER] = {"cdc_server", TEXTOID},
	[TRANSFORM_SCHEMA] = {"cdc_schema", TEXTOID},
	[TRANSFORM_TABLE] = {"cdc_table", TEXTOID},
	[TRANSFORM_OPERATION] = {"cdc_operation", TEXTOID},
	[TRANSFORM_COMMIT_TIME] = {"cdc_commit_time", TIMESTAMPTZOID},
	[TRANSFORM_POSITION] = {"cdc_position", TEXTOID},
};

const char *
transform_meta_name(TransformMeta meta)
{
	return metadata[meta].name;
}

void
transform_add_metadata(TupleDesc desc, int nsource)
{
	for (int i = 0; i < TRANSFORM_METAS; i++)
		TupleDescInitEntry(desc, (AttrNumber) (nsource + 1 + i), metadata[i].name, metadata[i].type, -1, 0);
}

/* ------------------------------------------------------------------------ compiling */

static Var *
make_var(TupleDesc desc, int attnum)
{
	Form_pg_attribute att = TupleDescAttr(desc, attnum - 1);

	return makeVar(1, (AttrNumber) attnum, att->atttypid, att->atttypmod, att->attcollation, 0);
}

/* ParseState.p_pre_columnref_hook: a name by itself is a column. The source's come first, should one be called like ours. */
static Node *
column_cb(ParseState *pstate, ColumnRef *ref)
{
	TupleDesc	desc = pstate->p_ref_hook_state;

	if (list_length(ref->fields) != 1 || !IsA(linitial(ref->fields), String))
		return NULL;
	for (int i = 0; i < desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), strVal(linitial(ref->fields))) == 0)
		{
			Var		   *var = make_var(desc, i + 1);

			var->location = ref->location;
			return (Node *) var;
		}
	}
	return NULL;
}

static ParseState *
make_parse_state(TupleDesc desc, const char *text)
{
	ParseState *pstate = make_parsestate(NULL);

	pstate->p_sourcetext = transform_parse_source(text);
	pstate->p_pre_columnref_hook = column_cb;
	pstate->p_ref_hook_state = desc;
	return pstate;
}

static bool
collect_uses(Node *node, Bitmapset **uses)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		*uses = bms_add_member(*uses, ((Var *) node)->varattno);
	return expression_tree_walker(node, collect_uses, (void *) uses);
}

/* What the column is, now that its expression is known. */
static void
set_expr(TransformColumn *column, Node *expr)
{
	column->expr = expr;
	column->typid = exprType(expr);
	column->typmod = exprTypmod(expr);
	column->collation = exprCollation(expr);
	column->from = IsA(expr, Var) ? ((Var *) expr)->varattno : 0;
	column->uses = NULL;
	(void) collect_uses(expr, &column->uses);
	column->is_mutable = contain_mutable_functions(expr);
	/* a literal of which nothing says what it is */
	if (column->typid == UNKNOWNOID)
		column->typid = TEXTOID;
}

static void
check_name(const TransformRule *rule, const char *name)
{
	static const char *const system_names[] = {"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"};

	for (size_t i = 0; i < lengthof(system_names); i++)
	{
		if (strcmp(system_names[i], name) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_NAME),
					 errmsg("column \"%s\" has the name of a system column of PostgreSQL", name),
					 errhint("Give it another name with AS in member %d of option \"%s\".", rule->number, TRANSFORM_OPTION)));
	}
}

/* The columns that the items come to; what stands beside "*" takes the place of the column of the same name. */
static void
compile_projection(Transform *transform, List *items)
{
	const char *text = transform->rule->projection != NULL ? transform->rule->projection : "*";
	ParseState *pstate = make_parse_state(transform->desc, text);
	bool	   *replaced = palloc0(sizeof(bool) * list_length(items));
	bool		has_star = false;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, items)
		has_star |= ((TransformItem *) lfirst(lc))->name == NULL;
	transform->columns = palloc0(sizeof(TransformColumn) * (list_length(items) + transform->nsource));

	/* first all expressions, in the order in which they are written */
	foreach(lc, items)
	{
		TransformItem *item = lfirst(lc);

		if (item->name != NULL)
			item->expr = transformExpr(pstate, item->expr, EXPR_KIND_GENERATED_COLUMN);
	}
	foreach(lc, items)
	{
		TransformItem *item = lfirst(lc);

		for (int i = 0; item->name == NULL && i < transform->nsource; i++)
		{
			TransformColumn *column = &transform->columns[transform->ncolumns++];
			Node	   *expr = (Node *) make_var(transform->desc, i + 1);

			column->name = pstrdup(NameStr(TupleDescAttr(transform->desc, i)->attname));
			foreach(lc2, items)
			{
				const TransformItem *other = lfirst(lc2);

				if (other->name != NULL && strcmp(other->name, column->name) == 0)
				{
					expr = other->expr;
					replaced[foreach_current_index(lc2)] = true;
				}
			}
			set_expr(column, expr);
		}
	}
	foreach(lc, items)
	{
		TransformItem *item = lfirst(lc);

		if (item->name == NULL || replaced[foreach_current_index(lc)])
			continue;
		check_name(transform->rule, item->name);
		transform->columns[transform->ncolumns].name = pstrdup(item->name);
		set_expr(&transform->columns[transform->ncolumns++], item->expr);
	}
	free_parsestate(pstate);
}

static void
compile_filter(Transform *transform, Node *raw)
{
	ParseState *pstate = make_parse_state(transform->desc, transform->rule->filter);
	Node	   *expr = transformExpr(pstate, raw, EXPR_KIND_GENERATED_COLUMN);

	expr = coerce_to_boolean(pstate, expr, "filter");
	assign_expr_collations(pstate, expr);
	transform->filter = expr;
	(void) collect_uses(expr, &transform->filter_uses);
	transform->filter_is_mutable = contain_mutable_functions(expr);
	free_parsestate(pstate);
}

int
transform_column(const Transform *transform, const char *name)
{
	for (int i = 0; i < transform->ncolumns; i++)
	{
		if (strcmp(transform->columns[i].name, name) == 0)
			return i;
	}
	return -1;
}

Transform *
transform_compile(const TransformRule *rule, TupleDesc desc, int nsource)
{
	Transform  *transform = palloc0(sizeof(Transform));
	List	   *items = transform_parse_projection(rule);
	Node	   *filter = transform_parse_filter(rule);
	int			level = NewGUCNestLevel();
	TransformFrame frame;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
	transform->rule = rule;
	transform->desc = desc;
	transform->nsource = nsource;

	transform_frame_push(&frame, rule, "projection", rule->projection != NULL ? rule->projection : "*");
	compile_projection(transform, items);
	transform_frame_pop(&frame);
	if (filter != NULL)
	{
		transform_frame_push(&frame, rule, "filter", rule->filter);
		compile_filter(transform, filter);
		transform_frame_pop(&frame);
	}
	AtEOXact_GUC(true, level);
	return transform;
}

bool
transform_coerce(Transform *transform, int column, Oid typid, int32 typmod)
{
	TransformColumn *to = &transform->columns[column];
	ParseState *pstate = make_parse_state(transform->desc, "");
	Node	   *expr;

	expr = coerce_to_target_type(pstate, to->expr, exprType(to->expr), typid, typmod, COERCION_ASSIGNMENT,
								 COERCE_IMPLICIT_CAST, -1);
	if (expr != NULL)
	{
		assign_expr_collations(pstate, expr);
		set_expr(to, expr);
	}
	free_parsestate(pstate);
	return expr != NULL;
}

/* -------------------------------------------------------------------------- running */

TransformState *
transform_start(const Transform *transform, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TransformState *state = palloc0(sizeof(TransformState));

	state->transform = transform;
	state->exprs = palloc0(sizeof(ExprState *) * Max(transform->ncolumns, 1));
	state->is_varlena = palloc0(sizeof(bool) * Max(transform->ncolumns, 1));
	for (int i = 0; i < transform->ncolumns; i++)
	{
		state->is_varlena[i] = get_typlen(transform->columns[i].typid) == -1;
		if (transform->columns[i].from == 0)
			state->exprs[i] = ExecPrepareExpr((Expr *) transform->columns[i].expr, estate);
	}
	if (transform->filter != NULL)
		state->filter = ExecPrepareExpr((Expr *) transform->filter, estate);
	for (int i = 0; i < 2; i++)
		state->econtext[i] = CreateExprContext(estate);
	MemoryContextSwitchTo(old);
	return state;
}

void
transform_begin(TransformState *state, int which, TupleTableSlot *slot)
{
	ResetExprContext(state->econtext[which]);
	state->econtext[which]->ecxt_scantuple = slot;
}

bool
transform_passes(TransformState *state, int which)
{
	Datum		value;
	bool		isnull;

	if (state->filter == NULL)
		return true;
	value = ExecEvalExpr(state->filter, state->econtext[which], &isnull);
	return !isnull && DatumGetBool(value);
}

Datum
transform_value(TransformState *state, int which, int column, bool *isnull)
{
	const TransformColumn *from = &state->transform->columns[column];
	TupleTableSlot *slot = state->econtext[which]->ecxt_scantuple;

	Datum		value;

	if (from->from != 0)
	{
		*isnull = slot->tts_isnull[from->from - 1];
		return slot->tts_values[from->from - 1];
	}
	value = ExecEvalExpr(state->exprs[column], state->econtext[which], isnull);
	/* values that live elsewhere (expanded objects, another table's TOAST) would be read as bytes by who compares keys */
	if (!*isnull && state->is_varlena[column] && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		value = PointerGetDatum(detoast_external_attr((struct varlena *) DatumGetPointer(value)));
	return value;
}
