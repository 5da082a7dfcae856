/* test_leader.c - documents of managers, and where the leader is: looked up
 * once, by a worker, checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/core.h>
#include <skv/find.h>
#include <skv/nodes.h>
#include <skv/service.h>
#include <skv/store.h>

/* ---- a core that has documents and knows who leads ------------------------------------------- */

static struct {
	struct skv_mutex lock;
	struct skv_cond got;
	char name[4][64];
	char text[4][400];
	char leader[SKV_OWNER_NAME];
	const char *of[SKV_MAX_PARTITIONS];
	unsigned gets;
} fake;

void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	(void)c;
	snprintf(self, SKV_OWNER_NAME, "me");
	memcpy(leader, fake.leader, SKV_OWNER_NAME);
	*remaining_ms = 0;
}

/* Owners of others than the first are those of `of`. */
void skv_cluster_partition_leader(struct skv_cluster *c, uint32_t number, char self[SKV_OWNER_NAME],
				  char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	skv_cluster_leader(c, self, leader, remaining_ms);
	if (number)
		snprintf(leader, SKV_OWNER_NAME, "%s", fake.of[number]);
}

/* Asked by calls, of which there are none. */
enum skv_core_state skv_cluster_state_get(const struct skv_cluster *c)
{
	(void)c;
	return SKV_CORE_STANDBY;
}

enum skv_core_state skv_cluster_partition_state(const struct skv_cluster *c, uint32_t number)
{
	(void)number;
	return skv_cluster_state_get(c);
}

int skv_cluster_partition_may_answer(const struct skv_cluster *c, uint32_t number)
{
	(void)c;
	(void)number;
	return SKV_E_NOT_OWNER;
}

bool skv_cluster_may_begin(const struct skv_cluster *c)
{
	(void)c;
	return false;
}

bool skv_cluster_has_storages(struct skv_cluster *c)
{
	(void)c;
	return true;
}

enum skv_where skv_find(struct skv_cluster *c, const struct skv_target *t, struct skv_door *door)
{
	(void)t;
	*door = (struct skv_door){ .where = SKV_THERE, .part = c, .core = (struct skv_core *)c };
	return door->where;
}

int skv_door_check(const struct skv_door *door)
{
	(void)door;
	return SKV_E_NOT_OWNER;
}

int skv_cluster_tenants_set(struct skv_cluster *c, const struct skv_tenant_view *v, uint32_t n,
			    const struct skv_tenant_spec *others)
{
	(void)c;
	(void)v;
	(void)n;
	(void)others;
	return SKV_OK;
}

void skv_cluster_tenant_use(struct skv_cluster *c, const char *tenant, struct skv_tenant_use *out)
{
	(void)c;
	(void)tenant;
	(void)out;
}

int skv_cluster_tenant_check(struct skv_cluster *c, const char *tenant, struct skv_error *err)
{
	(void)c;
	(void)tenant;
	(void)err;
	return SKV_OK;
}

unsigned skv_cluster_tenant_wait(struct skv_cluster *c, const char *tenant)
{
	(void)c;
	(void)tenant;
	return 0;
}

int skv_cluster_may_answer(const struct skv_cluster *c)
{
	(void)c;
	return SKV_E_NOT_OWNER;
}

uint32_t skv_cluster_partitions(const struct skv_cluster *c)
{
	(void)c;
	return 1;
}

struct skv_cluster *skv_cluster_part(struct skv_cluster *c, uint32_t number)
{
	(void)number;
	return c;
}

bool skv_cluster_owned_elsewhere(struct skv_cluster *c, uint32_t number, uint64_t since_ms)
{
	(void)c;
	(void)number;
	(void)since_ms;
	return true;
}

static size_t find(const char *name)
{
	size_t i = 0;

	while (i < 4 && strcmp(fake.name[i], name) != 0)
		i++;
	return i;
}

int skv_cluster_doc_publish(struct skv_cluster *c, const char *name, const char *text,
			    struct skv_error *err)
{
	(void)c;
	(void)err;
	skv_mutex_lock(&fake.lock);
	size_t i = find(name) < 4 ? find(name) : find("");

	assert_true(i < 4);
	snprintf(fake.name[i], sizeof fake.name[i], "%s", name);
	snprintf(fake.text[i], sizeof fake.text[i], "%s", text);
	skv_mutex_unlock(&fake.lock);
	return SKV_OK;
}

int skv_cluster_doc_get(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err)
{
	size_t i;

	(void)c;
	skv_mutex_lock(&fake.lock);
	fake.gets += strncmp(name, "url/", 4) == 0; /* once per look */
	skv_cond_broadcast(&fake.got);
	i = find(name);
	if (i < 4)
		*out =
			(struct skv_doc){ .text = skv_arena_strndup(a, fake.text[i],
					      strlen(fake.text[i])) };
	skv_mutex_unlock(&fake.lock);
	return i < 4 ? SKV_OK : skv_fail(err, SKV_E_NOT_FOUND, NULL, "none");
}

int skv_cluster_doc_put(struct skv_cluster *c, const char *name, enum skv_put how, const char *text,
			struct skv_error *err)
{
	(void)how;
	return skv_cluster_doc_publish(c, name, text, err);
}

int skv_cluster_doc_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return skv_cluster_doc_retire(c, name, err);
}

int skv_cluster_doc_retire(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	(void)c;
	if (find(name) == 4)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "none");
	*fake.name[find(name)] = '\0';
	return SKV_OK;
}

int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	(void)c;
	(void)err;
	*out = skv_arena_calloc(a, 4, sizeof **out);
	*n = 0;
	for (size_t i = 0; i < 4; i++)
		if (*fake.name[i] && strncmp(fake.name[i], prefix, strlen(prefix)) == 0)
			(*out)[(*n)++] = (struct skv_doc){
				.name = skv_arena_strndup(a, fake.name[i], strlen(fake.name[i])),
				.text = skv_arena_strndup(a, fake.text[i], strlen(fake.text[i])),
			};
	return SKV_OK;
}

bool skv_owner_is_dead(const char *owner) { return strncmp(owner, "dead", 4) == 0; }

int skv_cluster_ready(struct skv_cluster *c, struct skv_error *err)
{
	(void)c;
	return skv_fail(err, SKV_E_NOT_OWNER, NULL, "standby");
}

static struct skv_service *service;

static struct skv_api no_api = { .name = "none", .prefix = "/" };

static int setup(void **state)
{
	struct skv_service_options o;
	struct skv_error err;
	struct skv_api *const apis[] = { &no_api };

	(void)state;
	memset(&fake, 0, sizeof fake);
	skv_mutex_init(&fake.lock);
	skv_cond_init(&fake.got);
	skv_service_options_init(&o);
	o.apis = apis;
	o.n_apis = 1;
	assert_int_equal(skv_service_create(&o, &service, &err), SKV_OK);
	assert_int_equal(skv_service_start(service, NULL, &err), SKV_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	skv_service_destroy(service);
	skv_cond_destroy(&fake.got);
	skv_mutex_destroy(&fake.lock);
	return 0;
}

static void lead(const char *owner) { snprintf(fake.leader, sizeof fake.leader, "%s", owner); }

/* How often the store was read, after a moment if it is as often as `before`. */
static unsigned looks(unsigned before)
{
	unsigned n;

	skv_mutex_lock(&fake.lock);
	if (fake.gets == before)
		skv_cond_wait_ms(&fake.got, &fake.lock, 10);
	n = fake.gets;
	skv_mutex_unlock(&fake.lock);
	return n;
}

/* Asks until it is not being looked up any more. */
static int ask(char url[SKV_URL_MAX])
{
	int rc = skv_service_owner_url(service, 0, url);

	for (unsigned i = 0, n = 0; i < 1000 && rc == SKV_E_NOT_READY; i++) {
		n = looks(n);
		rc = skv_service_owner_url(service, 0, url);
	}
	return rc;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_documents(void **state)
{
	struct skv_error err;
	struct skv_arena a;
	const char *text;

	(void)state;
	skv_arena_init(&a);
	skv_cluster_doc_publish(NULL, "url/dead1", "x", &err);
	skv_cluster_doc_publish(NULL, "url/alive", "y", &err);
	skv_cluster_doc_publish(NULL, "node/dead1", "z", &err);
	assert_int_equal(skv_node_publish(NULL, "url", "http://me:1", &err), SKV_OK);
	assert_int_equal(find("url/dead1"), 4);
	assert_int_equal(skv_node_text(NULL, "url", "me", &a, &text, &err), SKV_OK);
	assert_string_equal(text, "http://me:1");
	assert_int_equal(skv_node_text(NULL, "url", "alive", &a, &text, &err), SKV_OK);
	/* another kind */
	assert_int_equal(skv_node_text(NULL, "node", "dead1", &a, &text, &err), SKV_OK);
	skv_node_retire(NULL, "url");
	assert_int_equal(skv_node_text(NULL, "url", "me", &a, &text, &err), SKV_E_NOT_FOUND);
	skv_arena_destroy(&a);
}

static void test_leader(void **state)
{
	struct skv_error err;
	char url[SKV_URL_MAX];

	(void)state;
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_FOUND); /* nobody */
	lead("me");
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_FOUND);
	assert_int_equal(looks(1), 0);
	skv_cluster_doc_publish(NULL, "url/a", "http://a:1", &err);
	skv_cluster_doc_publish(NULL, "url/b", "http://b:1", &err);
	lead("a");
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
	assert_int_equal(ask(url), SKV_OK);
	assert_string_equal(url, "http://a:1");
	assert_int_equal(ask(url), SKV_OK);
	assert_int_equal(looks(0), 1); /* kept */
	lead("b");
	assert_int_equal(ask(url), SKV_OK);
	assert_string_equal(url, "http://b:1");
	snprintf(service->advertised, sizeof service->advertised, "http://b:1");
	/* b ends, and we have its port */
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
}

/* Each partition has its owner, who has another name in each, and publishes under one. */
static void test_owners_of_partitions(void **state)
{
	struct skv_error err;
	char url[SKV_URL_MAX], peer[SKV_URL_MAX], owner[SKV_OWNER_NAME];
	int rc;

	(void)state;
	skv_cluster_doc_publish(NULL, "url/h:1.aa", "http://a:1", &err);
	skv_cluster_doc_publish(NULL, "peer/h:1.aa", "http://a:2", &err);
	skv_cluster_doc_publish(NULL, "url/h:12.bb", "http://b:1", &err);
	skv_cluster_doc_publish(NULL, "peer/h:12.bb", "http://b:2", &err);
	lead("h:1.aa");
	fake.of[3] = "h:12.cc";
	fake.of[4] = "h:1.dd";
	fake.of[5] = "me";
	fake.of[6] = "h:3.ee";
	assert_int_equal(ask(url), SKV_OK);
	assert_string_equal(url, "http://a:1");
	for (uint32_t p = 3; p < 5; p++) {
		do
			rc = skv_service_peer(service, p, peer, owner);
		while (rc == SKV_E_NOT_READY);
		assert_int_equal(rc, SKV_OK);
		assert_string_equal(owner, fake.of[p]);
		assert_string_equal(peer, p == 3 ? "http://b:2" : "http://a:2");
		assert_int_equal(skv_service_owner_url(service, p, url), SKV_OK);
		assert_string_equal(url, p == 3 ? "http://b:1" : "http://a:1");
	}
	assert_int_equal(skv_service_peer(service, 5, peer, owner), SKV_E_NOT_FOUND);
	assert_int_equal(skv_service_peer(service, 6, peer, owner), SKV_E_NOT_READY);
}

static void test_leader_that_tells_late(void **state)
{
	struct skv_error err;
	char url[SKV_URL_MAX];

	(void)state;
	lead("a");
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
	looks(0);
	skv_cluster_doc_publish(NULL, "url/a", "http://a:1", &err);
	assert_int_equal(ask(url), SKV_OK);
}

/* All managers tell the address of what stands before them. Nobody is sent in a circle, and nobody
 * waits for ever: after the time that a hand-over of the port takes there is no such place. */
static void test_14_20_one_address_before_all_managers(void **state)
{
	struct skv_error err;
	char url[SKV_URL_MAX];

	(void)state;
	snprintf(service->advertised, sizeof service->advertised, "http://vip:1");
	skv_cluster_doc_publish(NULL, "url/a", "http://vip:1", &err);
	lead("a");
	for (unsigned n = 0; n == 0;) {
		assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
		n = looks(0);
	}
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
	skv_mutex_lock(&service->leader.lock);
	service->leader.of[0].since_ms -= 12000; /* so long ago */
	skv_mutex_unlock(&service->leader.lock);
	assert_int_equal(ask(url), SKV_E_NOT_FOUND);
	lead("b"); /* the next one begins anew */
	assert_int_equal(skv_service_owner_url(service, 0, url), SKV_E_NOT_READY);
	skv_cluster_doc_publish(NULL, "url/b", "http://b:1", &err);
	assert_int_equal(ask(url), SKV_OK);
}

/* A leader that never publishes, and one that publishes text that no header can carry. */
static void test_leader_without_address(void **state)
{
	struct skv_error err;
	char url[SKV_URL_MAX];

	(void)state;
	skv_cluster_doc_publish(NULL, "url/a", "http://a\r\nSet-Cookie: x", &err);
	lead("a");
	assert_int_equal(ask(url), SKV_E_NOT_FOUND);
	assert_true(looks(0) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_documents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owners_of_partitions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_that_tells_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_14_20_one_address_before_all_managers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_leader_without_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
