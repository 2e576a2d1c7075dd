/*-------------------------------------------------------------------------
 *
 * sink_file.c
 *	  Servers of cdc_file: lines of JSON in files of a directory, rotated.
 *
 * NOTES
 *	  A pipeline writes into a folder of its own name, one file after the other:
 *	  changes-000000000001.jsonl, ... Each change is one line. What was flushed
 *	  ends in an end record, a line of its own that tells the position:
 *
 *		{"cdc_bridge":{"end":"0/16B3748","chunk":0,"system":"7341...","slot":"cdc_5_1","from":0,"at":5231,"crc32c":"1a2b3c4d"}}
 *
 *	  "chunk" counts the chunks of initial copies. "at" is the line's own offset in the file, "from" the one behind the end
 *	  record before it, and crc32c the checksum of the bytes between them and of
 *	  the record up to its own checksum. So what a crash left behind of a piece,
 *	  whichever of its blocks reached the disk, is told from one that was flushed:
 *	  open looks for the last end record that holds, and take cuts off what follows.
 *	  Who reads the files may believe what an end record stands behind.
 *
 *	  A file ends in an end record; the next one begins after it, when it has
 *	  become large enough. An empty first piece, written when a pipeline begins, says
 *	  where it began. Older files may be taken away, the newest may not: it has the
 *	  position. Nothing is said to be durable in a file that is not there any more
 *	  under its name, or that somebody else has written to.
 *
 *	  The folder is locked while a pipeline writes there. The lock is the
 *	  directory's own and leaves no file behind. Where the file system has none (NFS),
 *	  the slot's name in the end records still tells whose the files are.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/builtins.h"

#include "compat/pg_compat.h"
#include "sink/sink.h"
#include "util/util_arena.h"
#include "util/util_error.h"

#define FILE_PREFIX "changes-"
#define FILE_SUFFIX ".jsonl"
#define END_PREFIX "{\"cdc_bridge\":{\"end\":\""

/* Longer than any end record. */
#define END_MAX 512

/* What is collected before it goes to the file, and how much is read at a time. */
#define WRITE_SIZE (256 * 1024)
#define READ_SIZE (256 * 1024)

typedef struct FileSink
{
	CdcSink		base;
	char	   *folder;
	uint64		max_bytes;
	CdcFormat  *format;

	File		file;			/* VFD; 0: none */
	uint64		number;
	char	   *path;
	uint64		size;			/* bytes written to it, without those in "out" */
	uint64		from;			/* behind the last end record */
	pg_crc32c	crc;			/* of what stands behind it */
	bool		dirty;			/* something does */
	CdcSinkPosition ended;		/* what the last end record tells */
	CdcBuf		out;

	const char *directory;		/* of the folder */
	int			lock;			/* file descriptor of the folder, -1: none */
	bool		is_locked;		/* or cannot be */
	bool		found;			/* the file has a position */
	CdcSinkPosition start;		/* what the first file begins with */
} FileSink;

/* ---- names ---- */

static char *
file_path(const FileSink *sink, uint64 number)
{
	return psprintf("%s/" FILE_PREFIX "%012llu" FILE_SUFFIX, sink->folder, (unsigned long long) number);
}

/* The number in a file's name; 0 when it is none of ours. */
static uint64
file_number(const char *name)
{
	unsigned long long number = 0;
	int			end = 0;

	if (sscanf(name, FILE_PREFIX "%20llu%n", &number, &end) != 1 || strcmp(name + end, FILE_SUFFIX) != 0)
		return 0;
	return number;
}

/* A pipeline's name as the name of a folder: what is not a letter, a digit, '-', '_' or a later '.' becomes %xx. */
static char *
folder_name(const char *pipeline)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (const char *p = pipeline; *p != '\0'; p++)
	{
		bool		is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			*p == '-' || *p == '_' || (*p == '.' && p != pipeline);

		if (is_plain)
			appendStringInfoChar(&buf, *p);
		else
			appendStringInfo(&buf, "%%%02x", (unsigned char) *p);
	}
	return buf.data;
}

/* ---- the file system ---- */

/* The server takes these for errors of its own, which nobody tries again. */
static int
file_errcode(void)
{
	switch (errno)
	{
		case EDQUOT:
		case EFBIG:
			return errcode(ERRCODE_DISK_FULL);
		case ESTALE:
		case ENOTCONN:
		case ETIMEDOUT:
			return errcode(ERRCODE_IO_ERROR);
		default:
			return errcode_for_file_access();
	}
}

static _Noreturn void
throw_file(const char *what, const char *path)
{
	ereport(ERROR,
			(file_errcode(),
			 errmsg("could not %s \"%s\": %m", what, path)));
}

/* Opens, or makes, a file of the sink. */
static File
open_file(const char *path, int flags)
{
	File		file = PathNameOpenFile(path, flags | PG_BINARY);

	if (file < 0 && !(errno == ENOENT && (flags & O_CREAT) == 0))
		throw_file("open file", path);
	return file;
}

/* Not fsync_fname(): that takes the whole server down when it fails, and this is the user's directory. */
static void
sync_directory(const char *path)
{
	if (fsync_fname_ext(path, true, false, ERROR) != 0)
		throw_file("fsync directory", path);
}

/* Where links lead to was not looked at when the server was made, and may be another place since. */
static bool
is_in_data_directory(const char *directory)
{
	char	   *place = realpath(directory, NULL);
	char	   *data = realpath(DataDir, NULL);
	bool		is_in = place != NULL && data != NULL && path_is_prefix_of_path(data, place);

	free(place);
	free(data);
	return is_in;
}

static void
check_directory(const char *directory)
{
	struct stat st;

	if (stat(directory, &st) != 0)
		ereport(ERROR,
				(file_errcode(),
				 errmsg("could not use directory \"%s\": %m", directory),
				 errhint("Make it, and let the operating system's user of this server write there.")));
	if (!S_ISDIR(st.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a directory", directory),
				 errhint("Set option \"directory\" of the server to one.")));
	if (is_in_data_directory(directory))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("could not use directory \"%s\": it is in the data directory", directory),
				 errdetail("A symbolic link on the way leads there."),
				 errhint("Set option \"directory\" of the server to one outside of the data directory.")));
}

static void
make_folder(const FileSink *sink)
{
	if (MakePGDirectory(sink->folder) == 0)
	{
		sync_directory(sink->folder);
		sync_directory(sink->directory);
	}
	else if (errno != EEXIST)
		throw_file("make directory", sink->folder);
}

static void
unlock_folder(FileSink *sink)
{
	if (sink->lock < 0)
		return;
	close(sink->lock);
	ReleaseExternalFD();
	sink->lock = -1;
	sink->is_locked = false;
}

/* Before the next worker of the pipeline may start, and not only when the system takes this process away. */
static void
unlock_at_exit(int code, Datum arg)
{
	unlock_folder((FileSink *) DatumGetPointer(arg));
}

/* Try to be the only one who writes there. The folder may not be there yet. */
static void
lock_folder(FileSink *sink)
{
	unlock_folder(sink);
	sink->lock = BasicOpenFile(sink->folder, O_RDONLY | PG_BINARY);
	if (sink->lock < 0 && errno == ENOENT)
		return;
	if (sink->lock < 0)
		throw_file("open directory", sink->folder);
	ReserveExternalFD();
	/* any other error: this file system has no such locks */
	sink->is_locked = flock(sink->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* The greatest number of a file, 0 when there is none; below: only of those that are less. */
static uint64
last_number(const FileSink *sink, uint64 below)
{
	DIR		   *dir = AllocateDir(sink->folder);
	struct dirent *entry;
	uint64		last = 0;

	if (dir == NULL && errno == ENOENT)
		return 0;
	while ((entry = ReadDir(dir, sink->folder)) != NULL)
	{
		uint64		number = file_number(entry->d_name);

		if (number > last && number < below)
			last = number;
	}
	FreeDir(dir);
	return last;
}

static _Noreturn void
throw_changed(const char *path)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("file \"%s\" was changed by somebody else", path),
			 errdetail("The pipeline writes to it, and its size is not the one that the pipeline left."),
			 errhint("Leave the newest file of a pipeline alone.")));
}

static void
write_out(FileSink *sink)
{
	size_t		done = 0;
	off_t		now = FileSize(sink->file);

	if (now < 0)
		throw_file("look at file", sink->path);
	if ((uint64) now != sink->size)
		throw_changed(sink->path);
	while (done < sink->out.len)
	{
		int			n = FileWrite(sink->file, sink->out.data + done, (int) (sink->out.len - done), (off_t) (sink->size + done),
								  PG_WAIT_EXTENSION);

		if (n <= 0)
		{
			/* a disk that is full may say nothing else */
			if (n == 0)
				errno = ENOSPC;
			throw_file("write file", sink->path);
		}
		done += (size_t) n;
	}
	sink->size += done;
	sink_empty_buffer(&sink->out);
}

/* What was fsynced is of use only where readers, and the next worker, will look for it. */
static void
check_place(const FileSink *sink)
{
	struct stat named;
	struct stat open;

	if (stat(sink->path, &named) != 0 || fstat(FileGetRawDesc(sink->file), &open) != 0)
		throw_file("look at file", sink->path);
	if (named.st_ino != open.st_ino || named.st_dev != open.st_dev || (uint64) open.st_size != sink->size)
		throw_changed(sink->path);
}

static void
read_at(File file, const char *path, char *data, size_t len, uint64 offset)
{
	size_t		done = 0;

	while (done < len)
	{
		int			n = FileRead(file, data + done, (int) (len - done), (off_t) (offset + done), PG_WAIT_EXTENSION);

		if (n < 0)
			throw_file("read file", path);
		if (n == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("file \"%s\" became shorter while it was read", path)));
		done += (size_t) n;
	}
}

/* ---- end records ---- */

typedef struct EndRecord
{
	CdcSinkPosition position;
	uint64		from;
	uint64		at;
	uint64		end;			/* behind its line break */
} EndRecord;

static void
add_end(FileSink *sink, const CdcSinkPosition *position)
{
	uint64		at = sink->size + sink->out.len;
	size_t		start = sink->out.len;
	pg_crc32c	crc;

	cdc_buf_printf(&sink->out, END_PREFIX "%X/%X\",\"chunk\":%d,\"system\":\"%s\",\"slot\":\"%s\",\"from\":%llu,\"at\":%llu,\"crc32c\":\"",
				   LSN_FORMAT_ARGS(position->lsn), position->chunk, position->system_identifier, position->slot,
				   (unsigned long long) sink->from, (unsigned long long) at);
	crc = sink->crc;
	COMP_CRC32C(crc, sink->out.data + start, sink->out.len - start);
	FIN_CRC32C(crc);
	cdc_buf_printf(&sink->out, "%08x\"}}\n", crc);
	if (sink->out.status != CDC_OK)
		util_throw_out_of_memory();
}

/* Is what stands at data, up to its line break, an end record at that offset, and does its piece have its checksum? */
static bool
check_end(File file, const char *path, const char *data, size_t len, uint64 offset, EndRecord *record)
{
	char		line[END_MAX];
	uint32		high,
				low;
	unsigned int stored;
	unsigned long long from,
				at;
	int			crc_at = 0;
	int			line_len = 0;
	pg_crc32c	crc;
	char	   *piece;

	if (len >= sizeof(line))
		return false;
	memcpy(line, data, len);
	line[len] = '\0';
	if (sscanf(line, END_PREFIX "%X/%X\",\"chunk\":%d,\"system\":\"%23[0-9]\",\"slot\":\"%63[a-z0-9_]\",\"from\":%llu,\"at\":%llu,\"crc32c\":\"%n%8x\"}}%n",
			   &high, &low, &record->position.chunk, record->position.system_identifier, record->position.slot, &from, &at, &crc_at, &stored, &line_len) != 8 ||
		line_len != (int) len || at != offset || from > at)
		return false;

	INIT_CRC32C(crc);
	piece = palloc(READ_SIZE);
	for (uint64 done = from; done < at;)
	{
		size_t		n = (size_t) Min(at - done, READ_SIZE);

		CHECK_FOR_INTERRUPTS();
		read_at(file, path, piece, n, done);
		COMP_CRC32C(crc, piece, n);
		done += n;
	}
	pfree(piece);
	COMP_CRC32C(crc, line, crc_at);
	FIN_CRC32C(crc);
	record->position.lsn = ((XLogRecPtr) high << 32) | low;
	record->from = from;
	record->at = at;
	record->end = offset + len + 1;
	return crc == stored;
}

/*
 * The last end record of a file that holds: lines are looked at from the end of
 * the file to its beginning, block by block, with END_MAX bytes of the block
 * behind so that no line of interest is cut.
 */
static bool
find_end(File file, const char *path, uint64 size, EndRecord *record)
{
	char	   *data = palloc(READ_SIZE + END_MAX);
	uint64		upper = size;	/* what lies behind was looked at */
	bool		found = false;

	while (upper > 0 && !found)
	{
		uint64		lower = upper > READ_SIZE ? upper - READ_SIZE : 0;
		size_t		len = (size_t) (Min(upper + END_MAX, size) - lower);

		CHECK_FOR_INTERRUPTS();
		read_at(file, path, data, len, lower);
		for (size_t i = (size_t) (upper - lower); i-- > 0 && !found;)
		{
			const char *end;

			/* only a line can begin so: quotes inside of one are escaped */
			if (data[i] != END_PREFIX[0] || len - i < strlen(END_PREFIX) || memcmp(data + i, END_PREFIX, strlen(END_PREFIX)) != 0)
				continue;
			end = memchr(data + i, '\n', len - i);
			if (end != NULL)
				found = check_end(file, path, data + i, (size_t) (end - (data + i)), lower + i, record);
		}
		upper = lower;
	}
	pfree(data);
	return found;
}

/* ---- files ---- */

static void
use_file(FileSink *sink, File file, uint64 number, char *path, uint64 size)
{
	sink->file = file;
	sink->number = number;
	sink->path = path;
	sink->size = size;
	sink->from = size;
	INIT_CRC32C(sink->crc);
	sink->dirty = false;
	cdc_buf_reset(&sink->out);
}

static void
begin_file(FileSink *sink, uint64 number)
{
	char	   *path = file_path(sink, number);
	File		file = open_file(path, O_RDWR | O_CREAT | O_EXCL);

	sync_directory(sink->folder);
	use_file(sink, file, number, path, 0);
}

static void
end_file(FileSink *sink)
{
	FileClose(sink->file);
	pfree(sink->path);
	sink->file = 0;
	sink->path = NULL;
}

/* Find the newest file with an end record that holds. A newer one without any was begun and not finished. */
static bool
find_position(FileSink *sink, CdcSinkPosition *position)
{
	for (uint64 number = last_number(sink, PG_UINT64_MAX); number != 0; number = last_number(sink, number))
	{
		char	   *path = file_path(sink, number);
		File		file = open_file(path, O_RDWR);
		EndRecord	record = {0};
		uint64		size;

		if (file < 0)
			throw_file("open file", path);
		size = (uint64) FileSize(file);
		if (find_end(file, path, size, &record))
		{
			use_file(sink, file, number, path, record.end);
			*position = record.position;
			return true;
		}
		FileClose(file);
		/* one that has something and no end anywhere is not ours to remove, unless there is one before it; the first piece is short */
		if (size >= END_MAX && last_number(sink, number) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("file \"%s\" has no end record", path),
					 errdetail("Without one nobody knows up to which position the changes are there."),
					 errhint("Put back the file as the pipeline wrote it, or drop the pipeline and begin with another name.")));
		pfree(path);
	}
	return false;
}

/* Files behind the newest one that has a position. */
static void
remove_unfinished(const FileSink *sink)
{
	uint64		number;

	while ((number = last_number(sink, PG_UINT64_MAX)) > sink->number)
	{
		char	   *path = file_path(sink, number);

		if (unlink(path) != 0)
			throw_file("remove file", path);
		sync_directory(sink->folder);
		pfree(path);
	}
}

/* What came behind the last end record is what a flush did not finish; what stands before it may not be on disk yet. */
static void
settle_file(FileSink *sink)
{
	if (FileSize(sink->file) != (off_t) sink->size && FileTruncate(sink->file, (off_t) sink->size, PG_WAIT_EXTENSION) != 0)
		throw_file("truncate file", sink->path);
	if (FileSync(sink->file, PG_WAIT_EXTENSION) != 0)
		throw_file("fsync file", sink->path);
	sync_directory(sink->folder);
}

/* ---- the interface ---- */

static void
file_flush(CdcSink *base, const CdcSinkPosition *position)
{
	FileSink   *sink = (FileSink *) base;
	uint64		durable = sink->from;

	if (!sink->dirty && position->lsn == sink->ended.lsn && position->chunk == sink->ended.chunk)
		return;
	add_end(sink, position);
	write_out(sink);
	if (FileSync(sink->file, PG_WAIT_EXTENSION) != 0)
	{
		int			save = errno;

		/* the system may take for written what is not: it has to be written again */
		(void) FileTruncate(sink->file, (off_t) durable, PG_WAIT_EXTENSION);
		errno = save;
		throw_file("fsync file", sink->path);
	}
	check_place(sink);
	sink->from = sink->size;
	INIT_CRC32C(sink->crc);
	sink->dirty = false;
	sink->ended = *position;
	if (sink->size >= sink->max_bytes)
	{
		uint64		number = sink->number + 1;

		end_file(sink);
		begin_file(sink, number);
	}
}

static void
file_close(CdcSink *base)
{
	FileSink   *sink = (FileSink *) base;

	if (sink->file > 0)
		FileClose(sink->file);
	sink->file = 0;
	cancel_before_shmem_exit(unlock_at_exit, PointerGetDatum(sink));
	unlock_folder(sink);
}

static CdcSink *
file_open(const CdcSinkTarget *target, bool *found, CdcSinkPosition *position)
{
	FileSink   *sink = palloc0(sizeof(FileSink));
	const char *directory = sink_option(target, "directory");

	if (directory == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("server \"%s\" has no directory", target->server_name),
				 errhint("Run ALTER SERVER %s OPTIONS (ADD directory '/...').", quote_identifier(target->server_name))));
	sink->base.ops = &sink_file_ops;
	sink->base.keeps_position = true;
	sink->directory = directory;
	sink->folder = psprintf("%s/%s", directory, folder_name(target->pipeline->name));
	sink->max_bytes = (uint64) util_option_int(&catalog_file_server_options, "file_max_kb", sink_option(target, "file_max_kb")) * 1024;
	sink->format = sink_format(target);
	sink->start = target->start;
	sink->lock = -1;
	cdc_buf_init(&sink->out, util_context_allocator(CurrentMemoryContext), 0);
	check_directory(directory);

	/* first the lock: what is found stays as it is then */
	before_shmem_exit(unlock_at_exit, PointerGetDatum(sink));
	lock_folder(sink);
	sink->found = find_position(sink, position);
	if (!sink->found)
		*position = sink->start;
	sink->ended = *position;
	*found = sink->found;
	return &sink->base;
}

static void
file_take(CdcSink *base)
{
	FileSink   *sink = (FileSink *) base;

	if (!sink->is_locked)
	{
		make_folder(sink);
		lock_folder(sink);
	}
	if (!sink->is_locked)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("directory \"%s\" is in use", sink->folder),
				 errdetail("Another process of this server, or of another one, writes there."),
				 errhint("It is tried again. When no pipeline of this name is ending just now, find out who has it open, and give each pipeline a directory of its own.")));
	remove_unfinished(sink);
	if (sink->found)
	{
		settle_file(sink);
		return;
	}
	begin_file(sink, 1);
	sink->dirty = true;			/* an empty piece, which says where it begins */
	file_flush(base, &sink->start);
}

static void
add_line(CdcFormat *format, const CdcRecord *record, CdcBuf *out)
{
	if (!sink_add_document(format, record, out))
		return;
	cdc_buf_add_char(out, '\n');
	if (out->status != CDC_OK)
		util_throw_out_of_memory();
}

/* What stands in "out" from there on is new. */
static void
note_added(FileSink *sink, size_t start)
{
	/* the position has to become durable even when no line says so */
	sink->dirty = true;
	if (sink->out.len == start)
		return;
	COMP_CRC32C(sink->crc, sink->out.data + start, sink->out.len - start);
	sink->base.bytes += sink->out.len - start;
	if (sink->out.len >= WRITE_SIZE)
		write_out(sink);
}

static void
file_write(CdcSink *base, const CdcRecord *record)
{
	FileSink   *sink = (FileSink *) base;
	size_t		start = sink->out.len;

	add_line(sink->format, record, &sink->out);
	note_added(sink, start);
}

static void
file_prepare_open(CdcSinkPreparer *preparer, const CdcSinkTarget *target)
{
	preparer->format = sink_format(target);
}

static void
file_prepare(CdcSinkPreparer *preparer, const CdcRecord *record, CdcBuf *out)
{
	add_line(preparer->format, record, out);
}

static void
file_write_prepared(CdcSink *base, const char *data, size_t len)
{
	FileSink   *sink = (FileSink *) base;
	size_t		start = sink->out.len;

	cdc_buf_add(&sink->out, data, len);
	if (sink->out.status != CDC_OK)
		util_throw_out_of_memory();
	note_added(sink, start);
}

const CdcSinkOps sink_file_ops = {
	.wrapper = "cdc_file",
	.open = file_open,
	.take = file_take,
	.begin = file_write,
	.write = file_write,
	.schema_change = file_write,
	.commit = file_write,
	.flush = file_flush,
	.close = file_close,
	.prepare_open = file_prepare_open,
	.prepare = file_prepare,
	.write_prepared = file_write_prepared
};
