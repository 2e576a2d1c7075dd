/*-------------------------------------------------------------------------
 *
 * decode_row.c
 *	  Tuples of the log -> cells.
 *
 * NOTES
 *	  Values of common types become cells directly; all others by their type's
 *	  output function, whose text depends on settings that the plugin pins for
 *	  each transaction (decode_plugin.c).
 *
 *	  A large value that an UPDATE does not touch is not in the log: the new tuple
 *	  has only a pointer to where the value was, which must not be followed. The
 *	  old row has it under REPLICA IDENTITY FULL, or when it belongs to the key.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "decode/decode_private.h"

/* ------------------------------------------------------------- columns */

static CdcOutType
out_type(Oid typid)
{
	switch (typid)
	{
		case BOOLOID:
			return CDC_OUT_BOOL;
		case INT2OID:
			return CDC_OUT_INT2;
		case INT4OID:
			return CDC_OUT_INT4;
		case INT8OID:
			return CDC_OUT_INT8;
		case OIDOID:
			return CDC_OUT_OID;
		case FLOAT4OID:
			return CDC_OUT_FLOAT4;
		case FLOAT8OID:
			return CDC_OUT_FLOAT8;
		case NUMERICOID:
		case CASHOID:
			return CDC_OUT_NUMERIC;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
			return CDC_OUT_TEXT;
		case BYTEAOID:
			return CDC_OUT_BYTES;
		case BITOID:
		case VARBITOID:
			return CDC_OUT_BIT;
		case DATEOID:
			return CDC_OUT_DATE;
		case TIMEOID:
			return CDC_OUT_TIME;
		case TIMETZOID:
			return CDC_OUT_TIMETZ;
		case TIMESTAMPOID:
			return CDC_OUT_TIMESTAMP;
		case TIMESTAMPTZOID:
			return CDC_OUT_TIMESTAMPTZ;
		case INTERVALOID:
			return CDC_OUT_INTERVAL;
		case UUIDOID:
			return CDC_OUT_UUID;
		case JSONOID:
		case JSONBOID:
			return CDC_OUT_JSON;
		case XMLOID:
			return CDC_OUT_XML;
		default:
			return get_typtype(typid) == TYPTYPE_ENUM ? CDC_OUT_ENUM : CDC_OUT_OTHER;
	}
}

/* When the type's row of the catalog changes (it is renamed), what was found out with it is built anew. */
static void
watch_type(DecodeState *state, Oid typid)
{
	uint32		hash;

	if (typid < FirstNormalObjectId)
		return;
	hash = GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(typid));
	for (int i = 0; i < state->ntype_hashes; i++)
	{
		if (state->type_hashes[i] == hash)
			return;
	}
	if (state->type_hashes == NULL)
		state->type_hashes = MemoryContextAlloc(state->context, sizeof(uint32) * 8);
	else if (state->ntype_hashes >= 8 && (state->ntype_hashes & (state->ntype_hashes - 1)) == 0)
		state->type_hashes = repalloc(state->type_hashes, sizeof(uint32) * state->ntype_hashes * 2);
	state->type_hashes[state->ntype_hashes++] = hash;
}

void
decode_column_init(DecodeState *state, MemoryContext context, Form_pg_attribute att, DecodeColumn *column, CdcOutColumn *out)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	int32		typmod = att->atttypmod;
	Oid			base = getBaseTypeAndTypmod(att->atttypid, &typmod);
	Oid			element = base == INT2VECTOROID || base == OIDVECTOROID ? InvalidOid : get_element_type(base);
	Oid			output;
	bool		is_varlena;

	watch_type(state, att->atttypid);
	column->attno = att->attnum - 1;
	column->is_list = OidIsValid(element) && !state->options.arrays_as_text;
	column->typid = column->is_list ? getBaseTypeAndTypmod(element, &typmod) : base;
	if (column->is_list)
		get_typlenbyvalalign(element, &column->typlen, &column->typbyval, &column->typalign);
	column->type = out_type(column->typid);
	getTypeOutputInfo(column->typid, &output, &is_varlena);
	fmgr_info_cxt(output, &column->output, context);

	out->name = pstrdup(NameStr(att->attname));
	out->type = column->type;
	out->is_list = column->is_list;
	out->nullable = !att->attnotnull;
	out->key_part = 0;
	out->precision = out->scale = -1;
	if (column->typid == NUMERICOID && typmod >= (int32) VARHDRSZ)
	{
		out->precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
		out->scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	}
	out->type_text = format_type_with_typemod(att->atttypid, att->atttypmod);
	MemoryContextSwitchTo(old_context);
}

/* --------------------------------------------------------------- values */

static void
set_text(CdcCell *cell, const char *text, size_t len)
{
	cell->kind = CDC_CELL_TEXT;
	cell->len = (uint32_t) len;
	cell->v.data = text;
}

static void
set_output(CdcCell *cell, const DecodeColumn *column, Datum value)
{
	char	   *text = OutputFunctionCall(unconstify(FmgrInfo *, &column->output), value);

	set_text(cell, text, strlen(text));
}

static void
set_varlena(CdcCell *cell, CdcCellKind kind, Datum value)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

	cell->kind = kind;
	cell->len = (uint32_t) VARSIZE_ANY_EXHDR(v);
	cell->v.data = VARDATA_ANY(v);
}

static void
set_int(CdcCell *cell, CdcCellKind kind, int64 value)
{
	cell->kind = kind;
	cell->v.i = value;
}

/* Money is a number whose digits behind the point are a matter of lc_monetary, which cash_numeric heeds. */
static void
set_money(CdcCell *cell, Datum value)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, DirectFunctionCall1(cash_numeric, value)));

	set_text(cell, text, strlen(text));
}

/* "char" is a byte, which need not be a character. PostgreSQL 16 writes and reads others in this form. */
static void
set_char(CdcCell *cell, Datum value)
{
	unsigned char byte = (unsigned char) DatumGetChar(value);
	char	   *text = byte >= 0x80 ? psprintf("\\%03o", byte) : psprintf("%c", byte);

	set_text(cell, text, strlen(text));
}

static void
set_uuid(CdcCell *cell, Datum value)
{
	static const char digits[] = "0123456789abcdef";
	const pg_uuid_t *uuid = DatumGetUUIDP(value);
	char	   *text = palloc(36);
	char	   *p = text;

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digits[uuid->data[i] >> 4];
		*p++ = digits[uuid->data[i] & 15];
	}
	set_text(cell, text, 36);
}

static void
set_scalar(CdcCell *cell, const DecodeColumn *column, Datum value)
{
	switch (column->typid)
	{
		case BOOLOID:
			set_int(cell, CDC_CELL_BOOL, DatumGetBool(value));
			break;
		case INT2OID:
			set_int(cell, CDC_CELL_INT, DatumGetInt16(value));
			break;
		case INT4OID:
			set_int(cell, CDC_CELL_INT, DatumGetInt32(value));
			break;
		case INT8OID:
			set_int(cell, CDC_CELL_INT, DatumGetInt64(value));
			break;
		case OIDOID:
			cell->kind = CDC_CELL_UINT;
			cell->v.u = DatumGetObjectId(value);
			break;
		case FLOAT4OID:
			cell->kind = CDC_CELL_FLOAT;
			cell->v.f4 = DatumGetFloat4(value);
			break;
		case FLOAT8OID:
			cell->kind = CDC_CELL_DOUBLE;
			cell->v.f8 = DatumGetFloat8(value);
			break;
		case CHAROID:
			set_char(cell, value);
			break;
		case CASHOID:
			set_money(cell, value);
			break;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case JSONOID:
			set_varlena(cell, CDC_CELL_TEXT, value);
			break;
		case NAMEOID:
			set_text(cell, NameStr(*DatumGetName(value)), strlen(NameStr(*DatumGetName(value))));
			break;
		case BYTEAOID:
			set_varlena(cell, CDC_CELL_BYTES, value);
			break;
		case DATEOID:
			set_int(cell, CDC_CELL_DAYS, DatumGetDateADT(value));
			break;
		case TIMEOID:
			set_int(cell, CDC_CELL_MICROS, DatumGetTimeADT(value));
			break;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			set_int(cell, CDC_CELL_MICROS, DatumGetTimestamp(value));
			break;
		case UUIDOID:
			set_uuid(cell, value);
			break;
		default:
			set_output(cell, column, value);
			break;
	}
}

/* One dimension of an array, and what lies in it; *values and *nulls move on. */
static void
set_dimension(CdcCell *cell, const DecodeColumn *column, const int *dims, int ndims, const Datum **values, const bool **nulls)
{
	CdcCellList *list = palloc(sizeof(CdcCellList));
	CdcCell    *cells = palloc_extended(sizeof(CdcCell) * Max(dims[0], 1), MCXT_ALLOC_HUGE);

	list->count = (uint32_t) dims[0];
	list->cells = cells;
	cell->kind = CDC_CELL_LIST;
	cell->v.list = list;
	for (int i = 0; i < dims[0]; i++)
	{
		if (ndims > 1)
		{
			set_dimension(&cells[i], column, dims + 1, ndims - 1, values, nulls);
			continue;
		}
		if (**nulls)
			cells[i].kind = CDC_CELL_NULL;
		else
			set_scalar(&cells[i], column, **values);
		(*values)++;
		(*nulls)++;
	}
}

static void
set_array(CdcCell *cell, const DecodeColumn *column, Datum value)
{
	static const int none = 0;
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	const Datum *next_value;
	const bool *next_null;

	deconstruct_array(array, ARR_ELEMTYPE(array), column->typlen, column->typbyval, column->typalign, &values, &nulls, &n);
	next_value = values;
	next_null = nulls;
	if (ARR_NDIM(array) == 0)
		set_dimension(cell, column, &none, 1, &next_value, &next_null);
	else
		set_dimension(cell, column, ARR_DIMS(array), ARR_NDIM(array), &next_value, &next_null);
}

/* ----------------------------------------------------------------- rows */

DecodeRow *
decode_row_open(Relation relation, HeapTuple tuple)
{
	TupleDesc	desc = RelationGetDescr(relation);
	DecodeRow  *row = palloc(sizeof(DecodeRow));

	row->values = palloc(sizeof(Datum) * Max(desc->natts, 1));
	row->nulls = palloc(sizeof(bool) * Max(desc->natts, 1));
	row->unchanged = NULL;
	heap_deform_tuple(tuple, desc, row->values, row->nulls);
	return row;
}

void
decode_row_complete(const DecodeRelation *entry, Relation relation, DecodeRow *new, const DecodeRow *old)
{
	TupleDesc	desc = RelationGetDescr(relation);

	new->unchanged = palloc0(sizeof(bool) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		if (new->nulls[i] || TupleDescAttr(desc, i)->attlen != -1 || TupleDescAttr(desc, i)->attisdropped ||
			!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(new->values[i])))
			continue;
		if (old != NULL && entry->in_identity[i] && !old->nulls[i])
			new->values[i] = old->values[i];
		else
			new->unchanged[i] = true;
	}
}

bool
decode_row_lacks(const DecodeRelation *entry, const DecodeRow *row)
{
	if (row->unchanged == NULL)
		return false;
	if (entry->transform != NULL)
		return decode_transform_lacks(entry, row);
	for (uint32 i = 0; i < entry->table->ncolumns; i++)
	{
		if (row->unchanged[entry->columns[i].attno])
			return true;
	}
	return false;
}

CdcCell *
decode_row_cells(const DecodeRelation *entry, const DecodeRow *row, bool is_old)
{
	uint32		n = entry->table->ncolumns;
	CdcCell    *cells = palloc(sizeof(CdcCell) * Max(n, 1));

	for (uint32 i = 0; i < n; i++)
	{
		const DecodeColumn *column = &entry->columns[i];
		int			attno = column->attno;

		cells[i].len = 0;
		cells[i].invalid = 0;
		if (is_old && !entry->cell_in_identity[attno])
			cells[i].kind = CDC_CELL_ABSENT;
		else if (row->nulls[attno])
			cells[i].kind = CDC_CELL_NULL;
		else if (row->unchanged != NULL && row->unchanged[attno])
			cells[i].kind = CDC_CELL_UNCHANGED;
		else if (column->is_list)
			set_array(&cells[i], column, row->values[attno]);
		else
			set_scalar(&cells[i], column, row->values[attno]);
	}
	return cells;
}
