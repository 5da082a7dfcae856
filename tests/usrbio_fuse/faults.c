/*
 * faults.c - faults that a test requests, by lines written to 3fs-virt/control. Any thread asks;
 * one lock.
 *
 *   fail read|write ERRNO N      the N-th request of that kind in rings from now on ends with
 *                                ERRNO (EIO, ENOSPC ...)
 *   fail read|write ERRNO every N
 *   torn N                       the N-th write of several chunks from now on writes
 *                                its first one, then -EIO
 *   delay MS                     each job takes so much longer
 *   meta US                      each metadata operation does
 *   hold | go                    jobs wait for `go`
 *   refuse iovs|rings ERRNO      links to shared memory are refused
 *   refuse creates ERRNO         no file can be made: EIO is a stripe larger than the chain table
 *   targets old|new              old: made without --use-new-chunk-engine; a write to chunks of a
 *                                size that the old engine lacks ends with EIO (in 3FS after 60 s)
 *   depth any|nonneg             nonneg: rings of a negative io_depth are
 *                                refused, as some daemons do
 *   stall on|off                 off: io_depth < 0 with a timeout starts what there is
 *   readonly on|off
 *   chain K N READ_MS            a storage node is lost: I/O of chunks whose file's number and
 *                                own number add up to K modulo N waits; reads for READ_MS from
 *                                now on, as until another replica is asked, writes for ever
 *   space TOTAL FREE             what statfs tells, in bytes
 *   layout DIRECTORY BYTES       chunk size of new files there; the directory is made
 *   exit                         the daemon is gone at once; its mount stays behind
 *   clear                        no faults
 */
#include "stand.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct failure {
	int error;
	uint64_t in, every; /* requests until it happens; 0: not planned */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static struct {
	struct failure io[2]; /* [read] */
	uint64_t torn;
	int delay_ms, meta_us, refuse_iovs, refuse_rings, refuse_creates;
	bool hold, nonneg, no_stall, readonly, old_targets;
	uint64_t total, left;
	uint64_t chain, chains, reads_at; /* monotonic ms */
} f;
static __thread bool tearing; /* of the write that this thread is at */

static const struct {
	const char *name;
	int error;
} errors[] = {
	{ "EIO", EIO }, { "EREMOTEIO", EREMOTEIO }, { "ENOSPC", ENOSPC }, { "EROFS", EROFS },
	{ "EINVAL", EINVAL },
	{ "EBADF", EBADF }, { "EACCES", EACCES }, { "EPERM", EPERM }, { "ENODATA", ENODATA },
	{ "EFBIG", EFBIG },
	{ "EINTR", EINTR }, { "EMFILE", EMFILE }, { "ENOMEM", ENOMEM },
};

static int error_named(const char *name)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].error;
	return 0;
}

static bool happens(struct failure *x)
{
	if (x->in == 0 || --x->in > 0)
		return false;
	x->in = x->every;
	return true;
}

static int plan_failure(const char *a, const char *b, const char *c, const char *d)
{
	struct failure *x = strcmp(a, "read") == 0    ? &f.io[1]
			    : strcmp(a, "write") == 0 ? &f.io[0]
						      : NULL;
	bool every = strcmp(c, "every") == 0;
	uint64_t n = strtoull(every ? d : c, NULL, 10);

	if (!x || !error_named(b) || n == 0)
		return EINVAL;
	*x = (struct failure){ .error = error_named(b), .in = n, .every = every ? n : 0 };
	return 0;
}

static int set_flag(const char *word, const char *on, const char *off, bool *flag)
{
	if (strcmp(word, on) != 0 && strcmp(word, off) != 0)
		return EINVAL;
	*flag = strcmp(word, on) == 0;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int command_locked(char w[5][256])
{
	bool stall = !f.no_stall;
	int rc = 0;

	if (strcmp(w[0], "fail") == 0)
		return plan_failure(w[1], w[2], w[3], w[4]);
	if (strcmp(w[0], "torn") == 0)
		f.torn = strtoull(w[1], NULL, 10);
	else if (strcmp(w[0], "delay") == 0)
		f.delay_ms = atoi(w[1]);
	else if (strcmp(w[0], "meta") == 0)
		f.meta_us = atoi(w[1]);
	else if (strcmp(w[0], "hold") == 0)
		f.hold = true;
	else if (strcmp(w[0], "go") == 0)
		f.hold = false;
	else if (strcmp(w[0], "refuse") == 0 && strcmp(w[1], "iovs") == 0)
		f.refuse_iovs = error_named(w[2]);
	else if (strcmp(w[0], "refuse") == 0 && strcmp(w[1], "rings") == 0)
		f.refuse_rings = error_named(w[2]);
	else if (strcmp(w[0], "refuse") == 0 && strcmp(w[1], "creates") == 0)
		f.refuse_creates = error_named(w[2]);
	else if (strcmp(w[0], "targets") == 0)
		rc = set_flag(w[1], "old", "new", &f.old_targets);
	else if (strcmp(w[0], "depth") == 0)
		rc = set_flag(w[1], "nonneg", "any", &f.nonneg);
	else if (strcmp(w[0], "stall") == 0) {
		rc = set_flag(w[1], "on", "off", &stall);
		f.no_stall = !stall;
	} else if (strcmp(w[0], "readonly") == 0)
		rc = set_flag(w[1], "on", "off", &f.readonly);
	else if (strcmp(w[0], "space") == 0) {
		f.total = strtoull(w[1], NULL, 10);
		f.left = strtoull(w[2], NULL, 10);
	} else if (strcmp(w[0], "chain") == 0) {
		f.chain = strtoull(w[1], NULL, 10);
		f.chains = strtoull(w[2], NULL, 10);
		f.reads_at = now_ms() + strtoull(w[3], NULL, 10);
	} else if (strcmp(w[0], "clear") == 0)
		memset(&f, 0, sizeof f);
	else if (strcmp(w[0], "exit") == 0)
		_exit(0);
	else
		rc = EINVAL;
	pthread_cond_broadcast(&let_go);
	return rc;
}

int fault_command(char *text)
{
	char *rest = text;
	int rc = 0;

	for (char *line; rc == 0 && (line = strtok_r(rest, "\n", &rest)) != NULL;) {
		char w[5][256] = { "" };

		if (sscanf(line, "%255s %255s %255s %255s %255s", w[0], w[1], w[2], w[3], w[4]) < 1)
			continue;
		if (strcmp(w[0], "layout") == 0) {
			rc = inode_layout(w[1], (uint32_t)strtoul(w[2], NULL, 10));
			continue;
		}
		pthread_mutex_lock(&lock);
		rc = command_locked(w);
		pthread_mutex_unlock(&lock);
	}
	return rc;
}

int fault_of_io(bool read)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (happens(&f.io[read]))
		error = f.io[read].error;
	else if (!read && f.readonly)
		error = EROFS;
	pthread_mutex_unlock(&lock);
	return error;
}

int fault_of_chunk(uint64_t nth)
{
	if (nth == 0)
		tearing = false;
	if (nth == 1) {
		pthread_mutex_lock(&lock);
		tearing = f.torn > 0 && --f.torn == 0;
		pthread_mutex_unlock(&lock);
	}
	return tearing ? EIO : 0;
}

static bool chain_waits(uint64_t file, uint64_t from, uint64_t to, bool read)
{
	bool waits = false;

	pthread_mutex_lock(&lock);
	for (uint64_t c = from; f.chains > 0 && c < to; c++)
		waits |= (file + c) % f.chains == f.chain;
	waits = waits && (!read || now_ms() < f.reads_at);
	pthread_mutex_unlock(&lock);
	return waits;
}

void fault_of_chain(uint64_t file, uint64_t from, uint64_t to, bool read)
{
	while (chain_waits(file, from, to, read))
		poll(NULL, 0, 20);
}

void fault_before_job(void)
{
	int ms;

	pthread_mutex_lock(&lock);
	while (f.hold)
		pthread_cond_wait(&let_go, &lock);
	ms = f.delay_ms;
	pthread_mutex_unlock(&lock);
	if (ms > 0)
		poll(NULL, 0, ms);
}

void fault_meta(void)
{
	struct timespec t = { 0 };

	pthread_mutex_lock(&lock);
	t.tv_sec = f.meta_us / 1000000;
	t.tv_nsec = f.meta_us % 1000000 * 1000L;
	pthread_mutex_unlock(&lock);
	if (t.tv_sec > 0 || t.tv_nsec > 0)
		ppoll(NULL, 0, &t, NULL);
}

int fault_of_ring(bool is_ring, int depth)
{
	int error;

	pthread_mutex_lock(&lock);
	error = is_ring && f.refuse_rings ? f.refuse_rings
		: !is_ring                ? f.refuse_iovs
		: f.nonneg && depth < 0   ? EINVAL
					  : 0;
	pthread_mutex_unlock(&lock);
	return error;
}

static bool flag(const bool *which)
{
	bool value;

	pthread_mutex_lock(&lock);
	value = *which;
	pthread_mutex_unlock(&lock);
	return value;
}

int fault_of_create(void)
{
	int error;

	pthread_mutex_lock(&lock);
	error = f.readonly ? EROFS : f.refuse_creates;
	pthread_mutex_unlock(&lock);
	return error;
}

/* Chunk sizes of the old engine: 512K, 1M, 2M, 4M, 16M, 64M. */
int fault_of_targets(uint32_t chunk)
{
	static const uint32_t sizes = 512u << 10 | 1u << 20 | 2u << 20 | 4u << 20 | 16u << 20 |
				      64u << 20;

	return flag(&f.old_targets) && !(chunk & sizes) ? EIO : 0;
}

bool fault_readonly(void) { return flag(&f.readonly); }
bool fault_stall(void) { return !flag(&f.no_stall); }

bool fault_space(struct statvfs *v)
{
	bool told;

	pthread_mutex_lock(&lock);
	told = f.total > 0;
	if (told) {
		v->f_blocks = f.total >> 21;
		v->f_bfree = v->f_bavail = f.left >> 21;
	}
	pthread_mutex_unlock(&lock);
	return told;
}
