/*-------------------------------------------------------------------------
 *
 * tap.c
 *	  Smallest TAP producer for the unit tests.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#include "tap.h"

#include <time.h>

int tap_count;
int tap_failed;

bool
tap_ok(bool passed, const char *file, int line, const char *name)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_count, name);
	if (!passed)
	{
		tap_failed++;
		printf("#   failed at %s line %d\n", file, line);
	}
	fflush(stdout);
	return passed;
}

bool
tap_is_int(int64_t got, int64_t want, const char *file, int line, const char *name)
{
	if (tap_ok(got == want, file, line, name))
		return true;
	printf("#     got: %lld\n#  wanted: %lld\n", (long long) got, (long long) want);
	return false;
}

bool
tap_is_str(const char *got, size_t gotlen, const char *want, const char *file, int line,
           const char *name)
{
	if (tap_ok(gotlen == strlen(want) && memcmp(got, want, gotlen) == 0, file, line, name))
		return true;
	printf("#     got: \"%.*s\"\n#  wanted: \"%s\"\n", (int) gotlen, got, want);
	return false;
}

int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed == 0 ? 0 : 1;
}

long
tap_rounds(long usual)
{
	const char *env = getenv("CDC_TEST_ROUNDS");

	return env != NULL && atol(env) > 0 ? atol(env) : usual;
}

uint64_t
tap_seed(void)
{
	const char *env = getenv("CDC_TEST_SEED");
	uint64_t seed = env != NULL ? strtoull(env, NULL, 10) : (uint64_t) time(NULL);

	printf("# seed %llu (run again with CDC_TEST_SEED=%llu)\n", (unsigned long long) seed,
	       (unsigned long long) seed);
	return seed;
}

uint64_t
tap_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
