/* test_params.c - the parameter table: each source, precedence, errors, dump and help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/mem.h>
#include <skv/params.h>

struct files {
	char dir[64];
	char conf[96];
};

static int setup(void **state)
{
	struct files *f = calloc(1, sizeof *f);

	snprintf(f->dir, sizeof f->dir, "/tmp/skv-params-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->conf, sizeof f->conf, "%s/slabkvd.conf", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct files *f = *state;

	unlink(f->conf);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void write_conf(const struct files *f, const char *text)
{
	FILE *out = fopen(f->conf, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* `args` and `env` end with NULL. */
static int load(struct skv_params *p, const char *const *args, const char *const *env,
		struct skv_error *err)
{
	char *argv[16] = { "slabkvd" };
	int argc = 1;

	for (; args && *args; args++)
		argv[argc++] = (char *)*args;
	return skv_params_load(p, argc, argv, (char *const *)env, err);
}

static void assert_load(struct skv_params *p, const char *const *args, const char *const *env)
{
	struct skv_error err;

	if (load(p, args, env, &err) != SKV_OK)
		fail_msg("%s", err.message);
}

/* The message must have each of the NULL-terminated words. */
static void assert_refused(const char *const *args, const char *const *env,
			   const char *const *words)
{
	struct skv_params p;
	struct skv_error err;

	assert_int_not_equal(load(&p, args, env, &err), SKV_OK);
	for (; *words; words++)
		if (!strstr(err.message, *words))
			fail_msg("'%s' is not in: %s", *words, err.message);
}

#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

static void test_defaults(void **state)
{
	struct skv_params p;

	(void)state;
	assert_load(&p, NULL, NULL);
	assert_string_equal(p.http_listen, "127.0.0.1");
	assert_int_equal(p.http_port, 7333);
	assert_string_equal(p.store, "./slabkv.db");
	assert_string_equal(p.storage_root, "./slabkv-data");
	assert_true(p.storage_capacity == 4ull << 30);
	assert_true(p.storage_unit == 0);
	assert_string_equal(p.durability, "full");
	assert_int_equal(p.body_max, SKV_MAX_BODY);
	assert_false(p.metrics_open);
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++)
		assert_int_equal(p.source[i], SKV_FROM_DEFAULT);
	assert_int_equal(p.action, SKV_ACTION_RUN);
	skv_params_destroy(&p);
}

static void test_precedence(void **state)
{
	const struct files *f = *state;
	char env_config[160];
	struct skv_params p;

	write_conf(f, "# all three\n http_port = 1001 \nslow_ms=1001\ngrace_ms = 1001\n\n");
	snprintf(env_config, sizeof env_config, "SLABKV_CONFIG=%s", f->conf);
	assert_load(&p, LIST("--grace-ms", "1003"),
		    LIST("HOME=/", env_config, "SLABKV_SLOW_MS=1002", "SLABKV_GRACE_MS=1002"));
	assert_int_equal(p.http_port, 1001);
	assert_int_equal(p.source[SKV_PARAM_http_port], SKV_FROM_FILE);
	assert_int_equal(p.slow_ms, 1002);
	assert_int_equal(p.source[SKV_PARAM_slow_ms], SKV_FROM_ENVIRONMENT);
	assert_int_equal(p.grace_ms, 1003);
	assert_int_equal(p.source[SKV_PARAM_grace_ms], SKV_FROM_ARGUMENT);
	skv_params_destroy(&p);
}

static void test_command_line_forms(void **state)
{
	struct skv_params p;

	(void)state;
	assert_load(&p,
		    LIST("--http_port=0", "--storage-capacity", "1536M", "--metrics-open",
			 "--store=/x=y #z"),
		    NULL);
	assert_int_equal(p.http_port, 0);
	assert_true(p.storage_capacity == 1536ull << 20);
	assert_true(p.metrics_open);
	assert_string_equal(p.store, "/x=y #z");
	skv_params_destroy(&p);
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = { { "4096", 4096 },	   { "4k", 4096 },	   { "4K", 4096 },
		     { "4KiB", 4096 },	   { "8192B", 8192 },	   { "1MB", 1 << 20 },
		     { "3G", 3ull << 30 }, { "2TiB", 2ull << 40 }, { "1P", 1ull << 50 } };
	static const char *const bad[] = { "",	 "K",  "-1",   "1.5G", "4X",  "4 K",
					   "4KK", "0x1", "+4096", "17179869184G",
					   "99999999999999999999" };
	char arg[64];
	struct skv_params p;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(arg, sizeof arg, "--storage_capacity=%s", good[i].text);
		assert_load(&p, LIST(arg), NULL);
		assert_true(p.storage_capacity == good[i].value);
		skv_params_destroy(&p);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(arg, sizeof arg, "--storage_capacity=%s", bad[i]);
		assert_refused(LIST(arg), NULL, LIST("storage_capacity", "4K..1E bytes"));
	}
}

static void test_errors_name_the_place(void **state)
{
	const struct files *f = *state;
	char config[160];

	snprintf(config, sizeof config, "--config=%s", f->conf);
	write_conf(f, "\n\nhttp_port = 70000\n");
	assert_refused(LIST(config), NULL,
		       LIST("slabkvd.conf:3", "http_port", "70000", "0..65535"));
	write_conf(f, "nonsense = 1\n");
	assert_refused(LIST(config), NULL, LIST("slabkvd.conf:1", "nonsense", "--help"));
	write_conf(f, "http_port 1\n");
	assert_refused(LIST(config), NULL, LIST("slabkvd.conf:1", "name = value"));
	write_conf(f, "config = /etc/x\n");
	assert_refused(LIST(config), NULL, LIST("slabkvd.conf:1", "another file"));
	assert_refused(LIST("--config", "/nonexistent/x"), NULL,
		       LIST("/nonexistent/x", "No such file"));
	assert_refused(NULL, LIST("SLABKV_DURABILITY=maybe"),
		       LIST("environment SLABKV_DURABILITY", "maybe", "full|normal"));
	assert_refused(NULL, LIST("SLABKV_NONSENSE=1"), LIST("environment SLABKV_NONSENSE"));
	assert_refused(LIST("--nonsense"), NULL, LIST("--nonsense", "--help"));
	assert_refused(LIST("nonsense"), NULL, LIST("nonsense", "not an option"));
	assert_refused(LIST("--http_port"), NULL, LIST("--http_port", "missing"));
	assert_refused(LIST("--http_port="), NULL, LIST("command line", "http_port"));
	assert_refused(LIST("--metrics_open=maybe"), NULL, LIST("metrics_open", "true|false"));
	assert_refused(LIST("--store="), NULL, LIST("store", "1..4095 characters"));
	assert_refused(LIST("--store=a\nb"), NULL, LIST("store"));
	assert_refused(LIST("--store= a"), NULL, LIST("store"));
}

static void test_values_that_contradict(void **state)
{
	(void)state;
	assert_refused(LIST("--lease_max_ms=100"), NULL, LIST("lease_default_ms", "lease_max_ms"));
	assert_refused(LIST("--session_default_ms=700000"), NULL,
		       LIST("session_default_ms", "session_max_ms"));
	assert_refused(LIST("--body_max=1G"), NULL, LIST("body_max", "body_total_max"));
}

/* Variables that Kubernetes sets by itself for a service named slabkvd must not stop the start. */
static void test_advertised_address(void **state)
{
	static const char *const bad[] = { "h/x",   "ftp://host:1", "http://host", "http://h:1/",
					   "h:1?x", "u:p@h:1",      "h:1 x" };
	static const char *const good[] = { "host:7333", "[fd00::1]:7333", "http://h:1",
					    "https://h:443", "host", "fd00::1", "10.0.0.5" };
	struct skv_params p;
	char option[64];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(option, sizeof option, "--advertise=%s", bad[i]);
		assert_refused(LIST(option), NULL, LIST("advertise", "host:port"));
	}
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(option, sizeof option, "--advertise=%s", good[i]);
		assert_load(&p, LIST(option), NULL);
		assert_string_equal(p.advertise, good[i]);
		skv_params_destroy(&p);
	}
}

static void test_kubernetes_environment(void **state)
{
	struct skv_params p;

	(void)state;
	assert_load(&p, NULL,
		    LIST("SLABKV_PORT=tcp://10.0.0.1:7333", "SLABKV_SERVICE_HOST=10.0.0.1",
			 "SLABKV_PORT_7333_TCP=tcp://10.0.0.1:7333",
			 "SLABKV_PORT_7333_TCP_ADDR=10.0.0.1", "SLABKV_HTTP_PORT=tcp://10.0.0.1:9",
			 "SLABKV_MANAGER_SERVICE_PORT_HTTP=9"));
	assert_int_equal(p.http_port, 7333);
	skv_params_destroy(&p);
}

/* The server and its clients have the same prefix: a shell that is set up for the command line
 * starts a manager, too. */
static void test_environment_of_clients(void **state)
{
	struct skv_params p;

	(void)state;
	assert_load(&p, NULL,
		    LIST("SLABKV_URL=http://h:1", "SLABKV_TOKEN=x", "SLABKV_ENGINE=posix",
			 "SLABKV_SLOW_MS=1002"));
	assert_int_equal(p.slow_ms, 1002);
	skv_params_destroy(&p);
	assert_refused(NULL, LIST("SLABKV_URLS=x"), LIST("environment SLABKV_URLS"));
}

static void test_actions(void **state)
{
	struct skv_params p;

	(void)state;
	assert_load(&p, LIST("--version"), NULL);
	assert_int_equal(p.action, SKV_ACTION_VERSION);
	skv_params_destroy(&p);
	/* Help must come even where the file cannot be read. */
	assert_load(&p, LIST("--config=/nonexistent/x", "--help"), NULL);
	assert_int_equal(p.action, SKV_ACTION_HELP);
	skv_params_destroy(&p);
	assert_load(&p, LIST("--man"), NULL);
	assert_int_equal(p.action, SKV_ACTION_MAN);
	skv_params_destroy(&p);
}

static char *printed(void (*print)(FILE *out))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	print(out);
	fclose(out);
	return text;
}

static char *dumped(const struct skv_params *p)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	skv_params_dump(p, out);
	fclose(out);
	return text;
}

/* A dump read as a file gives the same dump again, but for the remarks on sources. */
static void test_dump_round_trips(void **state)
{
	const struct files *f = *state;
	char config[160], *first, *second, *third;
	struct skv_params p;

	snprintf(config, sizeof config, "--config=%s", f->conf);
	assert_load(&p,
		    LIST("--storage_capacity=12345678901", "--storage_unit=1M", "--metrics_open",
			 "--log_format=json", "--tokens_file=/etc/a b#c", "--durability", "normal"),
		    NULL);
	first = dumped(&p);
	skv_params_destroy(&p);
	assert_non_null(strstr(first, "storage_capacity = 12345678901\n"));
	assert_non_null(strstr(first, "storage_unit = 1M\n"));
	assert_non_null(strstr(first, "\ntokens_file = /etc/a b#c\n"));
	assert_non_null(strstr(first, "from the command line"));
	write_conf(f, first);
	assert_load(&p, LIST(config), NULL);
	assert_true(p.storage_capacity == 12345678901);
	assert_string_equal(p.tokens_file, "/etc/a b#c");
	assert_true(p.metrics_open);
	second = dumped(&p);
	skv_params_destroy(&p);
	write_conf(f, second);
	assert_load(&p, LIST(config), NULL);
	third = dumped(&p);
	skv_params_destroy(&p);
	assert_string_equal(second, third);
	free(first);
	free(second);
	free(third);
}

static void test_help_and_manual_are_complete(void **state)
{
	static const char *const names[] = {
#define NAME(name, ...) #name,
		SKV_PARAMS(NAME)
#undef NAME
	};
	char *help = printed(skv_params_help);
	char *man = printed(skv_params_man);

	(void)state;
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		char option[80], roff[160];
		size_t k = 0;

		snprintf(option, sizeof option, "  --%s ", names[i]);
		for (char *c = option; *c; c++)
			*c = *c == '_' ? '-' : *c;
		if (!strstr(help, option))
			fail_msg("--help lacks %s", option);
		for (const char *c = option + 2; *c && *c != ' '; c++) {
			if (*c == '-')
				roff[k++] = '\\';
			roff[k++] = *c;
		}
		roff[k] = '\0';
		if (!strstr(man, roff))
			fail_msg("the manual lacks %s", roff);
	}
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 110);
	free(help);
	free(man);
}

/* Out of memory at any point: an error, nothing lost (ASan tells). */
static void test_every_allocation_failing(void **state)
{
	const struct files *f = *state;
	char config[160];
	int rc = SKV_E_NOMEM;

	snprintf(config, sizeof config, "--config=%s", f->conf);
	write_conf(f, "store = /tmp/x\nlog_format = json\n");
	for (unsigned long n = 1; rc != SKV_OK; n++) {
		struct skv_params p;
		struct skv_error err;

		skv_mem_fail_at(n);
		rc = load(&p, LIST(config, "--port_file=/tmp/y"), NULL, &err);
		skv_mem_fail_at(0);
		if (rc == SKV_OK)
			skv_params_destroy(&p);
		else
			assert_int_equal(rc, SKV_E_NOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_line_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors_name_the_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_that_contradict, setup, teardown),
		cmocka_unit_test_setup_teardown(test_advertised_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kubernetes_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_environment_of_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(test_actions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump_round_trips, setup, teardown),
		cmocka_unit_test_setup_teardown(test_help_and_manual_are_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_allocation_failing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
