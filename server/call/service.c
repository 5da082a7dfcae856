/*
 * service.c - what all fronts of one manager share: its beginning and end, readiness, held bytes.
 *
 * Any thread; atomics only, the parts have their own locks.
 */
#include <kvb/service.h>

#include <assert.h>

#include <kvb/core.h>
#include <kvb/hash.h>
#include <kvb/mem.h>

void kvb_service_options_init(struct kvb_service_options *o)
{
	*o = (struct kvb_service_options){
		.tokens_file = "",
		.body_max = KVB_MAX_BODY,
		.body_total_max = 16ull * KVB_MAX_BODY,
		.slow_ms = 200,
	};
}

/* Numbers begin with 1: 0 is what has no route. */
static unsigned number_operations(struct kvb_service *s)
{
	unsigned n = METRIC_OP_NONE + 1;

	for (size_t i = 0; i < s->o.n_apis; i++) {
		s->o.apis[i]->first_op = n;
		n += (unsigned)s->o.apis[i]->n_routes;
		s->apis[s->n_apis++] = s->o.apis[i];
	}
	return n;
}

int kvb_service_create(const struct kvb_service_options *o, struct kvb_service **out, struct kvb_error *err)
{
	struct kvb_service *s = kvb_calloc(1, sizeof *s);
	int rc;

	assert(o->n_apis > 0 && o->n_apis <= KVB_APIS_MAX);
	if (!s)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	s->o = *o;
	kvb_random(&s->id_prefix, sizeof s->id_prefix);
	atomic_init(&s->holding, o->hold_ready);
	rc = kvb_metrics_init(&s->metrics, number_operations(s), err);
	if (rc == KVB_OK)
		rc = kvb_auth_init(&s->auth, o->tokens_file, err);
	s->o.tokens_file = NULL; /* auth keeps its own */
	s->o.apis = NULL;
	if (rc != KVB_OK) {
		kvb_metrics_destroy(&s->metrics);
		kvb_free(s);
		return rc;
	}
	kvb_mutex_init(&s->leader.lock);
	*out = s;
	return KVB_OK;
}

int kvb_service_start(struct kvb_service *s, struct kvb_core *core, struct kvb_error *err)
{
	int rc;

	assert(!s->started);
	s->core = core;
	rc = kvb_workers_start(&s->workers, err);
	s->started = rc == KVB_OK;
	return rc;
}

void kvb_service_destroy(struct kvb_service *s)
{
	if (!s)
		return;
	if (s->started)
		kvb_workers_stop(&s->workers);
	kvb_inherit_drop(&s->inherited);
	kvb_mutex_destroy(&s->leader.lock);
	kvb_auth_destroy(&s->auth);
	kvb_metrics_destroy(&s->metrics);
	kvb_free(s);
}

int kvb_service_reload(struct kvb_service *s, struct kvb_error *err) { return kvb_auth_reload(&s->auth, err); }

void kvb_service_release_ready(struct kvb_service *s) { atomic_store(&s->holding, false); }

int kvb_service_ready(struct kvb_service *s, struct kvb_error *err)
{
	int rc = kvb_core_ready(s->core, err);

	if (rc == KVB_OK && atomic_load(&s->holding))
		rc = kvb_fail(err, KVB_E_NOT_READY, NULL, "the default objects are not made yet");
	return rc;
}

bool kvb_service_hold(struct kvb_service *s, uint64_t n)
{
	if (atomic_fetch_add(&s->body_held, n) + n <= s->o.body_total_max)
		return true;
	atomic_fetch_sub(&s->body_held, n);
	return false;
}

void kvb_service_let_go(struct kvb_service *s, uint64_t n) { atomic_fetch_sub(&s->body_held, n); }
