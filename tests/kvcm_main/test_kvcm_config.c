/* test_kvcm_config.c - the peer's keys as parameters of ours: every key,
 * every source, later ones win. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/kvcm_config.h>
#include <skv/mem.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct box {
	char dir[64];
	char conf[96];
	struct skv_params p;
	struct kvcm_command c;
	struct skv_error err;
};

static int setup(void **state)
{
	struct box *b = calloc(1, sizeof *b);

	assert_non_null(b);
	snprintf(b->dir, sizeof b->dir, "/tmp/kvcm-config-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->conf, sizeof b->conf, "%s/server.conf", b->dir);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct box *b = *state;
	char path[128];

	unlink(b->conf);
	snprintf(path, sizeof path, "%s/lock", b->dir);
	rmdir(path);
	assert_int_equal(rmdir(b->dir), 0);
	free(b);
	return 0;
}

static void write_conf(const struct box *b, const char *text)
{
	FILE *f = fopen(b->conf, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int load(struct box *b, const char *const *args, const char *const *env)
{
	char *argv[40] = { "kv_cache_manager_bin" };
	int argc = 1;

	for (; args && *args; args++)
		argv[argc++] = (char *)*args;
	return kvcm_config_load(&b->p, &b->c, argc, argv, (char *const *)env, &b->err);
}

static void good(struct box *b, const char *const *args, const char *const *env)
{
	if (load(b, args, env) != SKV_OK)
		fail_msg("%s", b->err.message);
}

static void done(struct box *b)
{
	skv_params_destroy(&b->p);
	kvcm_command_destroy(&b->c);
}

static size_t noted(const struct box *b, const char *words)
{
	size_t n = 0;

	for (size_t i = 0; i < b->c.notes.n; i++)
		n += strstr(b->c.notes.text[i], words) != NULL;
	return n;
}

/* ---- every key ------------------------------------------------------------------------------- */

/* The value that a key has afterwards, as --dump-config prints it; NULL: the key is accepted and
 * ignored. */
static const struct {
	const char *key;
	const char *value;
	const char *param;
	const char *becomes;
} keys[] = {
	{ "kvcm.registry_storage.uri", "file:///tmp/some-store.db", "store", "/tmp/some-store.db" },
	{ "kvcm.coordination.uri", "memory://", "store", ":memory:" },
	{ "kvcm.distributed_lock.uri", "memory", "store", ":memory:" },
	{ "kvcm.leader_elector.node_id", "node_7", "kvcm_node_id", "node_7" },
	{ "kvcm.leader_elector.lease_ms", "2000", "owner_lease_ms", "2000" },
	{ "kvcm.service.io_thread_num", "3", "threads", "3" },
	{ "kvcm.service.rpc_port", "16381", "kvcm_ports", "16381,6382,6491,6492" },
	{ "kvcm.service.http_port", "16382", "kvcm_ports", "6381,16382,6491,6492" },
	{ "kvcm.service.admin_rpc_port", "16491", "kvcm_ports", "6381,6382,16491,6492" },
	{ "kvcm.service.admin_rpc_port", "0", "kvcm_ports", "6381,6382,off,6492" },
	{ "kvcm.service.admin_http_port", "16492", "kvcm_ports", "6381,6382,6491,16492" },
	{ "kvcm.service.admin_http_port", "0", "kvcm_ports", "6381,6382,6491,off" },
	{ "kvcm.service.enable_debug_service", "true", "kvcm_debug", "true" },
	{ "kvcm.service.enable_debug_service", "1", "kvcm_debug", "false" },
	{ "kvcm.service.advertised_host", "10.0.0.5", "advertise", "10.0.0.5" },
	{ "kvcm.service.custom_info", "rack 4", NULL, NULL },
	{ "kvcm.service.admin_auth_token", "alpha,beta", "kvcm_admin_tokens", "alpha,beta" },
	{ "kvcm.logger.log_level", "0", "log_level", "info" },
	{ "kvcm.logger.log_level", "1", "log_level", "error" },
	{ "kvcm.logger.log_level", "2", "log_level", "error" },
	{ "kvcm.logger.log_level", "3", "log_level", "warn" },
	{ "kvcm.logger.log_level", "4", "log_level", "info" },
	{ "kvcm.logger.log_level", "5", "log_level", "debug" },
	{ "kvcm.startup_config", "/etc/start.json", "kvcm_startup_config", "/etc/start.json" },
	{ "slabkvd.storage_capacity", "1T", "storage_capacity", "1T" },
	{ "kvcm.leader_elector.loop_interval_ms", "500", NULL, NULL },
	{ "kvcm.schedule_plan_executor_thread_count", "16", NULL, NULL },
	{ "kvcm.schedule_plan_migration_worker_budget", "4", NULL, NULL },
	{ "kvcm.meta_query.worker_count", "8", NULL, NULL },
	{ "kvcm.meta_query.parallel_threshold", "1", NULL, NULL },
	{ "kvcm.meta_query.chunk_size", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.key_sampling_size_total", "7", NULL, NULL },
	{ "kvcm.cache_reclaimer.key_sampling_size_per_task", "7", NULL, NULL },
	{ "kvcm.cache_reclaimer.del_batch_size", "8", NULL, NULL },
	{ "kvcm.cache_reclaimer.idle_interval_ms", "8", NULL, NULL },
	{ "kvcm.cache_reclaimer.worker_size", "8", NULL, NULL },
	{ "kvcm.cache_reclaimer.inflight_delete_timeout_ms", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.pending_location_limit_per_group_type", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.pending_bytes_limit_per_group_type", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.pending_delete_handler_limit", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.pending_bytes_limit", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.group_lru_max_sampling_size", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.group_lru_min_sampling_ratio", "1", NULL, NULL },
	{ "kvcm.cache_reclaimer.group_lru_max_delete_requests_per_round", "1", NULL, NULL },
	{ "kvcm.cache_gc.enabled", "false", NULL, NULL },
	{ "kvcm.cache_gc.scan_interval_ms", "1", NULL, NULL },
	{ "kvcm.cache_gc.round_pause_ms", "1", NULL, NULL },
	{ "kvcm.cache_gc.scan_batch_size", "1", NULL, NULL },
	{ "kvcm.cache_gc.orphan_writing_grace_period_ms", "1", NULL, NULL },
	{ "kvcm.cache_gc.max_inflight_delete_requests", "1", NULL, NULL },
	{ "kvcm.cache_gc.event_report_cleanup_enabled", "false", NULL, NULL },
	{ "kvcm.cache_gc.event_report_action_batch_size", "1", NULL, NULL },
	{ "kvcm.metrics.reporter_type", "kmonitor", NULL, NULL },
	{ "kvcm.metrics.reporter_config", "x", NULL, NULL },
	{ "kvcm.metrics.report_interval_ms", "1", NULL, NULL },
	{ "kvcm.metrics.enable_prometheus", "false", NULL, NULL },
	{ "kvcm.metrics.prometheus_prefix", "mine", NULL, NULL },
	{ "kvcm.metrics.revisit_interval_buckets", "1,2", NULL, NULL },
	{ "kvcm.event.event_publishers_configs", "x", NULL, NULL },
	{ "kvcm.kv_meta.enabled", "true", NULL, NULL },
	{ "kvcm.kv_meta.rpc_port", "6400", NULL, NULL },
};

/* "name = value" as the dump of the parameters has it. */
static bool dumped(const struct skv_params *p, const char *name, const char *value)
{
	char line[256], *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool found;

	assert_non_null(f);
	skv_params_dump(p, f);
	fclose(f);
	snprintf(line, sizeof line, "\n%s = %s\n", name, value);
	found = strstr(text, line) != NULL;
	free(text);
	return found;
}

static void test_every_key(void **state)
{
	struct box *b = *state;

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		char pair[256];

		snprintf(pair, sizeof pair, "%s=%s", keys[i].key, keys[i].value);
		good(b, LIST("-e", pair), NULL);
		if (keys[i].param && !dumped(&b->p, keys[i].param, keys[i].becomes))
			fail_msg("%s: %s is not %s", pair, keys[i].param, keys[i].becomes);
		if (noted(b, keys[i].key) != 0 || noted(b, "unknown") != 0)
			fail_msg("%s: %zu notes", pair, b->c.notes.n);
		done(b);
	}
}

/* ---- sources --------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
	struct box *b = *state;

	good(b, NULL, NULL);
	assert_string_equal(b->p.compat, "kvcm");
	assert_string_equal(b->p.store, ":memory:");
	assert_string_equal(b->p.kvcm_listen, "0.0.0.0");
	assert_true(b->p.kvcm_open);
	assert_string_equal(b->p.kvcm_ports, "6381,6382,6491,6492");
	assert_int_equal(b->p.http_port, 0);
	assert_int_equal(b->p.grpc_port, SKV_PORT_OFF);
	assert_string_equal(b->p.http_listen, "127.0.0.1");
	assert_int_equal(b->p.open_percent, 100);
	assert_int_equal(b->p.session_max_ms, 1800000);
	assert_string_equal(b->p.log_file, "");
	assert_int_equal(b->c.notes.n, 0);
	assert_false(b->c.daemon);
	done(b);
}

static void test_closed(void **state)
{
	struct box *b = *state;

	good(b, LIST("-e", "slabkvd.kvcm_open=false"), NULL);
	assert_string_equal(b->p.kvcm_listen, "127.0.0.1");
	done(b);
	good(b, LIST("-e", "slabkvd.kvcm_open=false", "-e", "kvcm.service.admin_auth_token=t"),
	     NULL);
	assert_string_equal(b->p.kvcm_listen, "0.0.0.0");
	done(b);
}

static void test_precedence(void **state)
{
	struct box *b = *state;

	write_conf(
		b,
		"# a comment\n\n kvcm.service.http_port = 1001 # inline\n"
		"kvcm.service.rpc_port=1002\n"
		"kvcm.service.admin_http_port=1003\nslabkvd.max_sessions=7\n");
	good(b,
	     LIST("-e", "kvcm.service.rpc_port=2002", "-c", b->conf, "--env",
		  "kvcm.service.admin_http_port=2003", "--env=kvcm.service.admin_http_port=2004"),
	     LIST("SLABKV_MAX_SESSIONS=5", "SLABKV_FREE_PERCENT=9",
		  "kvcm_service_admin_http_port=3003", "kvcm.leader_elector.node_id=n",
		  "kvcm.service.rpc_port="));
	/* -e over the file; an empty variable says nothing */
	assert_string_equal(b->p.kvcm_ports, "2002,1001,6491,3003");
	assert_int_equal(b->p.max_sessions, 7);
	assert_int_equal(b->p.free_percent, 9);
	assert_string_equal(b->p.kvcm_node_id, "n");
	assert_int_equal(b->c.notes.n, 0);
	done(b);
}

static void test_unknown_keys_are_told_once(void **state)
{
	struct box *b = *state;

	good(b,
	     LIST("-e", "kvcm.nothing=1", "-e", "kvcm.nothing=2", "-e", "other=3", "-e",
		  "slabkvd.nothing=4"),
	     LIST("kvcm_nothing_either=1", "kvcm_cache_gc_enabled=0",
		  "KVCM_INSTANCE_GROUP={}", "PATH=/bin"));
	assert_int_equal(noted(b, "'kvcm.nothing'"), 1);
	assert_int_equal(noted(b, "'other'"), 1);
	assert_int_equal(noted(b, "'slabkvd.nothing'"), 1);
	assert_int_equal(noted(b, "kvcm_nothing_either"), 1);
	assert_int_equal(noted(b, "KVCM_INSTANCE_GROUP"), 1);
	assert_int_equal(b->c.notes.n, 5);
	done(b);
}

static void test_flags(void **state)
{
	struct box *b = *state;

	good(b, LIST("-d", "-l", "/etc/log.conf"), NULL);
	assert_true(b->c.daemon);
	assert_string_equal(b->p.log_file, "logs/kv_cache_manager.log");
	assert_int_equal(noted(b, "/etc/log.conf"), 1);
	done(b);
	good(b, LIST("--daemon", "-e", "slabkvd.log_file=/tmp/x.log"), NULL);
	assert_string_equal(b->p.log_file, "/tmp/x.log");
	done(b);
	good(b, LIST("-h", "-c", "/does/not/exist"), NULL);
	assert_int_equal(b->c.action, SKV_ACTION_HELP);
	done(b);
	good(b, LIST("--version"), NULL);
	assert_int_equal(b->c.action, SKV_ACTION_VERSION);
	done(b);
	assert_true(kvcm_config_is_asked("/usr/sbin/kv_cache_manager_bin"));
	assert_true(kvcm_config_is_asked("kv_cache_manager_bin"));
	assert_false(kvcm_config_is_asked("/opt/kv_cache_manager_bin/slabkvd"));
	assert_false(kvcm_config_is_asked(NULL));
}

static void refused(struct box *b, const char *const *args, int status, const char *words)
{
	assert_int_equal(load(b, args, NULL), status);
	if (!strstr(b->err.message, words))
		fail_msg("'%s' does not say '%s'", b->err.message, words);
}

static void test_bad_values(void **state)
{
	struct box *b = *state;

	refused(b, LIST("-e", "kvcm.service.http_port=65536"), SKV_E_INVALID,
		"kvcm.service.http_port");
	refused(b, LIST("-e", "kvcm.service.http_port=-1"), SKV_E_INVALID,
		"kvcm.service.http_port");
	refused(b, LIST("-e", "kvcm.logger.log_level=6"), SKV_E_INVALID, "kvcm.logger.log_level");
	refused(b, LIST("-e", "kvcm.leader_elector.lease_ms=soon"), SKV_E_INVALID, "lease_ms");
	refused(b, LIST("-e", "slabkvd.config=/x"), SKV_OK, "") /* told as unknown */;
	done(b);
	refused(b, LIST("-e", "kvcm.service.http_port"), SKV_E_INVALID, "key=value");
	refused(b, LIST("-c", "/does/not/exist"), SKV_E_IO, "/does/not/exist");
	refused(b, LIST("-x"), SKV_E_INVALID, "-x");
	refused(b, LIST("-c"), SKV_E_INVALID, "value is missing");
	refused(b, LIST("word"), SKV_E_INVALID, "word");
	write_conf(b, "kvcm.service.http_port=1\nwords\n");
	refused(b, LIST("-c", b->conf), SKV_E_INVALID, ":2");
	write_conf(b, "\nkvcm.service.http_port=x\n");
	refused(b, LIST("-c", b->conf), SKV_E_INVALID, ":2");
}

static void test_lease_is_brought_into_range(void **state)
{
	struct box *b = *state;

	good(b, LIST("-e", "kvcm.leader_elector.lease_ms=600000"), NULL);
	assert_int_equal(b->p.owner_lease_ms, 60000);
	assert_int_equal(noted(b, "taken as 60000"), 1);
	done(b);
	good(b, LIST("-e", "kvcm.leader_elector.lease_ms=10"), NULL);
	assert_int_equal(b->p.owner_lease_ms, 1000);
	done(b);
}

/* ---- where the store lies -------------------------------------------------------------------- */

static void store_is(struct box *b, const char *const *args, const char *path)
{
	good(b, args, NULL);
	assert_string_equal(b->p.store, path);
	done(b);
}

static void test_uris(void **state)
{
	struct box *b = *state;
	char lock[128], other[128], registry[128], in_lock[128], in_dir[128];
	struct stat st;

	snprintf(lock, sizeof lock, "kvcm.distributed_lock.uri=file://%s/lock", b->dir);
	snprintf(other, sizeof other, "kvcm.coordination.uri=file://%s/?cluster_name=a", b->dir);
	snprintf(registry, sizeof registry, "kvcm.registry_storage.uri=local://%s/r.db", b->dir);
	snprintf(in_lock, sizeof in_lock, "%s/lock/slabkv.db", b->dir);
	snprintf(in_dir, sizeof in_dir, "%s/slabkv.db", b->dir);
	store_is(b, LIST("-e", lock), in_lock);
	assert_int_equal(stat(strstr(lock, "/tmp"), &st), 0); /* made */
	store_is(b, LIST("-e", other, "-e", lock), in_dir); /* the newer name wins */
	store_is(b, LIST("-e", other), in_dir);
	store_is(b, LIST("-e", registry), strstr(registry, "/tmp"));
	good(b, LIST("-e", registry, "-e", lock), NULL);
	assert_string_equal(b->p.store, in_lock);
	assert_int_equal(noted(b, "kvcm.registry_storage.uri"), 1);
	done(b);
	snprintf(registry, sizeof registry, "kvcm.registry_storage.uri=file://%s", b->dir);
	store_is(b, LIST("-e", registry, "-e", "kvcm.coordination.uri=memory"), in_dir);
	store_is(b,
		 LIST("-e", "kvcm.registry_storage.uri=local://", "-e",
		      "kvcm.coordination.uri=memory://"),
		 ":memory:");
	store_is(b, LIST("-e", lock, "-e", "slabkvd.store=/x/y.db"), "/x/y.db");
	refused(b, LIST("-e", "kvcm.coordination.uri=redis://h:6379/?db=1"), SKV_E_UNSUPPORTED,
		"file:///DIR");
	refused(b, LIST("-e", "kvcm.registry_storage.uri=redis://h:6379"), SKV_E_UNSUPPORTED,
		"registry_storage");
	refused(b, LIST("-e", "kvcm.distributed_lock.uri=etcd://h"), SKV_E_INVALID, "etcd://h");
	refused(b, LIST("-e", "kvcm.distributed_lock.uri=file:///does/not/exist"), SKV_E_IO,
		"/does/not/exist");
}

static void test_every_allocation_failing(void **state)
{
	struct box *b = *state;
	const char *const env[] = { "kvcm.nothing=1", "kvcm_service_http_port=7", NULL };
	unsigned long n = 1, made;
	bool looked = false;
	int rc;

	write_conf(b, "kvcm.leader_elector.node_id=a\nkvcm.unknown=1\n");
	/* The first ones are of a look at log_format, which may fail: the rest goes on. */
	do {
		skv_mem_fail_at(n);
		rc = load(b, LIST("-c", b->conf, "-e", "kvcm.coordination.uri=memory", "-l", "x"),
			  env);
		made = skv_mem_count();
		skv_mem_fail_at(0);
		if (rc != SKV_OK)
			assert_int_equal(rc, SKV_E_NOMEM);
		looked |= rc != SKV_OK;
		assert_true(rc != SKV_OK || !looked || made < n);
		if (rc == SKV_OK && made >= n)
			done(b);
	} while (made >= n++);
	assert_int_equal(rc, SKV_OK);
	assert_true(n > 40); /* each parameter that is a text has one */
	assert_string_equal(b->p.kvcm_ports, "6381,7,6491,6492");
	done(b);
}

static void test_help_names_every_key(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	kvcm_config_help(f);
	fclose(f);
	assert_non_null(strstr(text, "kvcm.cache_reclaimer."));
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (keys[i].param && strncmp(keys[i].key, "kvcm.", 5) == 0)
			assert_non_null(strstr(text, keys[i].key));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_keys_are_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lease_is_brought_into_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uris, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_allocation_failing, setup, teardown),
		cmocka_unit_test(test_help_names_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
