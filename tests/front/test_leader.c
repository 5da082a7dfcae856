/* test_leader.c - documents of managers, and where the leader is: looked up once, by a worker, checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <kvb/core.h>
#include <kvb/nodes.h>
#include <kvb/service.h>
#include <kvb/store.h>

/* ---- a core that has documents and knows who leads -------------------------------------------- */

static struct {
	struct kvb_mutex lock;
	struct kvb_cond got;
	char name[4][64];
	char text[4][400];
	char leader[KVB_OWNER_NAME];
	unsigned gets;
} fake;

void kvb_core_leader(struct kvb_core *c, char self[KVB_OWNER_NAME], char leader[KVB_OWNER_NAME], uint64_t *remaining_ms)
{
	(void)c;
	snprintf(self, KVB_OWNER_NAME, "me");
	memcpy(leader, fake.leader, KVB_OWNER_NAME);
	*remaining_ms = 0;
}

static size_t find(const char *name)
{
	size_t i = 0;

	while (i < 4 && strcmp(fake.name[i], name) != 0)
		i++;
	return i;
}

int kvb_core_doc_put(struct kvb_core *c, const char *name, uint64_t expect, const char *text, uint64_t *version,
		     struct kvb_error *err)
{
	(void)c;
	(void)version;
	(void)err;
	assert_true(expect == UINT64_MAX);
	kvb_mutex_lock(&fake.lock);
	size_t i = find(name) < 4 ? find(name) : find("");

	assert_true(i < 4);
	snprintf(fake.name[i], sizeof fake.name[i], "%s", name);
	snprintf(fake.text[i], sizeof fake.text[i], "%s", text);
	kvb_mutex_unlock(&fake.lock);
	return KVB_OK;
}

int kvb_core_doc_get(struct kvb_core *c, const char *name, struct kvb_arena *a, struct kvb_doc *out,
		     struct kvb_error *err)
{
	size_t i;

	(void)c;
	kvb_mutex_lock(&fake.lock);
	fake.gets++;
	kvb_cond_broadcast(&fake.got);
	i = find(name);
	if (i < 4)
		*out = (struct kvb_doc){ .text = kvb_arena_strndup(a, fake.text[i], strlen(fake.text[i])) };
	kvb_mutex_unlock(&fake.lock);
	return i < 4 ? KVB_OK : kvb_fail(err, KVB_E_NOT_FOUND, NULL, "none");
}

int kvb_core_doc_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	(void)c;
	if (find(name) == 4)
		return kvb_fail(err, KVB_E_NOT_FOUND, NULL, "none");
	*fake.name[find(name)] = '\0';
	return KVB_OK;
}

int kvb_core_doc_list(struct kvb_core *c, const char *prefix, struct kvb_arena *a, struct kvb_doc **out, uint32_t *n,
		      struct kvb_error *err)
{
	(void)c;
	(void)err;
	*out = kvb_arena_calloc(a, 4, sizeof **out);
	*n = 0;
	for (size_t i = 0; i < 4; i++)
		if (*fake.name[i] && strncmp(fake.name[i], prefix, strlen(prefix)) == 0)
			(*out)[(*n)++].name = kvb_arena_strndup(a, fake.name[i], strlen(fake.name[i]));
	return KVB_OK;
}

bool kvb_owner_is_dead(const char *owner) { return strncmp(owner, "dead", 4) == 0; }

int kvb_core_ready(struct kvb_core *c, struct kvb_error *err)
{
	(void)c;
	return kvb_fail(err, KVB_E_NOT_OWNER, NULL, "standby");
}

static struct kvb_service *service;

static struct kvb_api no_api = { .name = "none", .prefix = "/" };

static int setup(void **state)
{
	struct kvb_service_options o;
	struct kvb_error err;
	struct kvb_api *const apis[] = { &no_api };

	(void)state;
	memset(&fake, 0, sizeof fake);
	kvb_mutex_init(&fake.lock);
	kvb_cond_init(&fake.got);
	kvb_service_options_init(&o);
	o.apis = apis;
	o.n_apis = 1;
	assert_int_equal(kvb_service_create(&o, &service, &err), KVB_OK);
	assert_int_equal(kvb_service_start(service, NULL, &err), KVB_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kvb_service_destroy(service);
	kvb_cond_destroy(&fake.got);
	kvb_mutex_destroy(&fake.lock);
	return 0;
}

static void lead(const char *owner) { snprintf(fake.leader, sizeof fake.leader, "%s", owner); }

/* How often the store was read, after a moment if it is as often as `before`. */
static unsigned looks(unsigned before)
{
	unsigned n;

	kvb_mutex_lock(&fake.lock);
	if (fake.gets == before)
		kvb_cond_wait_ms(&fake.got, &fake.lock, 10);
	n = fake.gets;
	kvb_mutex_unlock(&fake.lock);
	return n;
}

/* Asks until it is not being looked up any more. */
static int ask(char url[KVB_URL_MAX])
{
	int rc = kvb_service_leader_url(service, url);

	for (unsigned i = 0, n = 0; i < 1000 && rc == KVB_E_NOT_READY; i++) {
		n = looks(n);
		rc = kvb_service_leader_url(service, url);
	}
	return rc;
}

/* ---- tests ------------------------------------------------------------------------------------- */

static void test_documents(void **state)
{
	struct kvb_error err;
	struct kvb_arena a;
	const char *text;

	(void)state;
	kvb_arena_init(&a);
	kvb_core_doc_put(NULL, "url/dead1", UINT64_MAX, "x", NULL, &err);
	kvb_core_doc_put(NULL, "url/alive", UINT64_MAX, "y", NULL, &err);
	kvb_core_doc_put(NULL, "node/dead1", UINT64_MAX, "z", NULL, &err);
	assert_int_equal(kvb_node_publish(NULL, "url", "http://me:1", &err), KVB_OK);
	assert_int_equal(find("url/dead1"), 4);
	assert_int_equal(kvb_node_text(NULL, "url", "me", &a, &text, &err), KVB_OK);
	assert_string_equal(text, "http://me:1");
	assert_int_equal(kvb_node_text(NULL, "url", "alive", &a, &text, &err), KVB_OK);
	assert_int_equal(kvb_node_text(NULL, "node", "dead1", &a, &text, &err), KVB_OK); /* another kind */
	kvb_node_retire(NULL, "url");
	assert_int_equal(kvb_node_text(NULL, "url", "me", &a, &text, &err), KVB_E_NOT_FOUND);
	kvb_arena_destroy(&a);
}

static void test_leader(void **state)
{
	struct kvb_error err;
	char url[KVB_URL_MAX];

	(void)state;
	assert_int_equal(kvb_service_leader_url(service, url), KVB_E_NOT_FOUND); /* nobody */
	lead("me");
	assert_int_equal(kvb_service_leader_url(service, url), KVB_E_NOT_FOUND);
	assert_int_equal(looks(1), 0);
	kvb_core_doc_put(NULL, "url/a", UINT64_MAX, "http://a:1", NULL, &err);
	kvb_core_doc_put(NULL, "url/b", UINT64_MAX, "http://b:1", NULL, &err);
	lead("a");
	assert_int_equal(kvb_service_leader_url(service, url), KVB_E_NOT_READY);
	assert_int_equal(ask(url), KVB_OK);
	assert_string_equal(url, "http://a:1");
	assert_int_equal(ask(url), KVB_OK);
	assert_int_equal(looks(0), 1); /* kept */
	lead("b");
	assert_int_equal(ask(url), KVB_OK);
	assert_string_equal(url, "http://b:1");
	snprintf(service->advertised, sizeof service->advertised, "http://b:1");
	assert_int_equal(kvb_service_leader_url(service, url), KVB_E_NOT_READY); /* b ends, and we have its port */
}

static void test_leader_that_tells_late(void **state)
{
	struct kvb_error err;
	char url[KVB_URL_MAX];

	(void)state;
	lead("a");
	assert_int_equal(kvb_service_leader_url(service, url), KVB_E_NOT_READY);
	looks(0);
	kvb_core_doc_put(NULL, "url/a", UINT64_MAX, "http://a:1", NULL, &err);
	assert_int_equal(ask(url), KVB_OK);
}

/* One that never tells, and one that tells what no header can carry. */
static void test_leader_without_address(void **state)
{
	struct kvb_error err;
	char url[KVB_URL_MAX];

	(void)state;
	kvb_core_doc_put(NULL, "url/a", UINT64_MAX, "http://a\r\nSet-Cookie: x", NULL, &err);
	lead("a");
	assert_int_equal(ask(url), KVB_E_NOT_FOUND);
	assert_true(looks(0) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_documents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_that_tells_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_without_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
