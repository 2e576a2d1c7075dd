/*-------------------------------------------------------------------------
 *
 * verify_keys.c
 *	  Which keys does the target have that the source did not show? Which rows do
 *	  both sides not have equally often?
 *
 * NOTES
 *	  Keys of both sides come in different orders (collations), and asking the
 *	  source for each row here would cost too much. So a 64-bit hash of each key
 *	  goes into one of PARTS temporary files, by its upper bits, for each side;
 *	  then part by part the source's hashes are sorted in memory and the target's
 *	  looked up among them. With 128 parts a table of a billion rows takes 64 MB
 *	  at a time. The keys of a small table stay in memory.
 *
 *	  For a table without a key the hashes are those of whole rows, and what counts
 *	  is how often each side has one.
 *
 *	  Two keys with the same hash could hide a row that only the target has: for a
 *	  table of a billion rows the chance is 5 in 10^11 for each such row. It
 *	  never makes a difference where there is none: what comes out here is looked
 *	  at again by its key.
 *
 *	  The files are not bound to a transaction; they go with the process at the
 *	  latest.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/buffile.h"
#include "utils/memutils.h"

#include "util/util_wait.h"
#include "verify/verify_private.h"

#define PARTS 128

/* Hashes of a side that are kept in memory before they go into files; 1 MB. A small table never makes any. */
#define MEMORY_HASHES (128 * 1024)

/* Hashes that verify_keys_only_target gives at most before it stops after a part; 8 MB. */
#define GIVE_AT_MOST (1024 * 1024)

/* The same of verify_keys_uneven, whose caller keeps more for each. */
#define UNEVEN_AT_MOST (128 * 1024)

/* Read from a file at a time. */
#define READ_HASHES 1024

struct VerifyKeys
{
	MemoryContext cxt;
	uint64	   *memory[2];		/* not in files yet; NULL: none ever */
	int			nmemory[2];
	bool		has_files;
	BufFile    *files[2][PARTS];	/* NULL: nothing in it */
	int64		counts[2][PARTS];
	int			next;			/* part that verify_keys_only_target goes on with */
};

VerifyKeys *
verify_keys_create(MemoryContext cxt)
{
	VerifyKeys *keys = MemoryContextAllocZero(cxt, sizeof(VerifyKeys));

	keys->cxt = AllocSetContextCreate(cxt, "cdc verify keys", ALLOCSET_DEFAULT_SIZES);
	return keys;
}

/* Move a side's hashes from memory into its files. */
static void
spill(VerifyKeys *keys, VerifySide side)
{
	StaticAssertStmt(PARTS == 1 << (64 - 57), "upper bits number the parts");
	for (int i = 0; i < keys->nmemory[side]; i++)
	{
		uint64		hash = keys->memory[side][i];
		int			part = (int) (hash >> 57);

		if (keys->files[side][part] == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(keys->cxt);

			keys->files[side][part] = BufFileCreateTemp(true);
			MemoryContextSwitchTo(old);
		}
		BufFileWrite(keys->files[side][part], &hash, sizeof(hash));
		keys->counts[side][part]++;
	}
	keys->nmemory[side] = 0;
	keys->has_files = true;
}

void
verify_keys_add(VerifyKeys *keys, VerifySide side, uint64 hash)
{
	if (keys->memory[side] == NULL)
		keys->memory[side] = MemoryContextAlloc(keys->cxt, sizeof(uint64) * MEMORY_HASHES);
	if (keys->nmemory[side] == MEMORY_HASHES)
		spill(keys, side);
	keys->memory[side][keys->nmemory[side]++] = hash;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

static void
read_hashes(BufFile *file, uint64 *hashes, int64 n)
{
	while (n > 0)
	{
		size_t		some = (size_t) Min(n, READ_HASHES) * sizeof(uint64);

		util_check_interrupts();
		if (BufFileRead(file, hashes, some) != some)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read a temporary file of a verification")));
		hashes += some / sizeof(uint64);
		n -= some / sizeof(uint64);
	}
}

static void
rewind_file(BufFile *file)
{
	if (file != NULL && BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file of a verification")));
}

static void
close_part(VerifyKeys *keys, int part)
{
	for (int side = 0; side < 2; side++)
	{
		if (keys->files[side][part] != NULL)
			BufFileClose(keys->files[side][part]);
		keys->files[side][part] = NULL;
	}
}

/* A list of hashes that grows, and those of the source that it is to be without. */
typedef struct Give
{
	MemoryContext cxt;
	uint64	   *hashes;			/* NULL: none yet */
	int			n;
} Give;

/* Add those of "some" that are not among the source's, which are sorted. */
static void
give(Give *to, const uint64 *some, int nsome, const uint64 *source, int64 nsource)
{
	for (int i = 0; i < nsome; i++)
	{
		if (nsource > 0 && bsearch(&some[i], source, nsource, sizeof(uint64), compare_hashes) != NULL)
			continue;
		if (to->hashes == NULL)
			to->hashes = MemoryContextAllocHuge(to->cxt, sizeof(uint64) * 64);
		else if (to->n >= 64 && (to->n & (to->n - 1)) == 0)
			to->hashes = repalloc_huge(to->hashes, sizeof(uint64) * (Size) to->n * 2);
		to->hashes[to->n++] = some[i];
	}
}

/* The same for one part of the files. */
static void
give_part(VerifyKeys *keys, int part, Give *to)
{
	int64		nsource = keys->counts[VERIFY_SOURCE][part];
	int64		ntarget = keys->counts[VERIFY_TARGET][part];
	uint64	   *source = MemoryContextAllocHuge(keys->cxt, sizeof(uint64) * (nsource + 1));
	uint64	   *some = MemoryContextAlloc(keys->cxt, sizeof(uint64) * READ_HASHES);

	rewind_file(keys->files[VERIFY_SOURCE][part]);
	rewind_file(keys->files[VERIFY_TARGET][part]);
	read_hashes(keys->files[VERIFY_SOURCE][part], source, nsource);
	qsort(source, nsource, sizeof(uint64), compare_hashes);

	while (ntarget > 0)
	{
		int			now = (int) Min(ntarget, READ_HASHES);

		read_hashes(keys->files[VERIFY_TARGET][part], some, now);
		ntarget -= now;
		give(to, some, now, source, nsource);
	}
	pfree(source);
	pfree(some);
}

bool
verify_keys_only_target(VerifyKeys *keys, MemoryContext cxt, uint64 **hashes, int *nhashes)
{
	Give		to = {.cxt = cxt};

	if (!keys->has_files)
	{
		if (keys->nmemory[VERIFY_SOURCE] > 0)
			qsort(keys->memory[VERIFY_SOURCE], keys->nmemory[VERIFY_SOURCE], sizeof(uint64), compare_hashes);
		give(&to, keys->memory[VERIFY_TARGET], keys->nmemory[VERIFY_TARGET],
			 keys->memory[VERIFY_SOURCE], keys->nmemory[VERIFY_SOURCE]);
		keys->nmemory[VERIFY_TARGET] = 0;
	}
	else
	{
		spill(keys, VERIFY_SOURCE);
		spill(keys, VERIFY_TARGET);
		for (; keys->next < PARTS && to.n < GIVE_AT_MOST; keys->next++)
		{
			if (keys->counts[VERIFY_TARGET][keys->next] > 0)
				give_part(keys, keys->next, &to);
			close_part(keys, keys->next);
		}
	}
	if (to.n > 0)
		qsort(to.hashes, to.n, sizeof(uint64), compare_hashes);
	*hashes = to.hashes;
	*nhashes = to.n;
	return to.n > 0;
}

/* Add the hashes that the two do not have equally often; sorts both. */
static void
give_uneven(Give *to, uint64 *source, int64 nsource, uint64 *target, int64 ntarget)
{
	int64		i = 0;
	int64		j = 0;

	if (nsource > 0)
		qsort(source, nsource, sizeof(uint64), compare_hashes);
	if (ntarget > 0)
		qsort(target, ntarget, sizeof(uint64), compare_hashes);
	while (i < nsource || j < ntarget)
	{
		uint64		hash = j == ntarget || (i < nsource && source[i] < target[j]) ? source[i] : target[j];
		int64		more = 0;

		for (; i < nsource && source[i] == hash; i++)
			more++;
		for (; j < ntarget && target[j] == hash; j++)
			more--;
		if (more != 0)
			give(to, &hash, 1, NULL, 0);
	}
}

/* The same for one part of the files. */
static void
give_uneven_part(VerifyKeys *keys, int part, Give *to)
{
	uint64	   *hashes[2];

	for (int side = 0; side < 2; side++)
	{
		int64		n = keys->counts[side][part];

		hashes[side] = MemoryContextAllocHuge(keys->cxt, sizeof(uint64) * (n + 1));
		rewind_file(keys->files[side][part]);
		read_hashes(keys->files[side][part], hashes[side], n);
	}
	give_uneven(to, hashes[VERIFY_SOURCE], keys->counts[VERIFY_SOURCE][part],
				hashes[VERIFY_TARGET], keys->counts[VERIFY_TARGET][part]);
	pfree(hashes[VERIFY_SOURCE]);
	pfree(hashes[VERIFY_TARGET]);
}

bool
verify_keys_uneven(VerifyKeys *keys, MemoryContext cxt, uint64 **hashes, int *nhashes)
{
	Give		to = {.cxt = cxt};

	if (!keys->has_files)
	{
		give_uneven(&to, keys->memory[VERIFY_SOURCE], keys->nmemory[VERIFY_SOURCE],
					keys->memory[VERIFY_TARGET], keys->nmemory[VERIFY_TARGET]);
		keys->nmemory[VERIFY_SOURCE] = keys->nmemory[VERIFY_TARGET] = 0;
	}
	else
	{
		spill(keys, VERIFY_SOURCE);
		spill(keys, VERIFY_TARGET);
		/* parts are numbered by the upper bits: all that is given is sorted */
		for (; keys->next < PARTS && to.n < UNEVEN_AT_MOST; keys->next++)
		{
			give_uneven_part(keys, keys->next, &to);
			close_part(keys, keys->next);
		}
	}
	*hashes = to.hashes;
	*nhashes = to.n;
	return to.n > 0;
}

void
verify_keys_destroy(VerifyKeys *keys)
{
	for (int part = 0; part < PARTS; part++)
		close_part(keys, part);
	MemoryContextDelete(keys->cxt);
	pfree(keys);
}
