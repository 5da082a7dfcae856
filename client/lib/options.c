/*
 * options.c - options by name, as users of other connectors know them (LMCache, UCM, RTP-LLM), with
 * range, default and meaning.
 *
 * One table. Ranges and defaults stand in it as text and are read by the same functions as values
 * are.
 */
#include "client.h"
#include "numa.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { PATH, FILENAME, WORD, LIST, SIZE, NUMBER, SIGNED, MS, BOOLEAN };

struct row {
	struct slabkv_option o;
	enum kind kind;
	const char *min, *max; /* SIZE, NUMBER, SIGNED, MS */
	size_t at[2];          /* members of slabkv_options that it sets; the second may be NONE */
	bool alias;            /* another row checks the member */
};

#define NONE SIZE_MAX
#define AT(member) offsetof(struct slabkv_options, member)

/* name, kind, min, max, default, members, alias, meaning */
#define ROW(n, k, lo, hi, def, a, b, also, text)                                              \
	{ .o = { n, lo ".." hi, def, text }, .kind = k, .min = lo, .max = hi, .at = { a, b }, \
	  .alias = also }
#define FREE(n, k, what, def, a, text) \
	{ .o = { n, what, def, text }, .kind = k, .at = { a, NONE } }

static const struct row rows[] = {
	/* the handle's */
	FREE("urls", LIST, "http://host:port, separated by commas", "http://127.0.0.1:7333",
	  AT(urls), "managers"),
	FREE("token", WORD, "a line", "", AT(token), "bearer token"),
	ROW("call_timeout_ms", MS, "1", "4294967295", "10000", AT(timeout_ms), NONE, true,
	    "for one call to a manager, with all that is tried again"),
	ROW("io_timeout_ms", MS, "0", "86400000", "60000", AT(io_timeout_ms), NONE, true,
	    "for a whole put or get, from call to return; 0: none"),
	ROW("rounds", NUMBER, "1", "4294967295", "16", AT(rounds), NONE, true,
	  "over all managers before a call gives up"),
	ROW("connect_timeout_ms", MS, "1", "86400000", "1000", AT(connect_timeout_ms), NONE, true,
	    "for connecting to one manager"),
	ROW("hedge_ms", MS, "0", "4294967295", "1000", AT(hedge_ms), NONE, true,
	    "a call not answered by then is sent to the next manager, too; 0: never"),
	FREE("mounts", LIST, "directories, separated by commas", "", AT(mounts),
	  "where storages are mounted here"),
	FREE("verify", BOOLEAN, "true or false", "true", AT(verify),
	  "compare checksums of what is read. false: lost, torn or foreign bytes may count as "
	  "hits (on 3FS a lost first chunk reads as zeros)"),
	FREE("report", BOOLEAN, "true or false", "true", AT(report),
	  "tell the manager of bytes with a wrong checksum, so that they are written again"),
	FREE("engine", WORD, "auto, posix, uring or usrbio", "auto", AT(engine),
	  "how bytes are moved"),
	ROW("depth", NUMBER, "0", "1024", "0", AT(depth), NONE, true,
	  "requests that uring keeps in flight in a call; 0: 64"),
	FREE("ca_file", FILENAME, "a file's name", "", AT(ca_file),
	     "certificates to trust for https; else $SSL_CERT_FILE, else where systems have them"),
	FREE("cert_file", FILENAME, "a file's name", "", AT(cert_file),
	     "certificate shown to managers that ask for one"),
	FREE("key_file", FILENAME, "a file's name", "", AT(key_file), "its key"),
	/* LMCache's and SGLang's */
	FREE("hf3fs_mount_point", PATH, "an absolute path", "", AT(hf3fs_mount_point),
	     "where 3FS is mounted; else the first file on 3FS tells"),
	FREE("hf3fs_base_path", PATH, "paths, separated by commas", "", AT(hf3fs_base_path),
	     "directories of storages, as --mount; blocks spread over the storages of their group"),
	ROW("hf3fs_iov_size", SIZE, "100M", "2G", "200M", AT(hf3fs_read_iov_size),
	    AT(hf3fs_write_iov_size), true,
	    "bytes of buffers for reads, and as many for writes, of a whole process (not "
	    "of each thread)"),
	ROW("hf3fs_ior_entries", NUMBER, "128", "1024", "256", AT(hf3fs_ior_entries), NONE, false,
	    "requests in flight in a ring"),
	ROW("hf3fs_io_depth", SIGNED, "-128", "128", "-8", AT(hf3fs_io_depth), NONE, false,
	    "at most so many requests are executed together, 0: all; k is taken as -k, for exactly "
	    "k would leave the last ones of a call unexecuted"),
	ROW("hf3fs_numa_id", SIGNED, "-1", "1023", "-1", AT(hf3fs_numa_id), NONE, false,
	    "NUMA node of buffers and rings; -1: anywhere"),
	ROW("hf3fs_io_thread_num", NUMBER, "2", "16", "4", AT(hf3fs_io_thread_num), NONE, false,
	    "pairs of rings; calls take turns, on their own threads"),
	/* ours */
	FREE("hf3fs_lib", FILENAME, "a file's name", "", AT(hf3fs_lib),
	     "3FS's client library; else $HF3FS_LIB, else libhf3fs_api_shared.so as the "
	     "linker finds it"),
	ROW("hf3fs_read_io_size", SIZE, "64K", "64M", "16M", AT(hf3fs_read_io_size), NONE, false,
	    "bytes of one read at most; ends at a chunk; short calls are read in four parts of "
	    "4 MiB or more"),
	ROW("hf3fs_write_io_size", SIZE, "64K", "64M", "4M", AT(hf3fs_write_io_size), NONE, false,
	    "bytes of one write at most; ends at a chunk"),
	/* RTP-LLM's, and those of its SDK's JSON */
	ROW("threefs_read_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs_read_iov_size), NONE,
	    false,
	    "bytes of buffers for reads (RTP-LLM: 4G)"),
	ROW("threefs_write_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs_write_iov_size), NONE,
	    false,
	    "bytes of buffers for writes (RTP-LLM: 4G)"),
	ROW("read_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs_read_iov_size), NONE, true,
	  "as threefs_read_iov_size"),
	ROW("write_iov_size", SIZE, "1M", "64G", "200M", AT(hf3fs_write_iov_size), NONE, true,
	    "as threefs_write_iov_size"),
	ROW("threefs_read_timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs_read_timeout_ms),
	    NONE, false,
	    "a read that is not back after so long is a miss; 3FS itself tries for 60 s "
	    "(RTP-LLM: 1000)"),
	ROW("threefs_write_timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs_write_timeout_ms),
	    NONE, false,
	    "a write that is not back after so long has failed, and its slot rests "
	    "(RTP-LLM: 2000)"),
	/* UCM's */
	ROW("stream_number", NUMBER, "1", "64", "4", AT(async_threads), NONE, false,
	    "threads of an asynchronous queue (UCM: 32)"),
	ROW("waiting_queue_depth", NUMBER, "2", "1048576", "4096", AT(async_in_flight), NONE, false,
	    "operations of an asynchronous queue in flight; more are refused "
	    "(SLABKV_E_TOO_MANY), not failed"),
	ROW("timeout_ms", MS, "100", "3600000", "65000", AT(hf3fs_read_timeout_ms),
	    AT(hf3fs_write_timeout_ms), true,
	    "as threefs_read_timeout_ms and threefs_write_timeout_ms together"),
};

#define N_ROWS (sizeof rows / sizeof rows[0])

const struct slabkv_option *slabkv_option(uint32_t i) { return i < N_ROWS ? &rows[i].o : NULL; }

/* ---- values ---------------------------------------------------------------------------------- */

/* A decimal number; of kind SIZE also with a suffix K, M, G or T. */
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

static bool parse_boolean(const char *text, int64_t *out)
{
	static const char *const words[] = { "false", "true", "False", "True", "0", "1" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i % 2;
			return true;
		}
	}
	return false;
}

static bool is_text(enum kind kind)
{
	return kind == PATH || kind == FILENAME || kind == WORD || kind == LIST;
}

static bool in_range(const struct row *r, int64_t v)
{
	int64_t min, max;

	return parse(r->kind, r->min, &min) && parse(r->kind, r->max, &max) && v >= min && v <= max;
}

/* Splits our own copy of a text into the list in two members of *o. */
static bool store_list(const struct row *r, struct slabkv_options *o, char *text)
{
	bool urls = r->at[0] == AT(urls);
	uint32_t n = 0, most = 1;
	const char **v;
	char *one;

	for (const char *p = text; (p = strchr(p, ',')) != NULL; p++)
		most++;
	v = skv_arena_calloc(skv_result_arena(o), most, sizeof *v);
	if (!v)
		return false;
	while ((one = strsep(&text, ",")) != NULL)
		if (one[0])
			v[n++] = one;
	if (urls) {
		o->urls = v;
		o->n_urls = n;
	} else {
		o->mounts = v;
		o->n_mounts = n;
	}
	return true;
}

static void store(const struct row *r, struct slabkv_options *o, const char *text, int64_t v)
{
	for (int i = 0; i < 2; i++) {
		char *to = (char *)o + r->at[i];
		const uint64_t wide = (uint64_t)v;
		const uint32_t narrow = (uint32_t)v;

		if (r->at[i] == NONE)
			continue;
		if (r->kind == PATH || r->kind == FILENAME || r->kind == WORD)
			memcpy(to, &text, sizeof text);
		else if (r->kind == BOOLEAN)
			*(bool *)(void *)to = v;
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
	return skv_fail(err, SKV_E_INVALID, r->o.name, "%s%s%s%s", r->o.range,
			r->o.value[0] ? " (default " : "", r->o.value, r->o.value[0] ? ")" : "");
}

static int set(struct slabkv_options *o, const char *name, const char *value, struct skv_error *err)
{
	int64_t v = 0;

	char *own = NULL;

	if (!o || !SKV_HAS(o, hf3fs_write_timeout_ms) || !name || !value)
		return skv_size_refuse(err, "slabkv_options_init");
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];
		bool good;

		if (strcmp(r->o.name, name) != 0)
			continue;
		if (r->at[0] >= o->size)
			return skv_size_refuse(err, "slabkv_options_init");
		if (r->kind == PATH)
			good = value[0] == '/';
		else if (r->kind == BOOLEAN)
			good = parse_boolean(value, &v);
		else if (r->kind == FILENAME || r->kind == WORD || r->kind == LIST)
			good = value[0];
		else
			good = parse(r->kind, value, &v) && in_range(r, v);
		if (!good)
			return refuse(r, err);
		if (r->kind == LIST && o->owned != o)
			return skv_fail(err, SKV_E_INVALID, name,
					"a list: set the member, or begin with slabkv_options_new");
		if (o->owned == o && is_text(r->kind)) {
			own = skv_arena_strndup(skv_result_arena(o), value, strlen(value));
			if (!own || (r->kind == LIST && !store_list(r, o, own)))
				return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		}
		if (r->kind != LIST)
			store(r, o, own ? own : value, v);
		return SKV_OK;
	}
	return skv_fail(err, SKV_E_INVALID, name, "there is no option of that name");
}

struct slabkv_options *slabkv_options_new(void)
{
	struct slabkv_options *o = skv_result_new(sizeof *o);

	if (!o)
		return NULL;
	slabkv_options_init(o, sizeof *o);
	o->owned = o; /* texts live in its arena; a copy of the struct is no owner */
	return o;
}

void slabkv_options_free(struct slabkv_options *o) { slabkv_free(o); }

void slabkv_options_on_call(struct slabkv_options *o,
			    void (*fn)(void *ctx, const char *op, uint64_t us, int status),
			    void *ctx)
{
	o->on_call = fn;
	o->on_call_ctx = ctx;
}

void slabkv_options_on_mismatch(struct slabkv_options *o,
				void (*fn)(void *ctx, const struct slabkv_mismatch *m), void *ctx)
{
	o->on_mismatch = fn;
	o->on_mismatch_ctx = ctx;
}

int slabkv_options_set(struct slabkv_options *o, const char *name, const char *value,
		       struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	return skv_result_fail(err, &e, set(o, name, value, &e));
}

/* Numbers of the engine have their defaults in the table, other members elsewhere. */
void skv_hf3fs_defaults(struct slabkv_options *o)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		int64_t v;

		if (!is_text(rows[i].kind) && rows[i].at[0] >= AT(hf3fs_lib) &&
		    parse(rows[i].kind, rows[i].o.value, &v))
			store(&rows[i], o, NULL, v);
	}
}

void skv_hf3fs_of(const struct slabkv_options *o, struct skv_hf3fs_options *out)
{
	*out = (struct skv_hf3fs_options){ .lib = o->hf3fs_lib,
					   .mount_point = o->hf3fs_mount_point,
					   .base_path = o->hf3fs_base_path,
					   .read_iov_size = o->hf3fs_read_iov_size,
					   .write_iov_size = o->hf3fs_write_iov_size,
					   .read_io_size = o->hf3fs_read_io_size,
					   .write_io_size = o->hf3fs_write_io_size,
					   .ior_entries = o->hf3fs_ior_entries,
					   .io_depth = o->hf3fs_io_depth,
					   .numa_id = o->hf3fs_numa_id,
					   .io_thread_num = o->hf3fs_io_thread_num,
					   .read_timeout_ms = o->hf3fs_read_timeout_ms,
					   .write_timeout_ms = o->hf3fs_write_timeout_ms };
}

void skv_hf3fs_init(struct skv_hf3fs_options *h)
{
	struct slabkv_options o = { .size = sizeof o };

	skv_hf3fs_defaults(&o);
	skv_hf3fs_of(&o, h);
}

/* Checks that every path of a list begins at the root, and below `mount_point` if there is one. */
static int check_bases(const struct slabkv_options *o, struct skv_error *err)
{
	const char *mount_point = o->hf3fs_mount_point;
	size_t n = mount_point ? strlen(mount_point) : 0;

	while (n > 1 && mount_point[n - 1] == '/')
		n--;
	for (const char *p = o->hf3fs_base_path; p && *p;
	     p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
		int length = (int)strcspn(p, ",");

		if (*p != '/')
			return skv_fail(err, SKV_E_INVALID, "hf3fs_base_path",
					"'%.*s' does not begin with /", length, p);
		if (n > 0 && (strncmp(p, mount_point, n) != 0 || (p[n] != '/' && (int)n < length)))
			return skv_fail(err, SKV_E_INVALID, "hf3fs_base_path",
					"%.*s does not lie below hf3fs_mount_point %s", length, p,
					mount_point);
	}
	return SKV_OK;
}

static void fill(struct slabkv_options *o)
{
	*o = (struct slabkv_options){
		.size = sizeof *o,
		.timeout_ms = 10000,
		.io_timeout_ms = 60000,
		.rounds = 16,
		.connect_timeout_ms = 1000,
		.hedge_ms = 1000,
		.verify = true,
		.report = true,
	};
	skv_hf3fs_defaults(o);
}

void slabkv_options_init(struct slabkv_options *o, size_t size)
{
	struct slabkv_options own;

	fill(&own);
	memset(o, 0, size);
	memcpy(o, &own, size < sizeof own ? size : sizeof own);
	if (size >= sizeof o->size)
		o->size = size;
}

int skv_options_check(const struct slabkv_options *o, struct skv_error *err)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];

		if (is_text(r->kind) || r->kind == BOOLEAN || r->alias)
			continue;
		if (!in_range(r, load(r, o)) &&
		    !((r->at[0] == AT(async_threads) || r->at[0] == AT(async_in_flight)) &&
		      load(r, o) == 0))
			return refuse(r, err);
	}
	if (o->hf3fs_numa_id > skv_numa_last())
		return skv_fail(err, SKV_E_INVALID, "hf3fs_numa_id", "-1..%d on this machine",
				skv_numa_last());
	if (o->hf3fs_mount_point && strlen(o->hf3fs_mount_point) > 255)
		return skv_fail(err, SKV_E_INVALID, "hf3fs_mount_point", "at most 255 bytes");
	return check_bases(o, err);
}
