/*-------------------------------------------------------------------------
 *
 * mysql_ring.c
 *	  Bounded ring of records from one thread to another.
 *
 * NOTES
 *	  "head" counts bytes ever published, "tail" bytes ever given back; both
 *	  only grow. Records are multiples of RECORD_ALIGN and never wrap: when one
 *	  does not fit before the end of the buffer, a filler takes the rest.
 *
 *	  Lost wake-ups are excluded the usual way: the side that waits sets its
 *	  flag and then looks again; the other side changes its counter and then
 *	  looks at the flag. All four are sequentially consistent.
 *
 *	  The reader wakes a waiting writer only when half of the ring is free (or
 *	  a large record was given back), so the two do not take turns per record.
 *
 *	  A writer may have patience: when it waits for room and the reader has taken
 *	  nothing at all for so long, it gives up. What it holds elsewhere meanwhile
 *	  (an unfinished statement at a server) is then for others again.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "mysql/mysql_ring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define RECORD_ALIGN 16
#define KIND_FILLER 0
#define KIND_LARGE UINT32_C(0x80000000) /* payload is a pointer to malloc'd bytes */

typedef struct RecordHeader
{
	uint32_t	kind;
	uint32_t	unused;
	uint64_t	len;			/* of the payload; KIND_LARGE: of what the pointer leads to */
} RecordHeader;

struct MysqlRing
{
	uint8_t    *buffer;
	size_t		capacity;
	int			event_fd;

	_Atomic uint64_t head;
	_Atomic uint64_t tail;
	_Atomic size_t large_bytes;
	atomic_bool reader_waits;
	atomic_bool writer_waits;
	atomic_bool stopped;
	_Atomic int patience;		/* ms; 0: without end */
	_Atomic uint64_t waited;	/* ms that the writer has waited for room */

	/* writer only */
	uint64_t	next_head;
	bool		gave_up;

	/* reader only */
	uint64_t	known_head;
	uint64_t	read_pos;
	uint64_t	read_len;		/* size in the ring of the record shown; 0 none */
	void	   *shown_large;
	size_t		shown_large_len;

	pthread_mutex_t lock;		/* for a waiting writer only */
	pthread_cond_t room;
};

static size_t
record_size(size_t payload)
{
	return (sizeof(RecordHeader) + payload + RECORD_ALIGN - 1) & ~(size_t) (RECORD_ALIGN - 1);
}

MysqlRing *
mysql_ring_create(size_t capacity)
{
	MysqlRing  *ring = calloc(1, sizeof(MysqlRing));
	pthread_condattr_t attributes;

	if (ring == NULL)
		return NULL;
	ring->capacity = capacity;
	ring->buffer = malloc(capacity);
	ring->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->buffer == NULL || ring->event_fd < 0)
	{
		free(ring->buffer);
		if (ring->event_fd >= 0)
			close(ring->event_fd);
		free(ring);
		return NULL;
	}
	pthread_mutex_init(&ring->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&ring->room, &attributes);
	pthread_condattr_destroy(&attributes);
	return ring;
}

/* Both sides must have let go of the ring. */
void
mysql_ring_free(MysqlRing *ring)
{
	uint32_t	kind;
	const uint8_t *data;
	size_t		len;

	/* walking to the end frees the large records */
	while (mysql_ring_next(ring, &kind, &data, &len))
		;
	close(ring->event_fd);
	pthread_cond_destroy(&ring->room);
	pthread_mutex_destroy(&ring->lock);
	free(ring->buffer);
	free(ring);
}

static bool
has_room(MysqlRing *ring, uint64_t head, size_t need, size_t large)
{
	uint64_t	used = head - atomic_load(&ring->tail);
	size_t		large_now;

	if (used + need > ring->capacity)
		return false;
	if (large == 0)
		return true;
	large_now = atomic_load(&ring->large_bytes);
	return large_now == 0 || large_now + large <= ring->capacity;
}

/* Wait to be woken, or until the patience is at its end. With the lock held. */
static void
wait_woken(MysqlRing *ring)
{
	int			patience = atomic_load(&ring->patience);
	uint64_t	tail = atomic_load(&ring->tail);
	struct timespec until;

	if (patience == 0)
	{
		pthread_cond_wait(&ring->room, &ring->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += patience / 1000;
	until.tv_nsec += patience % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	if (pthread_cond_timedwait(&ring->room, &ring->lock, &until) != 0 && atomic_load(&ring->tail) == tail)
		ring->gave_up = true;
}

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

/* Wait until has_room; false when the ring is stopped, or the reader has taken nothing for too long. */
static bool
wait_for_room(MysqlRing *ring, uint64_t head, size_t need, size_t large)
{
	uint64_t	since;

	ring->gave_up = false;
	if (has_room(ring, head, need, large))
		return !atomic_load(&ring->stopped);

	since = now_ms();
	pthread_mutex_lock(&ring->lock);
	while (!atomic_load(&ring->stopped) && !ring->gave_up)
	{
		atomic_store(&ring->writer_waits, true);
		if (has_room(ring, head, need, large))
			break;
		wait_woken(ring);
	}
	atomic_store(&ring->writer_waits, false);
	pthread_mutex_unlock(&ring->lock);
	atomic_fetch_add(&ring->waited, now_ms() - since);
	return !atomic_load(&ring->stopped) && !ring->gave_up;
}

void *
mysql_ring_reserve(MysqlRing *ring, uint32_t kind, size_t len)
{
	uint64_t	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	bool		is_large = len > ring->capacity / 8;
	size_t		size = record_size(is_large ? sizeof(void *) : len);
	size_t		to_end = ring->capacity - (size_t) (head & (ring->capacity - 1));
	size_t		need = size;
	void	   *large = NULL;
	RecordHeader *header;

	if (to_end < size)
		need += to_end;
	if (!wait_for_room(ring, head, need, is_large ? len : 0))
		return NULL;
	if (is_large)
	{
		large = malloc(len);
		if (large == NULL)
			return NULL;
		atomic_fetch_add(&ring->large_bytes, len);
	}

	if (to_end < size)
	{
		header = (RecordHeader *) (ring->buffer + (head & (ring->capacity - 1)));
		header->kind = KIND_FILLER;
		header->len = to_end - sizeof(RecordHeader);
		head += to_end;
	}
	header = (RecordHeader *) (ring->buffer + (head & (ring->capacity - 1)));
	header->kind = kind;
	header->len = len;
	ring->next_head = head + size;
	if (is_large)
	{
		header->kind |= KIND_LARGE;
		*(void **) (header + 1) = large;
		return large;
	}
	return header + 1;
}

void
mysql_ring_publish(MysqlRing *ring)
{
	atomic_store(&ring->head, ring->next_head);
	if (atomic_load(&ring->reader_waits) && atomic_exchange(&ring->reader_waits, false))
	{
		uint64_t	one = 1;
		ssize_t		rc = write(ring->event_fd, &one, sizeof(one));

		(void) rc;				/* EAGAIN: already readable, which is all we want */
	}
}

/* Give the record that was shown back to the writer. */
static void
release_shown(MysqlRing *ring)
{
	bool		wake = false;

	if (ring->read_len == 0)
		return;
	ring->read_pos += ring->read_len;
	ring->read_len = 0;
	if (ring->shown_large != NULL)
	{
		free(ring->shown_large);
		ring->shown_large = NULL;
		atomic_fetch_sub(&ring->large_bytes, ring->shown_large_len);
		wake = true;
	}
	atomic_store(&ring->tail, ring->read_pos);
	if (!atomic_load(&ring->writer_waits))
		return;
	if (wake || atomic_load(&ring->head) - ring->read_pos <= ring->capacity / 2)
	{
		pthread_mutex_lock(&ring->lock);
		pthread_cond_signal(&ring->room);
		pthread_mutex_unlock(&ring->lock);
	}
}

bool
mysql_ring_next(MysqlRing *ring, uint32_t *kind, const uint8_t **data, size_t *len)
{
	release_shown(ring);
	for (;;)
	{
		RecordHeader *header;

		if (ring->read_pos == ring->known_head)
		{
			ring->known_head = atomic_load(&ring->head);
			if (ring->read_pos == ring->known_head)
				return false;
		}
		header = (RecordHeader *) (ring->buffer + (ring->read_pos & (ring->capacity - 1)));
		if (header->kind == KIND_FILLER)
		{
			/* the record behind the filler was published with it */
			ring->read_pos += sizeof(RecordHeader) + header->len;
			continue;
		}
		*kind = header->kind & ~KIND_LARGE;
		*len = header->len;
		if (header->kind & KIND_LARGE)
		{
			ring->shown_large = *(void **) (header + 1);
			ring->shown_large_len = header->len;
			*data = ring->shown_large;
			ring->read_len = record_size(sizeof(void *));
		}
		else
		{
			*data = (const uint8_t *) (header + 1);
			ring->read_len = record_size(header->len);
		}
		return true;
	}
}

bool
mysql_ring_prepare_wait(MysqlRing *ring)
{
	atomic_store(&ring->reader_waits, true);
	return atomic_load(&ring->head) == ring->read_pos + ring->read_len;
}

void
mysql_ring_finish_wait(MysqlRing *ring)
{
	uint64_t	count;
	ssize_t		rc;

	atomic_store(&ring->reader_waits, false);
	rc = read(ring->event_fd, &count, sizeof(count));
	(void) rc;					/* EAGAIN: nobody wrote */
}

int
mysql_ring_eventfd(const MysqlRing *ring)
{
	return ring->event_fd;
}

void
mysql_ring_stop(MysqlRing *ring)
{
	pthread_mutex_lock(&ring->lock);
	atomic_store(&ring->stopped, true);
	pthread_cond_broadcast(&ring->room);
	pthread_mutex_unlock(&ring->lock);
}

bool
mysql_ring_is_stopped(MysqlRing *ring)
{
	return atomic_load(&ring->stopped);
}

void
mysql_ring_set_patience(MysqlRing *ring, int ms)
{
	atomic_store(&ring->patience, ms);
}

bool
mysql_ring_gave_up(const MysqlRing *ring)
{
	return ring->gave_up;
}

uint64_t
mysql_ring_waited(const MysqlRing *ring)
{
	return atomic_load(&ring->waited);
}
