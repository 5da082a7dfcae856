/*
 * clock.c - system clocks, the identity of this boot, and a manual clock for tests.
 *
 * No state but a test clock's own, one atomic number. Any thread, no locks. Durations use
 * CLOCK_BOOTTIME, which advances while the machine is suspended, so that a lease expires during a
 * suspend.
 */
#include <skv/clock.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t system_now(void *self)
{
	(void)self;
	return read_ms(CLOCK_BOOTTIME);
}

static uint64_t system_wall(void *self)
{
	(void)self;
	return read_ms(CLOCK_REALTIME);
}

const struct skv_clock skv_clock_system = { system_now, system_wall, NULL };

uint64_t skv_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void skv_boot_id(char out[37])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n = f ? fread(out, 1, 36, f) : 0;

	if (f)
		fclose(f);
	if (n != 36)
		memset(out, '0', 36);
	out[36] = '\0';
}

static uint64_t fake_now(void *self) { return atomic_load(&((struct skv_fake_clock *)self)->now); }

void skv_fake_clock_init(struct skv_fake_clock *f, uint64_t start_ms)
{
	atomic_init(&f->now, start_ms);
	f->clock = (struct skv_clock){ fake_now, fake_now, f };
}

void skv_fake_clock_advance(struct skv_fake_clock *f, uint64_t ms)
{
	atomic_fetch_add(&f->now, ms);
}
