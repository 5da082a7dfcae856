/*
 * doctor.c - slabkv doctor: checks worker, manager and mounts step by step, with a remedy for each
 * problem.
 *
 * One thread. Changes nothing but one small block of the instance `slabkv-doctor` and one file in
 * each directory that --mount names; it removes both.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

#include <skv/hash.h>

#include "pattern.h"

enum verdict { GOOD, WARNING, BAD };

struct doctor {
	struct skv_cli *cli;
	struct slabkv *kv;
	bool write;
	json_t *list;
	uint32_t warnings, bad;
	bool unreachable;
};

static void say(struct doctor *d, enum verdict v, const char *check, const char *remedy,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void say(struct doctor *d, enum verdict v, const char *check, const char *remedy,
		const char *fmt, ...)
{
	static const char *const words[] = { "ok", "warning", "bad" };
	char text[512];
	va_list ap;

	assert(v <= BAD && (v == GOOD || remedy[0])); /* every problem comes with its remedy */
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	d->warnings += v == WARNING;
	d->bad += v == BAD;
	if (v == GOOD)
		remedy = "";
	json_array_append_new(d->list, json_pack("{ss ss ss ss}", "check", check, "result",
						 words[v], "detail", text, "remedy", remedy));
	if (d->cli->json)
		return;
	printf("%-8s %-12s %s\n", words[v], check, text);
	if (remedy[0])
		printf("%21s -> %s\n", "", remedy);
}

/* ---- the manager ----------------------------------------------------------------------------- */

static bool check_manager(struct doctor *d)
{
	struct slabkv_error err;
	int rc = slabkv_ready(d->kv, &err);

	if (rc == SLABKV_OK) {
		say(d, GOOD, "manager", "", "reached and ready");
		return true;
	}
	d->unreachable = skv_cli_exit_of(rc) == SKV_EXIT_UNREACHABLE;
	if (rc == SLABKV_E_NETWORK || rc == SLABKV_E_TIMEOUT)
		say(d, BAD, "manager", "start slabkvd, or name it with --url or SLABKV_URL", "%s",
		    err.message);
	else
		say(d, BAD, "manager",
		    "wait until it has recovered or owns the partition; see its log", "%s",
		    err.message);
	return rc != SLABKV_E_NETWORK && rc != SLABKV_E_TIMEOUT;
}

static void check_mount(struct doctor *d, const char *name)
{
	struct slabkv_error err;
	const char *path;

	if (slabkv_mount_find(d->kv, name, &path, &err) != SLABKV_OK) {
		say(d, BAD, "mount", "mount the storage here and name the directory with --mount",
		    "storage %s: %s", name, err.message);
		return;
	}
	say(d, GOOD, "mount", "", "storage %s is %s, proved by its marker", name, path);
	slabkv_free(path);
}

static void check_node(struct doctor *d, const char *name)
{
	struct slabkv_error err;
	const char *way;

	if (slabkv_mount_find(d->kv, name, &way, &err) != SLABKV_OK) {
		say(d, BAD, "memory",
		    "is the node running, with this name, and may this host connect to its ports?",
		    "storage %s: %s", name, err.message);
		return;
	}
	say(d, GOOD, "memory", "", "storage %s: %s", name, way);
	slabkv_free(way);
}

static void check_storage(struct doctor *d, const json_t *s)
{
	const char *name = skv_cli_text(s, "name"), *type = skv_cli_text(s, "type");
	const char *problem = skv_cli_text(s, "problem");
	char room[24];

	skv_cli_storage_size(s, "free_bytes", room);
	if (!json_is_true(json_object_get(s, "healthy")))
		say(d, BAD, "storage",
		    "look at the manager's log: is its directory mounted, writable, not full?",
		    "%s: %s", name, problem);
	else if (skv_cli_u64(s, "available_bytes") < skv_cli_u64(s, "capacity"))
		say(d, WARNING, "storage", "make space in its file system, or lower its capacity",
		    "%s is healthy, %s free: %s", name, room, problem);
	else if (!json_is_true(json_object_get(s, "enabled")))
		say(d, WARNING, "storage", "enable it to take new blocks", "%s is disabled", name);
	else
		say(d, GOOD, "storage", "", "%s is healthy, %s free", name, room);
	if (strcmp(type, "file") == 0 || strcmp(type, "hf3fs") == 0)
		check_mount(d, name);
	else if (strcmp(type, "memory") == 0)
		check_node(d, name);
}

/* The answer to a GET; NULL after saying why there is none. */
static json_t *ask(struct doctor *d, const char *check, const char *path)
{
	struct slabkv_error err;
	const char *text = NULL;
	json_t *doc;

	assert(path[0] == '/');
	if (slabkv_call(d->kv, "GET", path, NULL, &text, &err) != SLABKV_OK) {
		say(d, BAD, check,
		    err.code == SLABKV_E_UNAUTHENTICATED ? "give a token with --token-file"
							  : "see its log",
		    "%s", err.message);
		return NULL;
	}
	doc = json_loads(text, 0, NULL);
	slabkv_free(text);
	if (!doc)
		say(d, BAD, check, "is it a slabkv manager?", "the answer is no JSON");
	return doc;
}

static void check_storages(struct doctor *d)
{
	json_t *stats = ask(d, "stats", "/v1/stats"), *doc, *all, *s;
	const char *version = skv_cli_text(stats, "version");
	size_t i;

	if (!stats)
		return;
	if (strcmp(version, slabkv_version()) == 0)
		say(d, GOOD, "version", "", "manager and library are %s", slabkv_version());
	else
		say(d, WARNING, "version", "use the same release on both sides",
		    "manager %s, library %s", version, slabkv_version());
	json_decref(stats);
	if (skv_cli_list(d->cli, d->kv, "/v1/storages", NULL, 0, &doc) != SKV_EXIT_OK) {
		say(d, BAD, "storage", "see its log", "storages cannot be listed");
		return;
	}
	all = json_object_get(doc, "storages");
	if (json_array_size(all) == 0)
		say(d, BAD, "storage", "register one: PUT /v1/storages/NAME",
		    "the manager has no storage");
	json_array_foreach(all, i, s)
		check_storage(d, s);
	json_decref(doc);
}

/* A directory that --mount names. */
static void tell_check(void *ctx, const struct slabkv_check *c)
{
	static const enum verdict verdicts[] = {
		[SLABKV_GOOD] = GOOD, [SLABKV_WARNING] = WARNING, [SLABKV_BAD] = BAD
	};

	assert(c->verdict < sizeof verdicts / sizeof verdicts[0]);
	say(ctx, verdicts[c->verdict], c->name, c->remedy, "%s", c->detail);
}

static void check_named_mounts(struct doctor *d)
{
	struct slabkv_options o;
	struct slabkv_error err;

	skv_cli_options(d->cli, &o);
	for (uint32_t i = 0; i < d->cli->n_mounts && d->write; i++)
		if (slabkv_mount_check(&o, d->cli->mounts[i], tell_check, d, &err) != SLABKV_OK)
			say(d, BAD, "options", "see slabkv -o help", "%s: %s", err.field,
			    err.message);
}

/* ---- one block there and back ---------------------------------------------------------------- */

static void probe_block(struct doctor *d, const char *instance)
{
	static uint8_t out[4096], in[4096];
	struct slabkv_buf put_buf = { out, sizeof out }, get_buf = { in, sizeof in };
	struct slabkv_block put = { .bufs = &put_buf, .n_bufs = 1 },
			     get = { .bufs = &get_buf, .n_bufs = 1 };
	static const char remedy[] =
		"see the checks of storage and mount above; may this user write there?";
	struct slabkv_key key;
	struct slabkv_keys keys = slabkv_keys_wide(&key, 1);
	struct slabkv_error err;

	skv_random(&key, sizeof key);
	skv_pattern_fill(out, sizeof out, key.lo);
	if (slabkv_put(d->kv, instance, &keys, NULL, &put, sizeof(struct slabkv_block), NULL,
		       &err) != SLABKV_OK ||
	    put.result != SLABKV_WRITTEN) {
		say(d, BAD, "write", remedy, "a block could not be written: %s", err.message);
		return;
	}
	say(d, GOOD, "write", "", "a block was written and committed");
	if (slabkv_get(d->kv, instance, &keys, NULL, &get, sizeof(struct slabkv_block), NULL,
		       &err) != SLABKV_OK ||
	    get.result != SLABKV_HIT)
		say(d, BAD, "read", remedy, "the block was not read back: %s",
		    get.result == SLABKV_MISMATCH ? "its bytes differ" : err.message);
	else if (memcmp(in, out, sizeof in) != 0)
		say(d, BAD, "read", "the mount shows other bytes than were written: do not use it",
		    "the bytes differ");
	else
		say(d, GOOD, "read", "", "the same bytes came back");
	(void)slabkv_delete(d->kv, instance, &keys, NULL, &err);
}

static void check_probe(struct doctor *d)
{
	const struct slabkv_spec spec = { "kv", 4096 };
	const struct slabkv_instance instance = {
		.size = sizeof(struct slabkv_instance), .id = "slabkv-doctor", .group = "default",
		.specs = &spec, .spec_size = sizeof(struct slabkv_spec), .n_specs = 1
	};
	struct slabkv_error err;

	if (!d->write)
		return;
	if (skv_cli_make_instance(d->kv, &instance, "default", &err) != SLABKV_OK)
		say(d, err.code == SLABKV_E_FORBIDDEN ? WARNING : BAD, "write",
		    "use a token with the role write, or --no-write", "no probe instance: %s",
		    err.message);
	else
		probe_block(d, instance.id);
	/* Cleans up; with a token that may only write, the empty instance remains. */
	(void)slabkv_object_delete(d->kv, SLABKV_INSTANCE, instance.id, &err);
}

/* ---- this machine ---------------------------------------------------------------------------- */

static void check_limit(struct doctor *d, const char *what, int resource, uint64_t want,
			const char *remedy)
{
	struct rlimit l = { 0, 0 };

	getrlimit((__rlimit_resource_t)resource, &l);
	if (l.rlim_cur == RLIM_INFINITY)
		say(d, GOOD, "limits", "", "%s is unlimited", what);
	else if (l.rlim_cur < want)
		say(d, WARNING, "limits", remedy, "%s is %" PRIu64 ", better %" PRIu64 " or more",
		    what, (uint64_t)l.rlim_cur, want);
	else
		say(d, GOOD, "limits", "", "%s is %" PRIu64, what, (uint64_t)l.rlim_cur);
}

static void check_machine(struct doctor *d)
{
	struct statvfs shm;
	struct timespec boot, wall;
	const char *engine, *why;
	char size[24];

	if (statvfs("/dev/shm", &shm) != 0) {
		say(d, WARNING, "/dev/shm", "mount a tmpfs there; in a container use --shm-size",
		    "%s", strerror(errno));
	} else {
		skv_args_print_size((uint64_t)shm.f_bavail * shm.f_frsize, size);
		if ((uint64_t)shm.f_bavail * shm.f_frsize < 64u << 20)
			say(d, WARNING, "/dev/shm", "make it larger; in a container use --shm-size",
			    "only %s free: too little for shared I/O buffers", size);
		else
			say(d, GOOD, "/dev/shm", "", "%s free", size);
	}
	check_limit(d, "open files", RLIMIT_NOFILE, 1024,
		    "raise it: ulimit -n, or LimitNOFILE= of the unit");
	check_limit(d, "locked memory", RLIMIT_MEMLOCK, 64u << 20,
		    "raise it for RDMA and registered buffers: ulimit -l, or LimitMEMLOCK= of the "
		    "unit");
	engine = slabkv_engine(d->kv, &why);
	if (why[0])
		say(d, WARNING, "engine",
		    "allow io_uring (kernel.io_uring_disabled, seccomp), or --engine posix",
		    "%s, because %s", engine, why);
	else
		say(d, GOOD, "engine", "", "%s", engine);
	if (clock_gettime(CLOCK_BOOTTIME, &boot) != 0 || boot.tv_sec < 0)
		say(d, BAD, "clock", "use a kernel with CLOCK_BOOTTIME", "leases cannot be timed");
	else if (clock_gettime(CLOCK_REALTIME, &wall) != 0 || wall.tv_sec < 1704067200)
		say(d, WARNING, "clock", "set the time (NTP): it appears in logs and create times",
		    "the wall clock is before 2024");
	else
		say(d, GOOD, "clock", "", "boot-time clock runs, wall clock is plausible");
}

static int finish(struct doctor *d)
{
	uint32_t warnings = d->warnings, bad = d->bad;
	int rc = SKV_EXIT_OK;

	assert(!d->unreachable || bad > 0); /* already reported */
	if (d->cli->json)
		rc = skv_cli_print_json(json_pack("{sI sI so}", "bad", (json_int_t)bad, "warnings",
						  (json_int_t)warnings, "checks", d->list));
	else
		printf("%u bad, %u warnings\n", bad, warnings);
	if (!d->cli->json)
		json_decref(d->list);
	if (rc != SKV_EXIT_OK || bad == 0)
		return rc;
	return d->unreachable ? SKV_EXIT_UNREACHABLE : SKV_EXIT_MISS;
}

int skv_cmd_doctor(struct skv_cli *cli, int argc, char **argv)
{
	bool reads_only = false;
	const struct skv_cli_option options[] = {
		{ "no-write", SKV_CLI_FLAG, &reads_only, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	struct doctor d = { .cli = cli };
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	d.write = !reads_only;
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &d.kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	d.list = json_array();
	check_named_mounts(&d);
	/* A host that only checks a mount may have no manager, or the user may not want to contact
	 * the one that the environment names. */
	if ((cli->n_mounts == 0 || cli->n_urls > 0) && check_manager(&d)) {
		check_storages(&d);
		check_probe(&d);
	}
	check_machine(&d);
	slabkv_close(d.kv);
	return finish(&d);
}
