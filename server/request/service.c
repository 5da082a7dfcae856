/*
 * service.c - the service shared by all transports: creation, shutdown, readiness.
 *
 * Any thread; atomics only, the parts have their own locks.
 */
#include <skv/service.h>

#include <assert.h>

#include <skv/core.h>
#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>

void skv_service_options_init(struct skv_service_options *o)
{
	*o = (struct skv_service_options){
		.tokens_file = "",
		.audit_file = "",
		.token_failures = 20,
		.body_max = SKV_MAX_BODY,
		.body_total_max = 16ull * SKV_MAX_BODY,
		.body_reserve_percent = 25,
		.body_tenant_percent = 50,
		.body_address_percent = 25,
		.answer_max = 128u << 20,
		.pace = { 64u * 1024, 5000 },
		.slow_ms = 200,
	};
}

/* Numbers begin with 1: 0 is what has no route. */
static unsigned number_operations(struct skv_service *s)
{
	unsigned n = METRIC_OP_NONE + 1;

	for (size_t i = 0; i < s->o.n_apis; i++) {
		assert(s->n_apis < SKV_APIS_MAX);
		s->o.apis[i]->first_op = n;
		n += (unsigned)s->o.apis[i]->n_routes;
		s->apis[s->n_apis++] = s->o.apis[i];
	}
	return n;
}

void skv_service_change(struct skv_service *s, const struct skv_service_options *o)
{
	atomic_store(&s->slow_ms, o->slow_ms);
	atomic_store(&s->metrics_open, o->metrics_open);
}

int skv_service_create(const struct skv_service_options *o, struct skv_service **out,
		       struct skv_error *err)
{
	struct skv_service *s = skv_calloc(1, sizeof *s);
	int rc;

	assert(o->n_apis > 0 && o->n_apis <= SKV_APIS_MAX);
	if (!s)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	s->o = *o;
	skv_service_change(s, o);
	skv_random(&s->id_prefix, sizeof s->id_prefix);
	atomic_init(&s->holding, o->hold_ready ? HOLDING : HOLDING_NOT);
	rc = skv_metrics_init(&s->metrics, number_operations(s), err);
	if (rc == SKV_OK)
		rc = skv_auth_init(&s->auth, o->tokens_file, err);
	if (rc == SKV_OK) {
		rc = skv_audit_open(&s->audit, o->audit_file, err);
		if (rc != SKV_OK)
			skv_auth_destroy(&s->auth);
	}
	s->o.tokens_file = s->o.audit_file = NULL; /* each keeps its own */
	s->o.apis = NULL;
	if (rc != SKV_OK) {
		skv_metrics_destroy(&s->metrics);
		skv_free(s);
		return rc;
	}
	skv_guard_init(&s->guard, o->token_failures);
	skv_tenants_init(&s->tenants);
	skv_mutex_init(&s->leader.lock);
	for (unsigned i = 0; i < SKV_MAX_PARTITIONS; i++)
		s->leader.of[i].service = s;
	skv_holds_init(&s->holds, &(struct skv_hold_options){
					  o->body_total_max, o->body_max, o->body_reserve_percent,
					  o->body_tenant_percent, o->body_address_percent });
	*out = s;
	return SKV_OK;
}

bool skv_service_connect(struct skv_service *s)
{
	const uint32_t most = s->o.connections_max;

	if (atomic_fetch_add(&s->connections, 1) < most || !most)
		return true;
	skv_service_disconnect(s);
	if (!atomic_exchange(&s->connections_told, true))
		skv_log(SKV_LOG_WARN, "main",
			"connections open: %u, and the other descriptors are kept for the store "
			"and the storages: more are refused (raise 'ulimit -n')",
			(unsigned)most);
	return false;
}

void skv_service_disconnect(struct skv_service *s)
{
	const unsigned before = atomic_fetch_sub(&s->connections, 1);

	assert(before > 0);
}

static bool calls_wait(const struct skv_service *s)
{
	bool any = s->o.hold_ms > 0;

	for (size_t i = 0; i < s->n_apis; i++)
		any |= s->apis[i]->patience != NULL;
	return any;
}

int skv_service_start(struct skv_service *s, struct skv_cluster *cluster, struct skv_error *err)
{
	int rc;

	assert(!s->started);
	s->cluster = cluster;
	rc = skv_workers_start(&s->workers, WORKERS_QUEUE, err);
	if (rc != SKV_OK)
		return rc;
	rc = skv_workers_start(&s->lookers, LOOKERS_QUEUE, err);
	if (rc != SKV_OK)
		skv_workers_stop(&s->workers);
	if (rc == SKV_OK && cluster && calls_wait(s))
		rc = skv_pause_start(&s->pause, err);
	if (rc == SKV_OK && cluster && s->o.forward)
		rc = skv_forward_start(&s->forward, err);
	s->started = rc == SKV_OK;
	if (rc == SKV_OK)
		rc = skv_tokens_start(&s->tokens, &s->auth, &s->tenants, cluster, err);
	return rc;
}

void skv_service_destroy(struct skv_service *s)
{
	if (!s)
		return;
	skv_forward_stop(&s->forward); /* forwarded calls may pause after they return */
	skv_pause_stop(&s->pause);
	if (s->started) {
		skv_tokens_stop(&s->tokens);
		skv_workers_stop(&s->lookers);
		skv_workers_stop(&s->workers);
	}
	skv_inherit_drop(&s->inherited);
	skv_holds_destroy(&s->holds);
	skv_mutex_destroy(&s->leader.lock);
	skv_audit_close(&s->audit);
	skv_tenants_destroy(&s->tenants);
	skv_guard_destroy(&s->guard);
	skv_auth_destroy(&s->auth);
	skv_metrics_destroy(&s->metrics);
	skv_free(s);
}

int skv_service_reload(struct skv_service *s, struct skv_error *err)
{
	struct skv_error second;
	int rc = skv_auth_reload(&s->auth, err);

	if (skv_audit_reopen(&s->audit, &second) != SKV_OK && rc == SKV_OK) {
		*err = second;
		rc = second.status;
	}
	skv_audit_act(&s->audit, "reload", "", rc == SKV_OK ? "ok" : skv_status_name(rc));
	return rc;
}

void skv_service_hold_calls(struct skv_service *s)
{
	assert(atomic_load(&s->holding) != HOLDING_NOT);
	atomic_store(&s->holding, HOLDING_CALLS);
}

void skv_service_release_ready(struct skv_service *s) { atomic_store(&s->holding, HOLDING_NOT); }

static int not_yet(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOT_READY, NULL, "the default objects do not exist yet: retry");
}

int skv_service_begun(struct skv_service *s, struct skv_error *err)
{
	switch (atomic_load_explicit(&s->holding, memory_order_relaxed)) {
	case HOLDING_NOT:
		return SKV_OK;
	case HOLDING:
		return skv_cluster_has_storages(s->cluster) ? SKV_OK : not_yet(err);
	default:
		return not_yet(err);
	}
}

int skv_service_ready(struct skv_service *s, struct skv_error *err)
{
	int rc = skv_cluster_ready(s->cluster, err);

	return rc == SKV_OK && atomic_load(&s->holding) != HOLDING_NOT ? not_yet(err) : rc;
}
