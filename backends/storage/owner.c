/*
 * owner.c - owner files `owner.<incarnation>` in the root: record which store uses the directory,
 * and from which state on.
 *
 * Each is created exclusively and written once: the file system only needs O_EXCL, which every one
 * has, also across hosts. A file shorter than its record is incomplete and does not count; so the
 * creator of a file reads all of them again once its own is durable. Of two concurrent creators,
 * the later reader sees the other's file.
 *
 * Record, little-endian: 0 magic, 8 uuid of the storage, 24 incarnation, 32 nonce, 48 wall time ms,
 * 56 XXH3-64 of the 56 bytes before. Two horizons follow, of 64 bytes each: 0 epoch, 8 number, 16
 * generation, 24 zeros, 56 XXH3-64. They are written in turn, so that one is whole when a
 * write was cut off; the greater number counts. No state, no locks; blocks with the file system.
 */
#include "file.h"
#include "fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/bytes.h>
#include <skv/clock.h>
#include <skv/hash.h>

#define PREFIX "owner."
#define NAME_MAX_BYTES 32
#define RECORD 64u
#define SUM_AT 56u
#define HORIZONS 2u
#define OWNER_BYTES (RECORD * (1 + HORIZONS))
static const char magic[8] = "SKVOWN1\n";

static void name_of(uint64_t incarnation, char out[NAME_MAX_BYTES])
{
	int n = snprintf(out, NAME_MAX_BYTES, PREFIX "%" PRIu64, incarnation);

	assert(n > 0 && n < NAME_MAX_BYTES);
}

static bool incarnation_of(const char *name, uint64_t *out)
{
	char again[NAME_MAX_BYTES];

	if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
		return false;
	*out = strtoull(name + sizeof PREFIX - 1, NULL, 10);
	name_of(*out, again);
	return *out != 0 && strcmp(name, again) == 0;
}

static void put_le(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void encode(const struct file_storage *s, const struct skv_storage_owner *o,
		   uint8_t out[RECORD])
{
	_Static_assert(SUM_AT + 8 == RECORD, "the sum ends the record");
	assert(o->incarnation != 0);
	memcpy(out, magic, sizeof magic);
	memcpy(out + 8, s->uuid, sizeof s->uuid);
	put_le(out + 24, o->incarnation);
	memcpy(out + 32, o->nonce, sizeof o->nonce);
	put_le(out + 48, skv_wall_ms(&skv_clock_system));
	put_le(out + SUM_AT, skv_checksum(out, SUM_AT));
}

/* Another's, if it is not what it should be. */
static void decode(const struct file_storage *s, const uint8_t in[RECORD],
		   struct skv_storage_owner *o)
{
	struct skv_rd sum = skv_rd_make(in + SUM_AT, 8), number = skv_rd_make(in + 24, 8);

	memset(o->nonce, 0, sizeof o->nonce);
	if (memcmp(in, magic, sizeof magic) == 0 && memcmp(in + 8, s->uuid, sizeof s->uuid) == 0 &&
	    skv_get_u64(&sum) == skv_checksum(in, SUM_AT) && skv_get_u64(&number) == o->incarnation)
		memcpy(o->nonce, in + 32, sizeof o->nonce);
}

static void encode_horizon(const struct skv_storage_horizon *h, uint8_t out[RECORD])
{
	memset(out, 0, RECORD);
	put_le(out, h->epoch);
	put_le(out + 8, h->number);
	put_le(out + 16, h->generation);
	put_le(out + SUM_AT, skv_checksum(out, SUM_AT));
}

/* The newest horizon, and which of both is to be written next. */
static void decode_horizons(const uint8_t *in, struct skv_storage_owner *o, unsigned *next)
{
	*next = 0;
	for (unsigned i = 0; i < HORIZONS; i++) {
		struct skv_rd r = skv_rd_make(in + i * RECORD, RECORD);
		struct skv_rd sum = skv_rd_make(in + i * RECORD + SUM_AT, 8);
		struct skv_storage_horizon h = { .epoch = skv_get_u64(&r) };

		h.number = skv_get_u64(&r);
		h.generation = skv_get_u64(&r);
		if (skv_get_u64(&sum) != skv_checksum(in + i * RECORD, SUM_AT) ||
		    h.number < o->horizon.number)
			continue;
		o->horizon = h;
		*next = 1 - i;
	}
}

/* SKV_E_NOT_FOUND; SKV_E_IN_USE: not written to its end. Reads past the page
 * cache where that is stale. */
static int read_owner(const struct file_storage *s, int dir, const char *name,
		      struct skv_storage_owner *o, unsigned *next, struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	size_t got;
	int fd, error = skv_root_open(s, dir, name, &fd);

	if (error == ENOENT)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "the owner file is missing (%s)", name);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the owner file", name);
	error = skv_fs_read(fd, 0, raw, sizeof raw, &got);
	close(fd);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot read the owner file", name);
	if (got < OWNER_BYTES)
		return skv_fail(err, SKV_E_IN_USE, NULL,
				"the owner file is incomplete (%s)", name);
	decode(s, raw, o);
	o->horizon = (struct skv_storage_horizon){ 0 };
	decode_horizons(raw + RECORD, o, next);
	return SKV_OK;
}

/* Reads a name of the directory. SKV_E_NOT_FOUND: the name does not count. `mine` is known by its
 * name: what is in it, and on 3FS even its size, waits for a lost node that has its bytes. */
static int take_name(const struct file_storage *s, int dir, const char *name,
		     const struct skv_storage_owner *mine, struct skv_storage_owner *o,
		     struct skv_error *err)
{
	unsigned next;
	int rc;

	if (!incarnation_of(name, &o->incarnation))
		return SKV_E_NOT_FOUND;
	if (mine && mine->incarnation == o->incarnation) {
		*o = *mine;
		return SKV_OK;
	}
	rc = read_owner(s, dir, name, o, &next, err);
	return rc == SKV_E_IN_USE ? SKV_E_NOT_FOUND : rc;
}

int skv_owner_list(const struct file_storage *s, int dir, const struct skv_storage_owner *mine,
		   struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		   struct skv_error *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = SKV_OK;

	if (!d) {
		rc = skv_fs_fail(err, errno, "cannot list the root directory", s->root);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	*n = 0;
	errno = 0;
	while (rc == SKV_OK && (e = readdir(d)) != NULL) {
		struct skv_storage_owner o;

		rc = take_name(s, dir, e->d_name, mine, &o, err);
		if (rc == SKV_OK && *n == SKV_STORAGE_OWNERS)
			rc = skv_fail(err, SKV_E_TOO_MANY, "root",
				      "the directory holds more than %u owner files (%s)",
				      SKV_STORAGE_OWNERS, s->root);
		else if (rc == SKV_OK)
			v[(*n)++] = o;
		rc = rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
		errno = 0;
	}
	if (rc == SKV_OK && errno != 0)
		rc = skv_fs_fail(err, errno, "cannot list the root directory", s->root);
	assert(*n <= SKV_STORAGE_OWNERS);
	closedir(d);
	return rc;
}

static int write_horizon(int dir, const char *name, const struct skv_storage_horizon *h,
			 unsigned at, struct skv_error *err)
{
	int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC), error = fd < 0 ? errno : 0;
	uint8_t raw[RECORD];

	assert(at < HORIZONS && h->number > 0);
	if (fd >= 0) {
		encode_horizon(h, raw);
		error = skv_fs_write(fd, RECORD * (1 + at), raw, sizeof raw);
		if (error == 0 && fdatasync(fd) != 0)
			error = errno;
		close(fd);
	}
	return error ? skv_fs_fail(err, error, "cannot write the owner file", name) : SKV_OK;
}

/* Checks the owner of the existing name: this manager's earlier file, or another's. */
static int judge_taken(const struct file_storage *s, int dir, const char *name,
		       const struct skv_storage_owner *o, struct skv_error *err)
{
	struct skv_storage_owner have = { .incarnation = o->incarnation };
	unsigned next = 0;
	int rc = read_owner(s, dir, name, &have, &next, err);

	if (rc == SKV_OK && memcmp(have.nonce, o->nonce, sizeof have.nonce) != 0)
		return skv_fail(err, SKV_E_CONFLICT, NULL,
				"%s exists and belongs to another manager (%s)", name, s->root);
	if (rc == SKV_OK && o->horizon.number > have.horizon.number)
		return write_horizon(dir, name, &o->horizon, next, err);
	return rc == SKV_E_NOT_FOUND
		       ? skv_fail(err, SKV_E_IN_USE, NULL, "removing %s (%s)", name, s->root)
		       : rc;
}

static int write_record(const struct file_storage *s, int fd, const struct skv_storage_owner *o)
{
	uint8_t raw[OWNER_BYTES] = { 0 };
	int error;

	_Static_assert(OWNER_BYTES <= SKV_SUPERBLOCK_SIZE, "read_owner has room for it");
	encode(s, o, raw);
	encode_horizon(&o->horizon, raw + RECORD);
	error = skv_fs_write(fd, 0, raw, sizeof raw);
	return error == 0 && fsync(fd) != 0 ? errno : error;
}

int skv_owner_claim(const struct file_storage *s, int dir, const struct skv_storage_owner *o,
		    struct skv_error *err)
{
	char name[NAME_MAX_BYTES];
	int fd, error = 0, rc = SKV_OK;

	name_of(o->incarnation, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, SKV_FILE_MODE);
	if (fd < 0 && errno == EEXIST) {
		rc = judge_taken(s, dir, name, o, err);
	} else if (fd < 0) {
		error = errno;
	} else {
		error = write_record(s, fd, o);
		close(fd);
		if (error != 0)
			unlinkat(dir, name, 0);
	}
	if (rc == SKV_OK && error == 0 && fsync(dir) != 0)
		error = errno;
	return error != 0 ? skv_fs_fail(err, error, "cannot make the owner file", name) : rc;
}

int skv_owner_disown(const struct file_storage *s, int dir, const struct skv_storage_owner *o,
		     struct skv_error *err)
{
	struct skv_storage_owner have = { .incarnation = o->incarnation };
	char name[NAME_MAX_BYTES];
	unsigned next;
	int rc;

	name_of(o->incarnation, name);
	rc = read_owner(s, dir, name, &have, &next, err);
	if (rc == SKV_E_IN_USE && skv_storage_owner_is_damaged(o))
		rc = SKV_OK; /* incomplete: `have` has no nonce, too */
	if (rc == SKV_E_NOT_FOUND || rc == SKV_E_IN_USE ||
	    (rc == SKV_OK && memcmp(have.nonce, o->nonce, sizeof have.nonce) != 0)) {
		skv_error_clear(err);
		return SKV_OK;
	}
	if (rc == SKV_OK && unlinkat(dir, name, 0) != 0 && errno != ENOENT)
		rc = skv_fs_fail(err, errno, "cannot remove the owner file", name);
	return rc;
}
