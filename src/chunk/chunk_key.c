/*-------------------------------------------------------------------------
 *
 * chunk_key.c
 *	  The bytes of a target row's key, or of a whole row where there is no key.
 *
 * NOTES
 *	  What snapshot_deleted stores must come out the same in every process and
 *	  after every restart, whatever DateStyle or bytea_output a role has been
 *	  given meanwhile. So a column is written as its type's binary send function
 *	  writes it, character types as their plain bytes (send would convert them to
 *	  a client's encoding), and only a type without send as its text. Each column
 *	  is preceded by its length. Keys that would be too long for an index row are
 *	  replaced by their SHA-256; the first byte tells the two forms apart.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "access/htup_details.h"

#include "chunk/chunk.h"
#include "compat/pg_compat.h"

/* Longer keys are hashed. */
#define KEY_BYTES_MAX 1000

#define KEY_FORM_PLAIN 1
#define KEY_FORM_SHA256 2

typedef enum KeyPartForm
{
	KEY_PART_VARLENA,			/* bytes as they are */
	KEY_PART_SEND,				/* binary send function */
	KEY_PART_TEXT				/* output function */
} KeyPartForm;

typedef struct KeyPart
{
	AttrNumber	attnum;
	KeyPartForm form;
	FmgrInfo	function;
} KeyPart;

/* What a target's rows are told apart by. */
typedef struct KeyParts
{
	int			n;
	KeyPart    *parts;
} KeyParts;

/* What chunk_key_number puts behind the bytes. */
#define NUMBER_BYTES (sizeof(uint64) + sizeof(uint32))

/* Length of a part that is null; only without a key. */
#define NULL_LENGTH PG_UINT32_MAX

/* How one column is written. */
static void
init_part(KeyPart *part, TupleDesc desc, AttrNumber attnum, MemoryContext cxt)
{
	Oid			type = getBaseType(TupleDescAttr(desc, attnum - 1)->atttypid);
	HeapTuple	tuple;
	Form_pg_type form;

	part->attnum = attnum;
	if (type == TEXTOID || type == VARCHAROID || type == BPCHAROID || type == BYTEAOID)
	{
		part->form = KEY_PART_VARLENA;
		return;
	}

	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	form = (Form_pg_type) GETSTRUCT(tuple);
	part->form = OidIsValid(form->typsend) ? KEY_PART_SEND : KEY_PART_TEXT;
	fmgr_info_cxt(part->form == KEY_PART_SEND ? form->typsend : form->typoutput, &part->function, cxt);
	ReleaseSysCache(tuple);
}

/* Look up once per open target how the columns of its key, or all that the source has, are written. */
static KeyParts *
key_parts(HeapTarget *target)
{
	MemoryContext cxt = target->estate->es_query_cxt;
	TupleDesc	desc = RelationGetDescr(target->rel);
	KeyParts   *parts;

	if (target->key_bytes != NULL)
		return target->key_bytes;

	parts = MemoryContextAllocZero(cxt, sizeof(KeyParts));
	parts->parts = MemoryContextAllocZero(cxt, sizeof(KeyPart) * Max(target->nkey, desc->natts));
	for (int i = 0; i < target->nkey; i++)
		init_part(&parts->parts[parts->n++], desc, target->key_attnums[i], cxt);
	for (int i = 0; i < desc->natts && target->nkey == 0; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped && (target->given == NULL || target->given[i]))
			init_part(&parts->parts[parts->n++], desc, i + 1, cxt);
	}
	target->key_bytes = parts;
	return parts;
}

/* SHA-256 of len bytes into out. */
static void
digest(const uint8 *data, size_t len, uint8 *out)
{
	pg_cryptohash_ctx *ctx = pg_cryptohash_create(PG_SHA256);

	if (ctx == NULL ||
		pg_cryptohash_init(ctx) < 0 ||
		pg_cryptohash_update(ctx, data, len) < 0 ||
		pg_cryptohash_final(ctx, out, PG_SHA256_DIGEST_LENGTH) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not compute the digest of a key")));
	pg_cryptohash_free(ctx);
}

bytea *
chunk_key_bytes(HeapTarget *target, TupleTableSlot *slot)
{
	KeyParts   *parts = key_parts(target);
	StringInfoData buf;
	bytea	   *result;

	initStringInfo(&buf);
	appendStringInfoSpaces(&buf, VARHDRSZ);
	appendStringInfoChar(&buf, KEY_FORM_PLAIN);

	for (int i = 0; i < parts->n; i++)
	{
		KeyPart    *part = &parts->parts[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, part->attnum, &isnull);
		const char *data;
		uint32		len;
		uint32		len_be;

		if (isnull && target->nkey == 0)
		{
			len_be = NULL_LENGTH;
			appendBinaryStringInfo(&buf, (const char *) &len_be, sizeof(len_be));
			continue;
		}
		if (isnull)
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in the key of table \"%s\"", RelationGetRelationName(target->rel))));

		if (part->form == KEY_PART_TEXT)
		{
			data = OutputFunctionCall(&part->function, value);
			len = strlen(data);
		}
		else
		{
			const struct varlena *bytes = part->form == KEY_PART_SEND
				? SendFunctionCall(&part->function, value)
				: pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));

			data = VARDATA_ANY(bytes);
			len = VARSIZE_ANY_EXHDR(bytes);
		}

		len_be = pg_hton32(len);
		appendBinaryStringInfo(&buf, (const char *) &len_be, sizeof(len_be));
		appendBinaryStringInfo(&buf, data, len);
	}

	if (buf.len - VARHDRSZ > KEY_BYTES_MAX)
	{
		uint8		sum[PG_SHA256_DIGEST_LENGTH];

		digest((uint8 *) buf.data + VARHDRSZ, buf.len - VARHDRSZ, sum);
		resetStringInfo(&buf);
		appendStringInfoSpaces(&buf, VARHDRSZ);
		appendStringInfoChar(&buf, KEY_FORM_SHA256);
		appendBinaryStringInfo(&buf, (const char *) sum, sizeof(sum));
	}

	result = (bytea *) buf.data;
	SET_VARSIZE(result, buf.len);
	return result;
}

bytea *
chunk_key_number(const bytea *key, uint64 transaction, uint32 number)
{
	Size		size = VARSIZE(key);
	bytea	   *result = palloc(size + NUMBER_BYTES);
	uint64		transaction_be = pg_hton64(transaction);
	uint32		number_be = pg_hton32(number);

	memcpy(result, key, size);
	memcpy((char *) result + size, &transaction_be, sizeof(uint64));
	memcpy((char *) result + size + sizeof(uint64), &number_be, sizeof(uint32));
	SET_VARSIZE(result, size + NUMBER_BYTES);
	return result;
}

bytea *
chunk_key_unnumber(const bytea *numbered)
{
	Size		size = VARSIZE(numbered) - NUMBER_BYTES;
	bytea	   *result = palloc(size);

	memcpy(result, numbered, size);
	SET_VARSIZE(result, size);
	return result;
}
