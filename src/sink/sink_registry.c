/*-------------------------------------------------------------------------
 *
 * sink_registry.c
 *	  Schemas of documents in a registry, as Confluent's has them.
 *
 * NOTES
 *	  A schema is registered under a subject before the first document that is
 *	  written by it, and the registry says its number, the same each time. The
 *	  format remembers the number for as long as it remembers the schema; here it
 *	  is remembered longer, so that more tables than the format has room for do not
 *	  ask for it with each change. A
 *	  registry that does not take the schema, as it is not compatible with the
 *	  one before it, stops the pipeline: what has been written stays readable.
 *
 *	  Subjects, by the server's option schema_registry_subject: "topic" <topic>-value and
 *	  <topic>-key, "record" the full name of the record, "topic-record" both. Sinks
 *	  that have no topics have Debezium's names of them: <server_name>.<schema>.<table>.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "http/http.h"
#include "sink/sink.h"
#include "sink/sink_registry.h"
#include "util/util_error.h"

#define ANSWER_TIMEOUT_MS 10000

/* Most of an answer that is told. */
#define TOLD_MAX 500

struct SinkRegistry
{
	char	   *url;			/* without a slash at its end */
	char	   *username;		/* NULL: without authentication */
	char	   *password;
	bool		by_topic;		/* subjects have the topic's name */
	bool		by_record;		/* and the record's */
	HTAB	   *known;			/* KnownSchema: numbers that the registry has told, also of schemas that the format has forgotten */
};

/* More are not remembered; then all are asked for anew. */
#define KNOWN_MAX 20000

typedef struct KnownSchema
{
	uint8		digest[PG_SHA256_DIGEST_LENGTH];	/* of subject and schema: hash key */
	uint32		id;
} KnownSchema;

/* Take the options of the owner's user mapping, or of everybody's; there need not be one. */
static void
read_user_mapping(SinkRegistry *registry, const CdcSinkTarget *target)
{
	Oid			server = get_foreign_server_oid(target->server_name, false);
	HeapTuple	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(target->pipeline->owner), ObjectIdGetDatum(server));
	Datum		datum;
	bool		isnull;
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(server));
	if (!HeapTupleIsValid(tuple))
		return;
	datum = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple, Anum_pg_user_mapping_umoptions, &isnull);
	if (!isnull)
	{
		foreach(lc, untransformRelOptions(datum))
		{
			DefElem    *def = lfirst_node(DefElem, lc);

			if (strcmp(def->defname, "registry_username") == 0)
				registry->username = pstrdup(defGetString(def));
			else if (strcmp(def->defname, "registry_password") == 0)
				registry->password = pstrdup(defGetString(def));
		}
	}
	ReleaseSysCache(tuple);
}

/* Does the URL lead to this machine? */
static bool
is_loopback(const char *url)
{
	static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};

	if (pg_strncasecmp(url, "http://", 7) != 0)
		return false;
	for (size_t i = 0; i < lengthof(hosts); i++)
	{
		size_t		len = strlen(hosts[i]);

		if (pg_strncasecmp(url + 7, hosts[i], len) == 0 && strchr(":/", url[7 + len]) != NULL)
			return true;
	}
	return false;
}

SinkRegistry *
sink_registry_open(const CdcSinkTarget *target)
{
	SinkRegistry *registry = palloc0(sizeof(SinkRegistry));
	HASHCTL		ctl = {.keysize = PG_SHA256_DIGEST_LENGTH,.entrysize = sizeof(KnownSchema),.hcxt = CurrentMemoryContext};
	const char *url = sink_option(target, "schema_registry_url");
	const char *subject = util_option_text(&catalog_registry_server_options, "schema_registry_subject", sink_option(target, "schema_registry_subject"));
	size_t		len;

	if (url == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has no schema registry", target->server_name),
				 errdetail("Documents in Avro have the number of their schema in a registry."),
				 errhint("Run ALTER SERVER %s OPTIONS (ADD schema_registry_url 'http://...'), or choose another format.", quote_identifier(target->server_name))));
	registry->known = hash_create("cdc registered schemas", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	registry->url = pstrdup(url);
	for (len = strlen(url); len > 0 && url[len - 1] == '/'; len--)
		registry->url[len - 1] = '\0';
	registry->by_topic = strcmp(subject, "record") != 0;
	registry->by_record = strcmp(subject, "topic") != 0;
	read_user_mapping(registry, target);
	if (registry->username != NULL && pg_strncasecmp(url, "https://", 8) != 0 && !is_loopback(url))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("the password for the schema registry of server \"%s\" would be sent without TLS", target->server_name),
				 errhint("Use https:// in schema_registry_url.")));
	return registry;
}

/* Debezium's name of the topic that a record goes to. */
static void
add_topic(const CdcFormat *format, const CdcRecord *record, StringInfo out)
{
	appendStringInfoString(out, format->options.server_name);
	if (record->kind == CDC_RECORD_MESSAGE)
		appendStringInfoString(out, ".message");
	else if (record->kind == CDC_RECORD_CHANGE || record->kind == CDC_RECORD_TRUNCATE)
		appendStringInfo(out, ".%s.%s", record->table->schema, record->table->name);
	else if (record->kind != CDC_RECORD_SCHEMA)
		appendStringInfoString(out, ".transaction");
}

/* A member of a JSON object as text; NULL when it is not there. */
static char *
member_text(Jsonb *object, const char *name)
{
	JsonbValue	value;

	if (!JB_ROOT_IS_OBJECT(object) || getKeyJsonValueFromContainer(&object->root, name, (int) strlen(name), &value) == NULL)
		return NULL;
	if (value.type == jbvString)
		return pnstrdup(value.val.string.val, (Size) value.val.string.len);
	if (value.type == jbvNumeric)
		return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
	return NULL;
}

static char *
subject_of(const SinkRegistry *registry, const CdcFormat *format, const CdcRecord *record, const char *topic, const CdcFormatSchema *schema)
{
	StringInfoData subject;

	initStringInfo(&subject);
	if (registry->by_topic && topic != NULL)
		appendStringInfoString(&subject, topic);
	else if (registry->by_topic)
		add_topic(format, record, &subject);
	if (registry->by_record)
	{
		Jsonb	   *json = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(schema->text)));

		appendStringInfo(&subject, "%s%s.%s", subject.len > 0 ? "-" : "", member_text(json, "namespace"), member_text(json, "name"));
	}
	else
		appendStringInfoString(&subject, schema->is_key ? "-key" : "-value");
	return subject.data;
}

/* Characters of a path that stand for themselves. */
static char *
escape_path(const char *text)
{
	StringInfoData out;

	initStringInfo(&out);
	for (const unsigned char *p = (const unsigned char *) text; *p != '\0'; p++)
	{
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("-._~", *p) != NULL)
			appendStringInfoChar(&out, (char) *p);
		else
			appendStringInfo(&out, "%%%02X", *p);
	}
	return out.data;
}

/* What it said, as far as that is fit for a message. */
static char *
told_by(const HttpResponse *response)
{
	char	   *told = pnstrdup(response->body, TOLD_MAX);

	for (unsigned char *p = (unsigned char *) told; *p != '\0'; p++)
	{
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	return told;
}

static _Noreturn void
throw_answer(const char *subject, const HttpResponse *response)
{
	int			status = response->status;
	bool		refused = status == 401 || status == 403;

	ereport(ERROR,
			(errcode(status == 409 ? CDC_ERRCODE_TABLE_CHANGED :
					 refused ? ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION :
					 status >= 500 ? ERRCODE_CONNECTION_FAILURE : ERRCODE_FDW_ERROR),
			 status == 409 ? errmsg("the schema registry does not take the schema of subject \"%s\"", subject) :
			 errmsg("the schema registry did not give the number of the schema of subject \"%s\"", subject),
			 errdetail("It answered %d: %s", status, told_by(response)),
			 status == 409 ? errhint("The table's definition is not compatible with what was written before, as the subject's compatibility level asks for. Change the level, or ship the table under another name (option \"routes\").") :
			 refused ? errhint("Set registry_username and registry_password on the user mapping of the pipeline's owner.") : 0));
}

/* What the registry was asked, in short. */
static void
digest_of(const char *subject, const char *schema, uint8 *digest)
{
	pg_cryptohash_ctx *hash = pg_cryptohash_create(PG_SHA256);

	if (hash == NULL || pg_cryptohash_init(hash) < 0 ||
		pg_cryptohash_update(hash, (const uint8 *) subject, strlen(subject) + 1) < 0 ||
		pg_cryptohash_update(hash, (const uint8 *) schema, strlen(schema)) < 0 ||
		pg_cryptohash_final(hash, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute a SHA-256 digest");
	pg_cryptohash_free(hash);
}

/* Ask the registry. */
static uint32
ask_for_number(const SinkRegistry *registry, const char *subject, const CdcFormatSchema *schema)
{
	StringInfoData body;
	HttpRequest request = {
		.url = psprintf("%s/subjects/%s/versions", registry->url, escape_path(subject)),
		.what = "schema registry",
		.username = registry->username,
		.password = registry->password,
		.content_type = "application/vnd.schemaregistry.v1+json",
		.timeout_ms = ANSWER_TIMEOUT_MS
	};
	HttpResponse response;
	char	   *id;

	initStringInfo(&body);
	appendStringInfoString(&body, "{\"schemaType\":\"AVRO\",\"schema\":");
	escape_json(&body, schema->text);
	appendStringInfoChar(&body, '}');
	request.body = body.data;
	response = http_request(&request);
	if (response.status != 200 || !pg_verify_mbstr(PG_UTF8, response.body, (int) strlen(response.body), true))
		throw_answer(subject, &response);
	id = member_text(DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(response.body))), "id");
	if (id == NULL)
		throw_answer(subject, &response);
	return DatumGetUInt32(DirectFunctionCall1(int4in, CStringGetDatum(id)));
}

static uint32
number_of(const SinkRegistry *registry, const CdcFormat *format, const CdcRecord *record, const char *topic, const CdcFormatSchema *schema)
{
	char	   *subject = subject_of(registry, format, record, topic, schema);
	uint8		digest[PG_SHA256_DIGEST_LENGTH];
	KnownSchema *known;
	uint32		id;

	digest_of(subject, schema->text, digest);
	known = hash_search(registry->known, digest, HASH_FIND, NULL);
	if (known != NULL)
		return known->id;
	id = ask_for_number(registry, subject, schema);
	if (hash_get_num_entries(registry->known) >= KNOWN_MAX)
	{
		HASH_SEQ_STATUS scan;

		hash_seq_init(&scan, registry->known);
		while ((known = hash_seq_search(&scan)) != NULL)
			(void) hash_search(registry->known, known->digest, HASH_REMOVE, NULL);
	}
	known = hash_search(registry->known, digest, HASH_ENTER, NULL);
	known->id = id;
	return id;
}

void
sink_registry_complete(const SinkRegistry *registry, CdcFormat *format, const CdcRecord *record, const char *topic)
{
	CdcFormatSchema schema;
	CdcStatus	status;

	while ((status = cdc_format_missing_schema(format, record, &schema)) == CDC_OK)
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "cdc schema registry", ALLOCSET_SMALL_SIZES);
		MemoryContext old_context = MemoryContextSwitchTo(context);
		uint32		id = number_of(registry, format, record, topic, &schema);

		MemoryContextSwitchTo(old_context);
		MemoryContextDelete(context);
		cdc_format_schema_id(format, record, &schema, id);
	}
	if (status != CDC_END)
		util_throw_out_of_memory();
}
