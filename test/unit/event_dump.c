/*-------------------------------------------------------------------------
 *
 * event_dump.c
 *	  Recorded binary logs: cut into events, decoded to text.
 *
 * NOTES
 *	  The text is what the .expect files of the golden tests hold. Tables are
 *	  described once per definition, which also shows that a definition is found
 *	  again and keeps its "user" pointer.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "event_dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binlog/charset.h"
#include "binlog/wire.h"

static const char log_magic[4] = {(char) 0xfe, 'b', 'i', 'n'};

char *
read_whole_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	long size;

	if (file == NULL)
		return NULL;
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	bytes = malloc((size_t) size + 1);
	if (bytes == NULL || fread(bytes, 1, (size_t) size, file) != (size_t) size)
	{
		free(bytes);
		fclose(file);
		return NULL;
	}
	fclose(file);
	bytes[size] = '\0';
	*len = (size_t) size;
	return bytes;
}

bool
recording_open(Recording *recording, const char *path)
{
	size_t cap = 16;

	memset(recording, 0, sizeof(*recording));
	recording->bytes = (uint8_t *) read_whole_file(path, &recording->len);
	if (recording->bytes == NULL || recording->len < 4 ||
	    memcmp(recording->bytes, log_magic, 4) != 0)
	{
		fprintf(stderr, "%s is no binary log\n", path);
		free(recording->bytes);
		return false;
	}
	recording->events = malloc(cap * sizeof(RecordedEvent));
	for (size_t at = 4; recording->len - at >= EVENT_HEADER_LEN;)
	{
		const uint8_t *event = recording->bytes + at;
		size_t len = event[9] | event[10] << 8 | event[11] << 16 | (size_t) event[12] << 24;

		if (len < EVENT_HEADER_LEN || len > recording->len - at)
			break;
		if (recording->nevents == cap)
		{
			cap *= 2;
			recording->events = realloc(recording->events, cap * sizeof(RecordedEvent));
		}
		recording->events[recording->nevents].data = event;
		recording->events[recording->nevents].len = len;
		recording->nevents++;
		at += len;
	}
	return true;
}

void
recording_close(Recording *recording)
{
	free(recording->bytes);
	free(recording->events);
}

/* Printable text as it is, everything else escaped; long text is cut. */
static void
dump_text(const char *data, size_t len, CdcBuf *out)
{
	size_t shown = len > 400 ? 400 : len;

	while (shown < len && shown > 0 && ((uint8_t) data[shown] & 0xc0) == 0x80)
		shown--;
	cdc_buf_add_char(out, '\'');
	for (size_t i = 0; i < shown; i++)
	{
		uint8_t c = (uint8_t) data[i];

		if (c < 0x20 || c == 0x7f)
			cdc_buf_printf(out, "\\x%02x", c);
		else if (c == '\'' || c == '\\')
			cdc_buf_printf(out, "\\%c", c);
		else
			cdc_buf_add_char(out, (char) c);
	}
	cdc_buf_add_char(out, '\'');
	if (shown < len)
		cdc_buf_printf(out, "...(%zu bytes)", len);
}

static void
dump_hex(const char *data, size_t len, CdcBuf *out)
{
	size_t shown = len > 200 ? 200 : len;

	for (size_t i = 0; i < shown; i++)
		cdc_buf_printf(out, "%02x", (unsigned) (uint8_t) data[i]);
	if (shown < len)
		cdc_buf_printf(out, "...(%zu bytes)", len);
}

void
dump_cell(const CdcCell *cell, CdcBuf *out)
{
	const CdcTimeParts *t = &cell->v.time;

	switch (cell->kind)
	{
		case CDC_CELL_NULL:
			cdc_buf_add_str(out, "NULL");
			break;
		case CDC_CELL_INT:
			cdc_buf_printf(out, "%lld", (long long) cell->v.i);
			break;
		case CDC_CELL_UINT:
			cdc_buf_printf(out, "%lluu", (unsigned long long) cell->v.u);
			break;
		case CDC_CELL_FLOAT:
			cdc_buf_printf(out, "%.9gf", (double) cell->v.f4);
			break;
		case CDC_CELL_DOUBLE:
			cdc_buf_printf(out, "%.17gd", cell->v.f8);
			break;
		case CDC_CELL_TEXT:
			dump_text(cell->v.data, cell->len, out);
			break;
		case CDC_CELL_BYTES:
			cdc_buf_add_str(out, "x:");
			dump_hex(cell->v.data, cell->len, out);
			break;
		case CDC_CELL_BIT:
			cdc_buf_add_str(out, "bit:");
			dump_hex(cell->v.data, cell->len, out);
			break;
		case CDC_CELL_GEOMETRY:
			cdc_buf_add_str(out, "geometry:");
			dump_hex(cell->v.data, cell->len, out);
			break;
		case CDC_CELL_VECTOR:
			cdc_buf_add_str(out, "vector:");
			dump_hex(cell->v.data, cell->len, out);
			break;
		case CDC_CELL_DATE:
			cdc_buf_printf(out, "%04u-%02u-%02u", t->year, t->month, t->day);
			break;
		case CDC_CELL_TIME:
			cdc_buf_printf(out, "%s%02u:%02u:%02u.%06u", t->negative ? "-" : "", t->hour, t->minute,
			               t->second, (unsigned) t->micro);
			break;
		case CDC_CELL_DATETIME:
			cdc_buf_printf(out, "%04u-%02u-%02u %02u:%02u:%02u.%06u", t->year, t->month, t->day,
			               t->hour, t->minute, t->second, (unsigned) t->micro);
			break;
		case CDC_CELL_TIMESTAMP:
			if (cell->v.epoch_us == CDC_ZERO_TIMESTAMP)
				cdc_buf_add_str(out, "epoch:zero");
			else
				cdc_buf_printf(out, "epoch:%lld", (long long) cell->v.epoch_us);
			break;
		default:
			cdc_buf_printf(out, "(kind %d)", (int) cell->kind);
			break;
	}
}

static void
dump_column(const CdcColumnDef *column, CdcBuf *out)
{
	const char *charset = binlog_charset_name(column->collation);

	cdc_buf_printf(out, "    %s %s", column->name != NULL ? column->name : "?",
	               cdc_type_name(column->type));
	if (column->length != 0)
		cdc_buf_printf(out, "(%u)", (unsigned) column->length);
	if (column->precision != 0)
		cdc_buf_printf(out, "(%u,%u)", column->precision, column->scale);
	else if (column->scale != 0)
		cdc_buf_printf(out, "(%u)", column->scale);
	if (column->is_unsigned)
		cdc_buf_add_str(out, " unsigned");
	if (!column->nullable)
		cdc_buf_add_str(out, " not-null");
	if (!column->visible)
		cdc_buf_add_str(out, " invisible");
	if (column->collation != 0)
		cdc_buf_printf(out, " %s/%u", charset != NULL ? charset : "?", column->collation);
	if (column->key_part != 0)
		cdc_buf_printf(out, " key:%u", column->key_part);
	if (column->key_prefix != 0)
		cdc_buf_printf(out, " prefix:%u", column->key_prefix);
	for (uint32_t i = 0; i < column->nlabels; i++)
	{
		if (i == 12)
		{
			cdc_buf_printf(out, ",...(%u labels)", (unsigned) column->nlabels);
			break;
		}
		cdc_buf_add_str(out, i == 0 ? " labels:" : ",");
		dump_text(column->labels[i].data, column->labels[i].len, out);
	}
	cdc_buf_printf(out, " wire:%u/%u\n", column->wire_type, column->wire_meta);
}

static void
dump_table(CdcTableDef *def, CdcBuf *out)
{
	if (def->user == def)
		return;
	def->user = def;
	cdc_buf_printf(out, "  TABLE %s.%s known:%s%s%s%s%s\n", def->schema, def->name,
	               def->known & CDC_KNOWS_SIGN ? " sign" : "",
	               def->known & CDC_KNOWS_CHARSET ? " charset" : "",
	               def->known & CDC_KNOWS_NAMES ? " names" : "",
	               def->known & CDC_KNOWS_LABELS ? " labels" : "",
	               def->known & CDC_KNOWS_KEY ? " key" : "");
	for (uint32_t i = 0; i < def->ncolumns; i++)
		dump_column(&def->columns[i], out);
}

static void
dump_image(const CdcChange *change, const char *what, const CdcField *fields, CdcArena *arena,
           CdcBuf *out)
{
	if (fields == NULL)
		return;
	cdc_buf_printf(out, " %s(", what);
	for (uint32_t i = 0, n = 0; i < change->table->ncolumns; i++)
	{
		const CdcColumnDef *column = &change->table->columns[i];
		CdcError err;
		CdcCell cell;

		if (fields[i].state == CDC_FIELD_ABSENT)
			continue;
		if (n++ > 0)
			cdc_buf_add(out, ", ", 2);
		if (column->name != NULL)
			cdc_buf_printf(out, "%s=", column->name);
		else
			cdc_buf_printf(out, "@%u=", (unsigned) i);
		cdc_arena_reset(arena);
		if (fields[i].state == CDC_FIELD_PARTIAL)
			cdc_buf_printf(out, "partial[%u]", (unsigned) fields[i].len);
		else if (change->cell(column, &fields[i], arena, &cell, &err) == CDC_OK)
			dump_cell(&cell, out);
		else
			cdc_buf_printf(out, "<%s: %s>", cdc_status_name(err.code), err.text);
	}
	cdc_buf_add_char(out, ')');
}

static void
dump_gtid(const BinlogGtid *gtid, CdcBuf *out)
{
	static const char *const names[] = {"standalone",   "ddl",          "xa-prepare",
	                                    "xa-complete",  "start-alter",  "rollback-alter",
	                                    "may-have-sbr", "transactional"};
	char text[CDC_GTID_TEXT_MAX];

	cdc_gtid_format(&gtid->gtid, text);
	cdc_buf_printf(out, "GTID %s", text[0] != '\0' ? text : "anonymous");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (gtid->flags & (1u << i))
			cdc_buf_printf(out, " %s", names[i]);
	}
	if (gtid->transaction_length != 0)
		cdc_buf_printf(out, " length=%llu", (unsigned long long) gtid->transaction_length);
	if (gtid->commit_time_us != 0)
		cdc_buf_printf(out, " time=%lld", (long long) gtid->commit_time_us);
}

void
dump_event(const BinlogEvent *event, CdcArena *arena, CdcBuf *out)
{
	char pos[CDC_POSITION_TEXT_MAX];
	const CdcChange *row = &event->u.row;

	if (event->kind == BINLOG_ROW)
		cdc_buf_add_str(out, "  ");
	else
		cdc_buf_printf(out, "%llu-%llu %s%s ", (unsigned long long) event->start.offset,
		               (unsigned long long) event->end.offset,
		               binlog_event_type_name(event->type_code),
		               event->artificial ? " artificial" : "");
	switch (event->kind)
	{
		case BINLOG_FORMAT:
			cdc_buf_printf(out, "server=%s%s%s", event->u.format.server_version,
			               event->u.format.is_mariadb ? " mariadb" : " mysql",
			               event->u.format.has_checksum ? " checksum" : "");
			break;
		case BINLOG_ROTATE:
		case BINLOG_HEARTBEAT:
			cdc_position_format(&event->u.rotate, pos);
			cdc_buf_printf(out, "to %s", pos);
			break;
		case BINLOG_GTID:
			dump_gtid(&event->u.gtid, out);
			break;
		case BINLOG_QUERY:
			cdc_buf_printf(out, "schema=%s sql_mode=%llx%s ", event->u.query.schema,
			               (unsigned long long) event->u.query.sql_mode,
			               event->u.query.is_load_data ? " load-data" : "");
			dump_text(event->u.query.text, event->u.query.len, out);
			break;
		case BINLOG_ROWS:
			cdc_buf_printf(out, "%s.%s%s%s%s%s\n",
			               event->u.rows.table != NULL ? event->u.rows.table->schema : "",
			               event->u.rows.table != NULL ? event->u.rows.table->name : "",
			               event->u.rows.partial ? " partial" : "",
			               event->u.rows.statement_end ? " statement-end" : "",
			               event->u.rows.full_before ? " full-before" : "",
			               event->u.rows.full_after ? " full-after" : "");
			if (event->u.rows.table != NULL)
				dump_table(event->u.rows.table, out);
			return;
		case BINLOG_ROW:
			cdc_buf_printf(out, "%s[%u]",
			               row->op == CDC_INSERT   ? "INSERT"
			               : row->op == CDC_UPDATE ? "UPDATE"
			                                       : "DELETE",
			               (unsigned) row->bytes);
			dump_image(row, "before", row->before, arena, out);
			dump_image(row, "after", row->after, arena, out);
			break;
		case BINLOG_XID:
			cdc_buf_printf(out, "%llu", (unsigned long long) event->u.xid.xid);
			break;
		case BINLOG_XA_PREPARE:
			cdc_buf_printf(out, "%s %s", event->u.xa_prepare.one_phase ? "one-phase" : "two-phase",
			               event->u.xa_prepare.xid);
			break;
		case BINLOG_INCIDENT:
		case BINLOG_OTHER:
			break;
	}
	cdc_buf_add_char(out, '\n');
}

/* Rows whose temporal columns the log does not describe: shown as such, not read. */
static bool
has_old_temporal(const CdcTableDef *def)
{
	for (uint32_t i = 0; i < def->ncolumns; i++)
	{
		if (def->columns[i].wire_type == WIRE_TIME || def->columns[i].wire_type == WIRE_DATETIME)
			return true;
	}
	return false;
}

CdcStatus
dump_recording(const Recording *recording, CdcBuf *out)
{
	BinlogReaderOptions options = {.memory_limit = 64 * 1024 * 1024};
	BinlogReader *reader = binlog_reader_create(&cdc_malloc_allocator, &options);
	CdcPosition start = {.file = "log.000001", .offset = 4};
	CdcStatus status = CDC_OK;
	CdcArena arena;
	BinlogEvent event;

	cdc_arena_init(&arena, &cdc_malloc_allocator, 64 * 1024 * 1024);
	binlog_reader_start(reader, &start);
	for (size_t i = 0; i < recording->nevents && status == CDC_OK; i++)
	{
		status = binlog_reader_feed(reader, recording->events[i].data, recording->events[i].len);
		while (status == CDC_OK && (status = binlog_reader_next(reader, &event)) == CDC_OK)
		{
			dump_event(&event, &arena, out);
			if (event.kind == BINLOG_ROWS && event.u.rows.table != NULL &&
			    has_old_temporal(event.u.rows.table))
			{
				cdc_buf_add_str(out, "  rows skipped\n");
				binlog_reader_skip_rows(reader);
			}
		}
		if (status == CDC_END)
			status = CDC_OK;
	}
	if (status != CDC_OK)
		cdc_buf_printf(out, "error %s at %llu: %s\n", cdc_status_name(status),
		               (unsigned long long) binlog_reader_error(reader)->offset,
		               binlog_reader_error(reader)->text);
	binlog_reader_free(reader);
	cdc_arena_free(&arena);
	return status;
}
