/*
 * options.c - options by name: the names under which users of other connectors know them (LMCache, UCM,
 * RTP-LLM), with their ranges and defaults, and what they mean here.
 *
 * One table. Ranges and defaults stand in it as text and are read by the same functions as values are. A name
 * that has no meaning here is accepted, checked, and says why it has none.
 */
#include "client.h"
#include "numa.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, SIZE, NUMBER, SIGNED, MS, BOOLEAN };

struct row {
	struct slabkv_option o;
	enum kind kind;
	const char *min, *max; /* SIZE, NUMBER, SIGNED, MS */
	size_t at[2];          /* members of slabkv_options that it sets; NONE */
	bool alias;            /* another row checks the member */
};

#define NONE SIZE_MAX
#define AT(member) offsetof(struct slabkv_options, member)

/* name, kind, min, max, default, members, alias, meaning */
#define ROW(n, k, lo, hi, def, a, b, also, text)                                                                       \
	{ .o = { n, lo ".." hi, def, text }, .kind = k, .min = lo, .max = hi, .at = { a, b }, .alias = also }
#define FREE(n, k, what, def, a, text)                                                                                 \
	{ .o = { n, what, def, text }, .kind = k, .at = { a, NONE } }

static const struct row rows[] = {
	/* LMCache's and SGLang's */
	FREE("hf3fs_mount_point", TEXT, "a path", "", AT(hf3fs.mount_point),
	     "where 3FS is mounted; else the first file on 3FS tells"),
	FREE("hf3fs_base_path", TEXT, "paths, separated by commas", "", AT(hf3fs.base_path),
	     "directories of storages, as --mount; blocks spread over the storages of their group"),
	ROW("hf3fs_iov_size", SIZE, "100M", "2G", "200M", AT(hf3fs.read_iov_size), AT(hf3fs.write_iov_size), true,
	    "bytes of buffers for reads, and as many for writes, of a whole process (not of each thread)"),
	ROW("hf3fs_ior_entries", NUMBER, "128", "1024", "256", AT(hf3fs.ior_entries), NONE, false,
	    "requests in flight in a ring"),
	ROW("hf3fs_io_depth", SIGNED, "-128", "128", "-8", AT(hf3fs.io_depth), NONE, false,
	    "at most so many requests are executed together, 0: all; k is taken as -k, for exactly k would leave the "
	    "last ones of a call unexecuted"),
	ROW("hf3fs_numa_id", SIGNED, "-1", "1023", "-1", AT(hf3fs.numa_id), NONE, false,
	    "NUMA node of buffers and rings; -1: anywhere"),
	ROW("hf3fs_io_thread_num", NUMBER, "2", "16", "4", AT(hf3fs.io_thread_num), NONE, false,
	    "pairs of rings; calls take turns, on their own threads"),
	/* ours */
	FREE("hf3fs_lib", TEXT, "a path", "", AT(hf3fs.lib),
	     "3FS's client library; else $HF3FS_LIB, else libhf3fs_api_shared.so as the linker finds it"),
	ROW("hf3fs_read_io_size", SIZE, "64K", "64M", "16M", AT(hf3fs.read_io_size), NONE, false,
	    "bytes of one read at most; ends at a chunk; short calls are read in four parts of 4 MiB or more"),
	ROW("hf3fs_write_io_size", SIZE, "64K", "64M", "4M", AT(hf3fs.write_io_size), NONE, false,
	    "bytes of one write at most; ends at a chunk"),
	/* RTP-LLM's, and those of its SDK's JSON */
	ROW("threefs_read_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs.read_iov_size), NONE, false,
	    "bytes of buffers for reads (RTP-LLM: 4G)"),
	ROW("threefs_write_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs.write_iov_size), NONE, false,
	    "bytes of buffers for writes (RTP-LLM: 4G)"),
	ROW("read_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs.read_iov_size), NONE, true, "as threefs_read_iov_size"),
	ROW("write_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs.write_iov_size), NONE, true,
	    "as threefs_write_iov_size"),
	ROW("threefs_read_timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs.read_timeout_ms), NONE, false,
	    "a read that is not back after so long is a miss; 3FS itself tries for 60 s (RTP-LLM: 1000)"),
	ROW("threefs_write_timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs.write_timeout_ms), NONE, false,
	    "a write that is not back after so long has failed, and its slot rests (RTP-LLM: 2000)"),
	ROW("read_iov_block_size", SIZE, "0", "64G", "0", NONE, NONE, false,
	    "accepted; no meaning: buffers are one piece, so no request crosses an edge"),
	ROW("write_iov_block_size", SIZE, "0", "64G", "0", NONE, NONE, false,
	    "accepted; no meaning: buffers are one piece, so no request crosses an edge"),
	/* UCM's */
	FREE("io_direct", BOOLEAN, "true or false", "true", NONE,
	     "accepted; no meaning: on 3FS bytes never pass a page cache; elsewhere uring decides by alignment"),
	ROW("stream_number", NUMBER, "1", "64", "4", AT(async_threads), NONE, false,
	    "threads of an asynchronous queue (UCM: 32)"),
	ROW("waiting_queue_depth", NUMBER, "2", "1048576", "4096", AT(async_in_flight), NONE, false,
	    "operations of an asynchronous queue in flight; more are refused (SLABKV_E_TOO_MANY), not failed"),
	ROW("running_queue_depth", NUMBER, "2", "1048576", "32768", NONE, NONE, false,
	    "accepted; no meaning: hf3fs_ior_entries and the buffers bound what runs"),
	ROW("timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs.read_timeout_ms), AT(hf3fs.write_timeout_ms), true,
	    "as threefs_read_timeout_ms and threefs_write_timeout_ms together"),
	ROW("buffer_size", SIZE, "0", "1024G", "0", NONE, NONE, false,
	    "accepted; no meaning: this library caches nothing; buffers are hf3fs_iov_size"),
};

#define N_ROWS (sizeof rows / sizeof rows[0])

const struct slabkv_option *slabkv_option(uint32_t i) { return i < N_ROWS ? &rows[i].o : NULL; }

/* ---- values ---------------------------------------------------------------------------------- */

/* A decimal number, of kind SIZE with K, M, G or T behind it. */
static bool parse(enum kind kind, const char *text, int64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	if (!strchr("-0123456789", text[0]) || !text[0] || (text[0] == '-' && kind != SIGNED))
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno || end == text)
		return false;
	if (kind == SIZE && end[0] && (unit = strchr(units, end[0])) != NULL) {
		int shift = 10 * (int)(unit - units + 1);

		if (*out > INT64_MAX >> shift)
			return false;
		*out <<= shift;
		end++;
	}
	return !end[0];
}

static bool parse_boolean(const char *text)
{
	static const char *const words[] = { "true", "false", "True", "False", "1", "0" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static bool in_range(const struct row *r, int64_t v)
{
	int64_t min, max;

	return parse(r->kind, r->min, &min) && parse(r->kind, r->max, &max) && v >= min && v <= max;
}

static void store(const struct row *r, struct slabkv_options *o, const char *text, int64_t v)
{
	for (int i = 0; i < 2; i++) {
		char *to = (char *)o + r->at[i];
		const uint64_t wide = (uint64_t)v;
		const uint32_t narrow = (uint32_t)v;

		if (r->at[i] == NONE)
			continue;
		if (r->kind == TEXT)
			memcpy(to, &text, sizeof text);
		else if (r->kind == SIZE)
			memcpy(to, &wide, sizeof wide);
		else
			memcpy(to, &narrow, sizeof narrow);
	}
}

static int64_t load(const struct row *r, const struct slabkv_options *o)
{
	const char *from = (const char *)o + r->at[0];
	uint64_t wide;
	uint32_t narrow;
	int32_t with_sign;

	if (r->kind == SIZE) {
		memcpy(&wide, from, sizeof wide);
		return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
	}
	if (r->kind == SIGNED) {
		memcpy(&with_sign, from, sizeof with_sign);
		return with_sign;
	}
	memcpy(&narrow, from, sizeof narrow);
	return narrow;
}

/* ---- by name --------------------------------------------------------------------------------- */

static int refuse(const struct row *r, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, r->o.name, "%s%s%s%s", r->o.range, r->o.value[0] ? " (default " : "",
			r->o.value, r->o.value[0] ? ")" : "");
}

static int set(struct slabkv_options *o, const char *name, const char *value, struct skv_error *err)
{
	int64_t v = 0;

	if (!o || o->size < sizeof *o || !name || !value)
		return skv_fail(err, SKV_E_INVALID, "size", "options must come from slabkv_options_init");
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];
		bool good;

		if (strcmp(r->o.name, name) != 0)
			continue;
		if (r->kind == TEXT)
			good = value[0] == '/' || (r->at[0] == AT(hf3fs.lib) && value[0]);
		else if (r->kind == BOOLEAN)
			good = parse_boolean(value);
		else
			good = parse(r->kind, value, &v) && in_range(r, v);
		if (!good)
			return refuse(r, err);
		store(r, o, value, v);
		return SKV_OK;
	}
	return skv_fail(err, SKV_E_INVALID, name, "there is no option of that name");
}

int slabkv_options_set(struct slabkv_options *o, const char *name, const char *value, struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	return skv_result_fail(err, &e, set(o, name, value, &e));
}

void skv_hf3fs_init(struct slabkv_hf3fs *h)
{
	struct slabkv_options o = { .size = sizeof o };

	for (size_t i = 0; i < N_ROWS; i++) {
		int64_t v;

		if (rows[i].kind != TEXT && rows[i].at[0] >= AT(hf3fs) && rows[i].at[0] < AT(hf3fs) + sizeof *h &&
		    parse(rows[i].kind, rows[i].o.value, &v))
			store(&rows[i], &o, NULL, v);
	}
	*h = o.hf3fs;
}

/* Does every path of a list begin at the root, and below `mount_point` if there is one? */
static int check_bases(const struct slabkv_hf3fs *h, struct skv_error *err)
{
	size_t n = h->mount_point ? strlen(h->mount_point) : 0;

	while (n > 1 && h->mount_point[n - 1] == '/')
		n--;
	for (const char *p = h->base_path; p && *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
		int length = (int)strcspn(p, ",");

		if (*p != '/')
			return skv_fail(err, SKV_E_INVALID, "hf3fs_base_path", "'%.*s' does not begin with /", length, p);
		if (n > 0 && (strncmp(p, h->mount_point, n) != 0 || (p[n] != '/' && (int)n < length)))
			return skv_fail(err, SKV_E_INVALID, "hf3fs_base_path", "%.*s does not lie below hf3fs_mount_point %s",
					length, p, h->mount_point);
	}
	return SKV_OK;
}

int skv_options_check(const struct slabkv_options *o, struct skv_error *err)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];

		if (r->kind == TEXT || r->alias || r->at[0] == NONE)
			continue;
		if (!in_range(r, load(r, o)) && !(r->at[0] >= AT(async_threads) && load(r, o) == 0))
			return refuse(r, err);
	}
	if (o->hf3fs.numa_id > skv_numa_last())
		return skv_fail(err, SKV_E_INVALID, "hf3fs_numa_id", "-1..%d on this machine", skv_numa_last());
	if (o->hf3fs.mount_point && strlen(o->hf3fs.mount_point) > 255)
		return skv_fail(err, SKV_E_INVALID, "hf3fs_mount_point", "at most 255 bytes");
	return check_bases(&o->hf3fs, err);
}
