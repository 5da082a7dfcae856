/*
 * compat.c - the program in KVCM's mode. See compat.h.
 *
 * Owns the ports, the start-up messages, the endpoint and the parameters that the API's operations
 * need. The main thread creates, binds and closes; the thread that makes the default objects starts
 * the ports, makes the objects and publishes the endpoint. Neither changes anything while the other
 * reads it.
 */
#include "compat.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/hash.h>
#include <skv/kvcm_api.h>
#include <skv/kvcm_config.h>
#include <skv/kvcm_run.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/service.h>
#include <skv/store.h>

#include <kvcm/admin.pb-c.h>

#include "endpoint.h"
#include "main.h"
#include "ports.h"

#define ID_DIGITS 12

struct skv_compat {
	const struct skv_params *p;
	bool on;        /* compat = kvcm */
	bool in_memory; /* the store ends with the process, so the slab files must too */
	struct kvcm *kvcm; /* the API */
	struct skv_arena arena; /* of startup */
	struct kvcm_startup startup;
	struct kvcm_model model;
	char root[SKV_MAX_ROOT + 1]; /* storage_root */
	char private_id[ID_DIGITS + 2];
	char owner[192];
	struct skv_ports ports;
	struct skv_mutex lock; /* of the two below: ports start and stop on different threads */
	bool started;
	bool closing;
	KvcmAdmin__NodeEndpoint endpoint;
	char host[256];
	char node_id[320];
	char (*roots)[SKV_MAX_ROOT + 1]; /* of storages in memory, to be removed at exit */
	uint32_t n_roots;
};

static void set_model(struct skv_compat *c)
{
	const struct skv_params *p = c->p;
	uint8_t random[ID_DIGITS / 2];

	c->model = (struct kvcm_model){
		.storage_capacity = p->storage_capacity,
		.storage_file_size = p->storage_file_size,
		.storage_unit = p->storage_unit,
		.any_mount = p->kvcm_any_mount,
		.mounts = p->kvcm_mounts,
	};
	if (!c->in_memory)
		return;
	skv_random(random, sizeof random);
	c->private_id[0] = KVCM_PRIVATE_FIRST;
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(c->private_id + 1 + 2 * i, 3, "%02x", random[i]);
	assert(strlen(c->private_id) == ID_DIGITS + 1);
	skv_owner_name(c->owner);
	c->model.id = c->private_id;
	c->model.owner = c->owner;
}

static int load_startup(struct skv_compat *c, struct skv_error *err)
{
	struct kvcm_start_file f;
	struct kvcm_startup *s = &c->startup;
	int rc = skv_absolute_root(c->p, c->root, err);

	if (rc == SKV_OK && *c->p->kvcm_startup_config &&
	    skv_params_is_given(c->p, SKV_PARAM_storage_root))
		rc = skv_fail(err, SKV_E_INVALID, "storage_root",
			      "storage_root has no effect with kvcm_startup_config, whose storages "
			      "have a root_path each: leave one of them out");
	if (rc == SKV_OK)
		rc = kvcm_start_file_read(c->p->kvcm_startup_config, c->root, &c->arena, &f, err);
	if (rc != SKV_OK)
		return rc;
	s->storages = skv_arena_calloc(&c->arena, f.n_storages + 1, sizeof *s->storages);
	s->groups = skv_arena_calloc(&c->arena, f.n_groups + 1, sizeof *s->groups);
	if (!s->storages || !s->groups)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (; rc == SKV_OK && s->n_storages < f.n_storages; s->n_storages++)
		rc = kvcm_startup_storage(f.name, f.storages[s->n_storages].json,
					  f.storages[s->n_storages].enabled, &c->model, &c->arena,
					  &s->storages[s->n_storages], err);
	for (; rc == SKV_OK && s->n_groups < f.n_groups; s->n_groups++)
		rc = kvcm_startup_group(f.name, f.groups[s->n_groups], &c->arena,
					&s->groups[s->n_groups], err);
	return rc;
}

int skv_compat_create(const struct skv_params *p, struct skv_compat **out, struct skv_error *err)
{
	struct skv_compat *c = skv_calloc(1, sizeof *c);
	int rc;

	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	c->p = p;
	c->on = strcmp(p->compat, "kvcm") == 0;
	c->in_memory = strcmp(p->store, SKV_STORE_IN_MEMORY) == 0;
	skv_arena_init(&c->arena);
	skv_mutex_init(&c->lock);
	set_model(c);
	kvcm_admin__node_endpoint__init(&c->endpoint);
	rc = kvcm_mounts_check(p->kvcm_mounts, err);
	if (rc == SKV_OK)
		rc = kvcm_create(&(struct kvcm_options){
					 .model = &c->model,
					 .transfer_ms = (uint32_t)c->p->kvcm_transfer_ms,
					 .check_writes = c->p->kvcm_check_writes,
					 .own = &c->endpoint },
				 &c->kvcm, err);
	if (rc == SKV_OK && c->on)
		rc = load_startup(c, err);
	if (rc != SKV_OK) {
		skv_compat_destroy(c);
		return rc;
	}
	*out = c;
	return SKV_OK;
}

struct skv_api *skv_compat_api(const struct skv_compat *c) { return kvcm_api(c->kvcm); }

/* ---- ports ----------------------------------------------------------------------------------- */

/* Adds the parameter's tokens as an administrator would. */
static int give_tokens(struct skv_compat *c, struct skv_service *s, struct skv_error *err)
{
	const char *list[AUTH_GIVEN_MAX];
	char text[4096];
	char *save = NULL;
	size_t n = 0;

	snprintf(text, sizeof text, "%s", c->p->kvcm_admin_tokens);
	for (char *t = strtok_r(text, ", ", &save); t; t = strtok_r(NULL, ", ", &save)) {
		if (n == AUTH_GIVEN_MAX)
			return skv_fail(err, SKV_E_INVALID, "kvcm_admin_tokens",
					"kvcm_admin_tokens: at most %d tokens", AUTH_GIVEN_MAX);
		list[n++] = t;
	}
	assert(n <= AUTH_GIVEN_MAX);
	return n ? skv_auth_give(&s->auth, "default", list, n, err) : SKV_OK;
}

static void set_endpoint(struct skv_compat *c, uint16_t http_port, uint16_t grpc_port)
{
	const struct skv_params *p = c->p;
	KvcmAdmin__NodeEndpoint *e = &c->endpoint;
	const char *listen = c->on && *p->kvcm_listen ? p->kvcm_listen : p->http_listen;
	uint64_t random;

	skv_endpoint_host(p->advertise, listen, c->host, sizeof c->host);
	assert(c->host[0] != '\0');
	e->host = c->host;
	e->meta_rpc_port = c->on ? skv_ports_number(&c->ports, PORT_META_RPC) : grpc_port;
	e->meta_http_port = c->on ? skv_ports_number(&c->ports, PORT_META_HTTP) : http_port;
	e->admin_rpc_port = c->on ? skv_ports_number(&c->ports, PORT_ADMIN_RPC) : grpc_port;
	e->admin_http_port = c->on ? skv_ports_number(&c->ports, PORT_ADMIN_HTTP) : http_port;
	skv_random(&random, sizeof random);
	if (*p->kvcm_node_id)
		snprintf(c->node_id, sizeof c->node_id, "%s", p->kvcm_node_id);
	else
		snprintf(c->node_id, sizeof c->node_id, "%s:%d_%016" PRIx64, c->host,
			 e->admin_http_port, random);
	e->node_id = c->node_id;
}

int skv_compat_bind(struct skv_compat *c, struct skv_service *s, uint16_t http_port,
		    uint16_t grpc_port, struct skv_error *err)
{
	int rc = give_tokens(c, s, err);

	assert(!c->started && !c->closing);
	if (rc == SKV_OK && c->on)
		rc = skv_ports_bind(&c->ports, c->p, s, kvcm_api(c->kvcm), err);
	if (rc != SKV_OK)
		return rc;
	set_endpoint(c, http_port, grpc_port);
	if (c->on && c->p->kvcm_open && !*c->p->kvcm_admin_tokens && !*c->p->tokens_file)
		skv_log(SKV_LOG_WARN, "main",
			"the kvcm ports are open on %s without tokens: whoever reaches them may "
			"do everything (kvcm_admin_tokens, kvcm_open)",
			*c->p->kvcm_listen ? c->p->kvcm_listen : c->p->http_listen);
	return SKV_OK;
}

int skv_compat_start(struct skv_compat *c, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&c->lock);
	if (c->on && !c->started && !c->closing) {
		c->started = true;
		rc = skv_ports_start(&c->ports, c->p, err);
	}
	skv_mutex_unlock(&c->lock);
	return rc;
}

/* ---- objects --------------------------------------------------------------------------------- */

bool skv_compat_has_objects(const struct skv_compat *c) { return c->on; }

int skv_compat_place(const struct skv_compat *c, char root[SKV_MAX_ROOT + 1], struct skv_error *err)
{
	const size_t n = strlen(root);

	if (!c->in_memory)
		return SKV_OK;
	if (n + 1 + strlen(c->private_id) > SKV_MAX_ROOT)
		return skv_fail(err, SKV_E_INVALID, "storage_root",
				"the path of storage_root is over %u characters", SKV_MAX_ROOT);
	snprintf(root + n, SKV_MAX_ROOT + 1 - n, ".%s", c->private_id);
	assert(strlen(root) <= SKV_MAX_ROOT);
	return kvcm_private_mark(root, c->private_id, c->owner, err);
}

/* The storage of an earlier start stays where it is. */
static void warn_of_other_root(const struct skv_compat *c, struct skv_cluster *cluster)
{
	const size_t n = strlen(c->root);
	struct skv_storage_view *v;
	struct skv_error ignored;
	struct skv_arena a;

	skv_arena_init(&a);
	if (skv_params_is_given(c->p, SKV_PARAM_storage_root) && c->startup.n_storages == 1 &&
	    skv_cluster_storage(cluster, c->startup.storages[0].name, &a, &v, &ignored) ==
		    SKV_OK &&
	    (strncmp(v[0].spec.root, c->root, n) != 0 || v[0].spec.root[n] != '/'))
		skv_log(SKV_LOG_WARN, "main",
			"storage_root is %s, but the storage '%s' of this store lies in %s and "
			"stays there",
			c->root, v[0].spec.name, v[0].spec.root);
	skv_arena_destroy(&a);
}

int skv_compat_make(struct skv_compat *c, struct skv_cluster *cluster, struct skv_error *err)
{
	int rc = kvcm_startup_make(&c->startup, &c->model, cluster, err);

	if (rc == SKV_OK)
		warn_of_other_root(c, cluster);
	return rc;
}

int skv_compat_publish(struct skv_compat *c, struct skv_cluster *cluster, struct skv_error *err)
{
	return kvcm_node_publish(cluster, &c->endpoint, err);
}

/* ---- shutdown -------------------------------------------------------------------------------- */

/* Directories of no further use; removed when the core has released them. */
static void remember_roots(struct skv_compat *c, struct skv_cluster *cluster)
{
	struct skv_storage_view *v;
	struct skv_arena a;
	struct skv_error ignored;
	uint32_t n;

	assert(c->in_memory && c->n_roots == 0);
	skv_arena_init(&a);
	if (skv_cluster_every_storage(cluster, "", &a, &v, &n, &ignored) == SKV_OK)
		c->roots = skv_calloc(n + 1, sizeof *c->roots);
	for (uint32_t i = 0; c->roots && i < n; i++) {
		const char *dot = strrchr(v[i].spec.root, '.');

		if (dot && strcmp(dot + 1, c->private_id) == 0)
			snprintf(c->roots[c->n_roots++], SKV_MAX_ROOT + 1, "%s", v[i].spec.root);
	}
	skv_arena_destroy(&a);
}

void skv_compat_retire(struct skv_compat *c, struct skv_cluster *cluster)
{
	kvcm_node_retire(cluster);
	if (c->in_memory)
		remember_roots(c, cluster);
}

uint32_t skv_compat_drain(struct skv_compat *c, uint32_t timeout_ms)
{
	bool started;

	skv_mutex_lock(&c->lock);
	c->closing = true;
	started = c->started;
	skv_mutex_unlock(&c->lock);
	return started ? skv_ports_drain(&c->ports, c->p, timeout_ms) : 0;
}

bool skv_compat_quiet(struct skv_compat *c, uint32_t timeout_ms)
{
	assert(c->closing);
	return !c->started || skv_ports_quiet(&c->ports, timeout_ms); /* `closing` has settled it */
}

void skv_compat_close(struct skv_compat *c)
{
	skv_ports_close(&c->ports);
}

void skv_compat_destroy(struct skv_compat *c)
{
	if (!c)
		return;
	skv_ports_close(&c->ports);
	for (uint32_t i = 0; i < c->n_roots; i++)
		kvcm_private_remove(c->roots[i], c->private_id);
	skv_free(c->roots);
	kvcm_destroy(c->kvcm);
	skv_mutex_destroy(&c->lock);
	skv_arena_destroy(&c->arena);
	skv_free(c);
}
