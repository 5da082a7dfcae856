/*
 * doctor.c - kvblock doctor: what can be wrong between a worker, its manager and its mounts,
 * checked one after the other, each with what to do about it.
 *
 * One thread. Changes nothing but one small block of the instance `kvblock-doctor` and one file in each
 * directory that --mount names; it removes both.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

#include <kvb/hash.h>

#include "pattern.h"

enum verdict { GOOD, WARNING, BAD };

struct doctor {
	struct kvb_cli *cli;
	struct kvblock *kv;
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
	struct kvblock_error err;
	int rc = kvblock_ready(d->kv, &err);

	if (rc == KVBLOCK_OK) {
		say(d, GOOD, "manager", "", "reached and ready");
		return true;
	}
	/* Whoever asks about a mount, and names no manager, may have none here. */
	if (d->cli->n_mounts > 0 && d->cli->n_urls == 0 && !getenv("KVBLOCK_URL")) {
		say(d, WARNING, "manager", "name one with --url or KVBLOCK_URL, if it is to be checked as well", "%s",
		    err.message);
		return false;
	}
	d->unreachable = kvb_cli_exit_of(rc) == KVB_EXIT_UNREACHABLE;
	if (rc == KVBLOCK_E_NETWORK || rc == KVBLOCK_E_TIMEOUT)
		say(d, BAD, "manager", "start kvblockd, or name it with --url or KVBLOCK_URL", "%s",
		    err.message);
	else
		say(d, BAD, "manager",
		    "wait until it has recovered or owns the partition; see its log", "%s",
		    err.message);
	return rc != KVBLOCK_E_NETWORK && rc != KVBLOCK_E_TIMEOUT;
}

static void check_mount(struct doctor *d, const char *name)
{
	struct kvblock_error err;
	const char *path;

	if (kvblock_mount_find(d->kv, name, &path, &err) != KVBLOCK_OK) {
		say(d, BAD, "mount", "mount the storage here and name the directory with --mount",
		    "storage %s: %s", name, err.message);
		return;
	}
	say(d, GOOD, "mount", "", "storage %s is %s, proved by its marker", name, path);
	kvblock_free(path);
}

static void check_storage(struct doctor *d, const json_t *s)
{
	char room[24];
	const char *name = kvb_cli_text(s, "name"), *type = kvb_cli_text(s, "type");

	kvb_cli_storage_size(s, "free_bytes", room);
	if (!json_is_true(json_object_get(s, "healthy")))
		say(d, BAD, "storage",
		    "look at the manager's log: is its directory mounted, writable, not full?",
		    "%s: %s", name, kvb_cli_text(s, "problem"));
	else if (!json_is_true(json_object_get(s, "enabled")))
		say(d, WARNING, "storage", "enable it to take new blocks", "%s is disabled", name);
	else
		say(d, GOOD, "storage", "", "%s is healthy, %s free", name, room);
	if (strcmp(type, "file") == 0 || strcmp(type, "hf3fs") == 0)
		check_mount(d, name);
}

static void check_storages(struct doctor *d)
{
	struct kvblock_error err;
	const char *text;
	json_error_t e;
	json_t *stats;
	const json_t *s;
	size_t i;

	if (kvblock_stats(d->kv, &text, &err) != KVBLOCK_OK) {
		say(d, BAD, "stats",
		    err.code == KVBLOCK_E_UNAUTHENTICATED ? "give a token with --token-file"
							  : "see its log",
		    "%s", err.message);
		return;
	}
	stats = json_loads(text, 0, &e);
	kvblock_free(text);
	if (strcmp(kvb_cli_text(stats, "version"), kvblock_version()) == 0)
		say(d, GOOD, "version", "", "manager and library are %s", kvblock_version());
	else
		say(d, WARNING, "version", "use the same release on both sides",
		    "manager %s, library %s", kvb_cli_text(stats, "version"), kvblock_version());
	if (json_array_size(json_object_get(stats, "storages")) == 0)
		say(d, BAD, "storage", "register one: PUT /v1/storages/NAME",
		    "the manager has no storage");
	json_array_foreach(json_object_get(stats, "storages"), i, s)
		check_storage(d, s);
	json_decref(stats);
}

/* A directory that --mount names. */
static void tell_check(void *ctx, const struct kvblock_check *c)
{
	static const enum verdict verdicts[] = {
		[KVBLOCK_GOOD] = GOOD, [KVBLOCK_WARNING] = WARNING, [KVBLOCK_BAD] = BAD
	};

	say(ctx, verdicts[c->verdict], c->name, c->remedy, "%s", c->detail);
}

static void check_named_mounts(struct doctor *d)
{
	struct kvblock_options o;
	struct kvblock_error err;

	kvb_cli_options(d->cli, &o);
	for (uint32_t i = 0; i < d->cli->n_mounts && d->write; i++)
		if (kvblock_mount_check(&o, d->cli->mounts[i], tell_check, d, &err) != KVBLOCK_OK)
			say(d, BAD, "options", "see kvblock -o help", "%s: %s", err.field, err.message);
}

/* ---- one block there and back ---------------------------------------------------------------- */

static void probe_block(struct doctor *d, const char *instance)
{
	static uint8_t out[4096], in[4096];
	struct kvblock_buf put_buf = { out, sizeof out }, get_buf = { in, sizeof in };
	struct kvblock_block put = { .bufs = &put_buf, .n_bufs = 1 },
			     get = { .bufs = &get_buf, .n_bufs = 1 };
	static const char remedy[] =
		"see the checks of storage and mount above; may this user write there?";
	struct kvblock_key key;
	struct kvblock_keys keys = kvblock_keys_wide(&key, 1);
	struct kvblock_error err;

	kvb_random(&key, sizeof key);
	kvb_pattern_fill(out, sizeof out, key.lo);
	if (kvblock_put(d->kv, instance, &keys, NULL, &put, NULL, &err) != KVBLOCK_OK ||
	    put.result != KVBLOCK_WRITTEN) {
		say(d, BAD, "write", remedy, "a block could not be written: %s", err.message);
		return;
	}
	say(d, GOOD, "write", "", "a block was written and committed");
	if (kvblock_get(d->kv, instance, &keys, NULL, &get, NULL, &err) != KVBLOCK_OK ||
	    get.result != KVBLOCK_HIT)
		say(d, BAD, "read", remedy, "the block was not read back: %s",
		    get.result == KVBLOCK_MISMATCH ? "its bytes differ" : err.message);
	else if (memcmp(in, out, sizeof in) != 0)
		say(d, BAD, "read", "the mount shows other bytes than were written: do not use it",
		    "the bytes differ");
	else
		say(d, GOOD, "read", "", "the same bytes came back");
	(void)kvblock_delete(d->kv, instance, &keys, NULL, &err);
}

static void check_probe(struct doctor *d)
{
	const struct kvblock_spec spec = { "kv", 4096 };
	const struct kvblock_instance instance = {
		.id = "kvblock-doctor", .group = "default", .specs = &spec, .n_specs = 1
	};
	struct kvblock_error err;

	if (!d->write)
		return;
	if (kvb_cli_make_instance(d->kv, &instance, "default", &err) != KVBLOCK_OK)
		say(d, err.code == KVBLOCK_E_FORBIDDEN ? WARNING : BAD, "write",
		    "use a token with the role write, or --no-write", "no probe instance: %s",
		    err.message);
	else
		probe_block(d, instance.id);
	/* Tidy up; a token that may only write leaves the empty instance behind. */
	(void)kvblock_instance_delete(d->kv, instance.id, &err);
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
		kvb_args_print_size((uint64_t)shm.f_bavail * shm.f_frsize, size);
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
	engine = kvblock_engine(d->kv, &why);
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
	int rc = KVB_EXIT_OK;

	if (d->cli->json)
		rc = kvb_cli_print_json(json_pack("{sI sI so}", "bad", (json_int_t)bad, "warnings",
						  (json_int_t)warnings, "checks", d->list));
	else
		printf("%u bad, %u warnings\n", bad, warnings);
	if (!d->cli->json)
		json_decref(d->list);
	if (rc != KVB_EXIT_OK || bad == 0)
		return rc;
	return d->unreachable ? KVB_EXIT_UNREACHABLE : KVB_EXIT_MISS;
}

int kvb_cmd_doctor(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "no-write", no_argument, NULL, 'n' },
						 KVB_CLI_GLOBAL_OPTIONS };
	struct doctor d = { .cli = cli, .write = true };
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'n')
			d.write = false;
		else
			rc = kvb_cli_global_option(cli, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && optind < argc)
		rc = kvb_cli_usage(cli, "takes no arguments");
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_open(cli, NULL, &d.kv);
	if (rc != KVB_EXIT_OK)
		return rc;
	d.list = json_array();
	check_named_mounts(&d);
	if (check_manager(&d)) {
		check_storages(&d);
		check_probe(&d);
	}
	check_machine(&d);
	kvblock_close(d.kv);
	return finish(&d);
}
