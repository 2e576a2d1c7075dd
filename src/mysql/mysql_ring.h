/*-------------------------------------------------------------------------
 *
 * mysql_ring.h
 *	  Bounded ring of records from one thread to another.
 *
 * NOTES
 *	  One writer (the session's thread), one reader (the backend). Plain C over
 *	  malloc; neither side takes a lock while there is data and room. A record
 *	  is written in place and read in place. The writer blocks while the ring is
 *	  full; the reader never blocks here: it announces that it will wait
 *	  (mysql_ring_prepare_wait) and then polls the eventfd, which the writer
 *	  writes only for an announced reader.
 *
 *	  A record larger than an eighth of the ring is malloc'd by itself and
 *	  counts against the same bound, but a single one may always pass.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MYSQL_RING_H
#define CDC_MYSQL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MysqlRing MysqlRing;

/* capacity is a power of two; NULL when memory or descriptors are out. */
extern MysqlRing *mysql_ring_create(size_t capacity);
extern void mysql_ring_free(MysqlRing *ring);

/*
 * Writer: room for a record of len bytes, 8-byte aligned; waits for it. NULL when
 * the ring was stopped or memory is out. Shown to the reader by publish.
 */
extern void *mysql_ring_reserve(MysqlRing *ring, uint32_t kind, size_t len);
extern void mysql_ring_publish(MysqlRing *ring);

/* Reader: gives the record of before back and shows the next; false when there is none. */
extern bool mysql_ring_next(MysqlRing *ring, uint32_t *kind, const uint8_t **data, size_t *len);

/* Reader: announce waiting; false when a record came meanwhile, so that there is nothing to wait for. */
extern bool mysql_ring_prepare_wait(MysqlRing *ring);
extern void mysql_ring_finish_wait(MysqlRing *ring);
extern int	mysql_ring_eventfd(const MysqlRing *ring);

/* Any thread: let a waiting writer go; reserve returns NULL from now on. */
extern void mysql_ring_stop(MysqlRing *ring);
extern bool mysql_ring_is_stopped(MysqlRing *ring);

/*
 * Any thread: from now on a writer that finds no room while the reader takes nothing at all for so many ms gives up:
 * reserve returns NULL, and to the writer mysql_ring_gave_up says so. 0: it waits without end.
 */
extern void mysql_ring_set_patience(MysqlRing *ring, int ms);
extern bool mysql_ring_gave_up(const MysqlRing *ring);

/* Any thread: for how many ms the writer has waited for room by now, all waits together; one that is not over does not count yet. */
extern uint64_t mysql_ring_waited(const MysqlRing *ring);

#endif							/* CDC_MYSQL_RING_H */
