/*
 * test_members.c - the managers of a store that are there: renewed documents, those that stand
 * still, those of earlier versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/core.h>
#include <skv/mem.h>
#include <skv/members.h>
#include <skv/nodes.h>
#include <skv/service.h>
#include <skv/store.h>

#define DOCS 8u
#define LEASE_MS 60u

/* ---- a core that has documents --------------------------------------------------------------- */

static struct {
	struct skv_mutex lock;
	struct skv_cond changed;
	struct {
		char name[64], text[64];
		uint64_t version;
	} doc[DOCS];
	unsigned lists; /* of members */
	bool draining;
	int fails;
} fake;

void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	(void)c;
	snprintf(self, SKV_OWNER_NAME, "me");
	*leader = '\0';
	*remaining_ms = 0;
}

bool skv_cluster_draining(const struct skv_cluster *c)
{
	bool on;

	(void)c;
	skv_mutex_lock(&fake.lock);
	on = fake.draining;
	skv_mutex_unlock(&fake.lock);
	return on;
}

uint32_t skv_cluster_partitions(const struct skv_cluster *c)
{
	(void)c;
	return 5;
}

void skv_cluster_partition_get(struct skv_cluster *c, uint32_t number,
			       struct skv_partition_view *out)
{
	(void)c;
	*out = (struct skv_partition_view){ .takes = number == 1 || number == 4 };
}

bool skv_owner_is_dead(const char *owner) { return strncmp(owner, "dead", 4) == 0; }

static unsigned at_locked(const char *name)
{
	unsigned i = 0;

	while (i < DOCS && strcmp(fake.doc[i].name, name) != 0)
		i++;
	return i;
}

int skv_cluster_doc_publish(struct skv_cluster *c, const char *name, const char *text,
			    struct skv_error *err)
{
	unsigned i;
	int rc;

	(void)c;
	skv_mutex_lock(&fake.lock);
	i = at_locked(name) < DOCS ? at_locked(name) : at_locked("");
	assert_true(i < DOCS);
	rc = fake.fails;
	if (rc == SKV_OK) {
		snprintf(fake.doc[i].name, sizeof fake.doc[i].name, "%s", name);
		snprintf(fake.doc[i].text, sizeof fake.doc[i].text, "%s", text);
		fake.doc[i].version++;
	}
	skv_mutex_unlock(&fake.lock);
	return rc == SKV_OK ? rc : skv_fail(err, rc, NULL, "the store is gone");
}

int skv_cluster_doc_put(struct skv_cluster *c, const char *name, enum skv_put how, const char *text,
			struct skv_error *err)
{
	assert_int_equal(how, SKV_PUT_ANY);
	return skv_cluster_doc_publish(c, name, text, err);
}

int skv_cluster_doc_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return skv_cluster_doc_retire(c, name, err);
}

int skv_cluster_doc_retire(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	unsigned i;

	(void)c;
	skv_mutex_lock(&fake.lock);
	i = at_locked(name);
	if (i < DOCS)
		memset(&fake.doc[i], 0, sizeof fake.doc[i]);
	skv_mutex_unlock(&fake.lock);
	return i < DOCS ? SKV_OK : skv_fail(err, SKV_E_NOT_FOUND, NULL, "none");
}

int skv_cluster_doc_get(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err)
{
	(void)c;
	(void)name;
	(void)a;
	(void)out;
	return skv_fail(err, SKV_E_NOT_FOUND, NULL, "none");
}

int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	(void)c;
	(void)err;
	*out = skv_arena_calloc(a, DOCS, sizeof **out);
	*n = 0;
	skv_mutex_lock(&fake.lock);
	for (unsigned i = 0; i < DOCS; i++)
		if (*fake.doc[i].name && strncmp(fake.doc[i].name, prefix, strlen(prefix)) == 0)
			(*out)[(*n)++] = (struct skv_doc){
				.name = skv_arena_strndup(a, fake.doc[i].name,
							  strlen(fake.doc[i].name)),
				.text = skv_arena_strndup(a, fake.doc[i].text,
							  strlen(fake.doc[i].text)),
				.version = fake.doc[i].version,
			};
	fake.lists += strncmp(prefix, "member", 6) == 0;
	skv_cond_broadcast(&fake.changed);
	skv_mutex_unlock(&fake.lock);
	return SKV_OK;
}

static struct skv_service service;

static int setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof fake);
	memset(&service, 0, sizeof service);
	skv_mutex_init(&fake.lock);
	skv_cond_init(&fake.changed);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	skv_members_stop(&service.members);
	skv_cond_destroy(&fake.changed);
	skv_mutex_destroy(&fake.lock);
	return 0;
}

static void publish(const char *name, const char *text)
{
	struct skv_error err;

	assert_int_equal(skv_cluster_doc_publish(NULL, name, text, &err), SKV_OK);
}

static void start(void)
{
	struct skv_error err;

	service.cluster = (struct skv_cluster *)&fake;
	assert_int_equal(
		skv_members_start(&service.members, service.cluster, "http://me:1", LEASE_MS, &err),
		SKV_OK);
}

/* The thread has begun to look `n` times more. */
static void await_looks(unsigned n)
{
	skv_mutex_lock(&fake.lock);
	n += fake.lists;
	while (fake.lists < n)
		skv_cond_wait(&fake.changed, &fake.lock);
	skv_mutex_unlock(&fake.lock);
}

/* "a*b": the members in order of their documents, with a star after one that drains. */
static void names(char out[64])
{
	struct skv_member *v;
	struct skv_error err;
	struct skv_arena a;
	uint32_t n;

	skv_arena_init(&a);
	assert_int_equal(skv_members_list(&service, &a, &v, &n, &err), SKV_OK);
	*out = '\0';
	for (uint32_t i = 0; i < n; i++)
		snprintf(out + strlen(out), 64 - strlen(out), "%s%s ", v[i].name,
			 v[i].draining ? "*" : "");
	skv_arena_destroy(&a);
}

static void await_names(const char *expected)
{
	char now[64];

	for (names(now); strcmp(now, expected) != 0; names(now))
		await_looks(1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool is_there(struct skv_members *m, const char *name)
{
	struct skv_member_seen *v;
	bool found = false;
	uint32_t n;

	assert_int_equal(skv_members_seen(m, &v, &n), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		found |= strcmp(v[i].id, name) == 0;
	skv_free(v);
	return found;
}

/* A lease runs from when the newest version was seen, to looks that saw no other. */
static void silent_for_its_lease(void **state)
{
	const struct skv_homes homes = { { "" } };
	struct skv_members *m = &service.members;
	struct skv_doc docs[3] = { { .name = "a", .text = "100 up", .version = 7 },
				   { .name = "b", .text = "300 up", .version = 1 },
				   { .name = "c", .text = "who knows", .version = 1 } };

	(void)state;
	skv_mutex_init(&m->lock);
	m->lease_ms = 200;
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1000), SKV_OK);
	assert_true(is_there(m, "a"));
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1099), SKV_OK);
	assert_true(is_there(m, "a"));
	assert_true(is_there(m, "c"));
	docs[0].version++;
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1150), SKV_OK);
	assert_true(is_there(m, "a"));
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1249), SKV_OK);
	assert_true(is_there(m, "a"));
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1250), SKV_OK);
	assert_false(is_there(m, "a"));
	assert_true(is_there(m, "b"));
	assert_false(is_there(m, "c")); /* our lease, since it says none */
	/* gone, and there again with the same version */
	assert_int_equal(skv_members_look(m, docs + 1, 2, &homes, 1260), SKV_OK);
	assert_false(is_there(m, "a"));
	assert_int_equal(skv_members_look(m, docs, 3, &homes, 1300), SKV_OK);
	assert_true(is_there(m, "a"));
	assert_false(is_there(m, "b"));
	skv_free(m->seen);
	skv_mutex_destroy(&m->lock);
	memset(m, 0, sizeof *m);
}

/* When it is seen to take part, or not. */
static struct skv_member_seen await_seen(const char *id, bool up)
{
	for (;; await_looks(1)) {
		struct skv_member_seen *v, found = { .since_ms = 0 };
		uint32_t n;

		assert_int_equal(skv_members_seen(&service.members, &v, &n), SKV_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_not_equal(strncmp(v[i].id, "dead", 4), 0);
			if (strcmp(v[i].id, id) == 0)
				found = v[i];
		}
		skv_free(v);
		if (found.since_ms && found.draining != up)
			return found;
	}
}

static void those_that_are_there(void **state)
{
	struct skv_member_seen at;

	(void)state;
	publish("peer/me", "http://me:1");
	publish("peer/moves", "http://moves:1");
	publish("url/moves", "http://moves.example:1");
	publish("peer/old", "http://old:1");
	publish("peer/dead1", "http://dead:1");
	publish("member/moves", "50 up");
	publish("member/dead1", "3600000 up ff");
	start();
	/* a member stands still; one without a document counts, a dead one does not */
	await_names("me old ");
	publish("member/moves", "3600000 drained");
	await_names("me moves* old ");
	at = await_seen("moves", false);
	assert_true(at.draining && at.takes == 0);
	publish("member/moves", "3600000 up 1f later");
	at = await_seen("moves", true);
	assert_true(!at.draining && at.takes == 0x1f);
	at = await_seen("me", true);
	assert_true(!at.draining && at.takes == 0x12);
	skv_members_leave(&service.members);
	at = await_seen("me", false);
	assert_true(at.draining);
	await_names("me* moves old ");
	publish("member/moves", "3600000 drained");
	skv_mutex_lock(&fake.lock);
	fake.draining = true;
	skv_mutex_unlock(&fake.lock);
	await_names("me* moves* old ");
}

static void addresses(void **state)
{
	struct skv_member *v;
	struct skv_error err;
	struct skv_arena a;
	uint32_t n;

	(void)state;
	publish("peer/x", "http://x:1");
	publish("url/x", "http://x.example:1");
	publish("peer/y", "http://y:1");
	skv_arena_init(&a);
	assert_int_equal(skv_members_list(&service, &a, &v, &n, &err), SKV_OK); /* not started */
	assert_int_equal(n, 2);
	assert_string_equal(v[0].peer, "http://x:1");
	assert_string_equal(v[0].url, "http://x.example:1");
	assert_string_equal(v[1].peer, "http://y:1");
	assert_string_equal(v[1].url, "");
	skv_arena_destroy(&a);
}

/* The member's own document moves, is written again after the store was gone, and goes at the
 * end. */
static void renewed_until_the_end(void **state)
{
	struct skv_error err;
	uint64_t version;
	unsigned at;

	(void)state;
	start();
	await_looks(4); /* two of each beat */
	skv_mutex_lock(&fake.lock);
	version = fake.doc[at_locked("member/me")].version;
	fake.fails = SKV_E_STORE_IO;
	skv_mutex_unlock(&fake.lock);
	assert_true(version >= 2);
	assert_int_equal(skv_cluster_doc_retire(NULL, "member/me", &err), SKV_OK);
	skv_mutex_lock(&fake.lock);
	fake.fails = SKV_OK;
	skv_mutex_unlock(&fake.lock);
	await_looks(2);
	skv_mutex_lock(&fake.lock);
	at = at_locked("member/me");
	skv_mutex_unlock(&fake.lock);
	assert_true(at < DOCS);
	skv_members_stop(&service.members);
	assert_int_equal(at_locked("member/me"), DOCS);
	skv_members_stop(&service.members); /* harmless */
}

/* Where partition 3 was moved to is known to one member by its address: alone, and not drained. */
static void homes(void **state)
{
	struct skv_member_seen *v;
	struct skv_homes of;
	struct skv_error err;
	uint32_t n, at;

	(void)state;
	publish("member/old", "3600000 up 1f");
	publish("member/far", "3600000 up 1f http://far:1");
	publish("home/99", "http://far:1"); /* of a store with more */
	start();
	assert_int_equal(skv_home_put(service.cluster, 3, "http://far:1", &err), SKV_OK);
	for (unsigned i = 0; i < 5; i++) {
		static const char *const others[] = { "3600000 up 1f http://else:1",
						      "3600000 up 1f http://far:1",
						      "3600000 drained 1f http://far:1" };

		if (i > 0 && i < 4)
			publish("member/twin", others[i - 1]);
		if (i == 4)
			publish("member/far", others[2]);
		await_looks(5); /* two of each beat, and the last one is done */
		assert_int_equal(skv_members_seen(&service.members, &v, &n), SKV_OK);
		at = skv_members_home(&service.members, 3, v, n);
		if (i == 2 || i == 4)
			assert_int_equal(at, UINT32_MAX);
		else
			assert_true(at < n && strcmp(v[at].id, "far") == 0);
		assert_int_equal(skv_members_home(&service.members, 2, v, n), UINT32_MAX);
		skv_free(v);
	}
	assert_int_equal(skv_homes_read(service.cluster, &of, &err), SKV_OK);
	assert_string_equal(of.peer[3], "http://far:1");
	for (unsigned i = 0; i < 2; i++) /* the second time is harmless */
		assert_int_equal(skv_home_put(service.cluster, 3, "", &err), SKV_OK);
	assert_int_equal(skv_homes_read(service.cluster, &of, &err), SKV_OK);
	assert_string_equal(of.peer[3], "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(silent_for_its_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_are_there, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(homes, setup, teardown),
		cmocka_unit_test_setup_teardown(renewed_until_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
