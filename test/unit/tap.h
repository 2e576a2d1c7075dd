/*-------------------------------------------------------------------------
 *
 * tap.h
 *	  Smallest TAP producer for the unit tests.
 *
 * NOTES
 *	  A test program calls ok, is_int, is_str and so on, then returns
 *	  done_testing(). A failure says where it was written and what was got.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TEST_TAP_H
#define CDC_TEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int tap_count;
extern int tap_failed;

extern bool tap_ok(bool passed, const char *file, int line, const char *name);
extern bool tap_is_int(int64_t got, int64_t want, const char *file, int line, const char *name);
extern bool tap_is_str(const char *got, size_t gotlen, const char *want, const char *file, int line,
                       const char *name);
extern int tap_done(void);

/* Number of rounds of the random tests: CDC_TEST_ROUNDS or the given number. */
extern long tap_rounds(long usual);

/* Seed of the random tests, printed so that a failure can be run again: CDC_TEST_SEED or the clock. */
extern uint64_t tap_seed(void);

/* A random number from *state (splitmix64). */
extern uint64_t tap_random(uint64_t *state);

#define ok(cond, name) tap_ok((cond), __FILE__, __LINE__, (name))
#define is_int(got, want, name)                                                                    \
	tap_is_int((int64_t) (got), (int64_t) (want), __FILE__, __LINE__, (name))
#define is_str(got, want, name) tap_is_str((got), strlen(got), (want), __FILE__, __LINE__, (name))
#define is_strn(got, len, want, name) tap_is_str((got), (len), (want), __FILE__, __LINE__, (name))
#define done_testing() tap_done()

#endif /* CDC_TEST_TAP_H */
