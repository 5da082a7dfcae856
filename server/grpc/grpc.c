/*
 * grpc.c - life of the gRPC front: options, port, threads, drain, end.
 *
 * Owns everything in struct kvb_grpc; shares struct kvb_service with other fronts. Called by one thread
 * of main. It never calls the core itself: the operations do.
 */
#include "internal.h"

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <kvb/clock.h>
#include <kvb/mem.h>

void kvb_grpc_options_init(struct kvb_grpc_options *o)
{
	*o = (struct kvb_grpc_options){
		.listen = "127.0.0.1",
		.port = 7334,
		.host_param = "grpc_listen",
		.port_param = "grpc_port",
		.port_option = "--grpc-port",
		.socket_name = "grpc",
		.max_connections = 4096,
		.max_streams = 1024,
		.idle_timeout_ms = 60000,
	};
}

static uint32_t thread_count(uint32_t wanted)
{
	long n = wanted ? (long)wanted : sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > LOOPS_MAX ? LOOPS_MAX : (uint32_t)n;
}

static void release(struct kvb_grpc *g)
{
	if (g->bound.fd >= 0)
		close(g->bound.fd);
	if (g->callbacks)
		nghttp2_session_callbacks_del(g->callbacks);
	if (g->option)
		nghttp2_option_del(g->option);
	kvb_free(g->methods);
	kvb_free((char *)g->o.listen);
	kvb_free(g);
}

int kvb_grpc_create(const struct kvb_grpc_options *o, struct kvb_service *s, struct kvb_grpc **out,
		    struct kvb_error *err)
{
	const struct kvb_listen l = { o->listen, o->port, o->host_param, o->port_param, o->port_option,
				      o->socket_name, &s->inherited };
	struct kvb_grpc *g = kvb_calloc(1, sizeof *g);
	int rc;

	if (!g)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	g->o = *o;
	g->s = s;
	g->bound.fd = -1;
	g->n_loops = thread_count(o->threads);
	g->o.listen = kvb_strdup(o->listen);
	rc = g->o.listen ? kvb_grpc_methods_init(g, err) : kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	if (rc == KVB_OK)
		rc = kvb_grpc_h2_init(g, err);
	if (rc == KVB_OK)
		rc = kvb_listen(&l, o->open || s->auth.path, &g->bound, err);
	if (rc != KVB_OK) {
		g->bound.fd = -1;
		release(g);
		return rc;
	}
	*out = g;
	return KVB_OK;
}

int kvb_grpc_start(struct kvb_grpc *g, struct kvb_error *err)
{
	assert(!g->loops && g->s->core);
	return kvb_grpc_loops_start(g, err);
}

uint16_t kvb_grpc_port(const struct kvb_grpc *g) { return g->bound.port; }

const char *kvb_grpc_address(const struct kvb_grpc *g) { return g->bound.text; }

/* Looks every few milliseconds: it happens once in a process's life, and whoever ends a call must not have
 * to touch the front afterwards. */
static uint64_t await_zero(const struct kvb_grpc *g, enum gauge which, uint32_t timeout_ms)
{
	uint64_t end = kvb_now_ms(&kvb_clock_system) + timeout_ms;

	while (kvb_gauge_get(&g->s->metrics, which) > 0 && kvb_now_ms(&kvb_clock_system) < end)
		poll(NULL, 0, 5);
	return kvb_gauge_get(&g->s->metrics, which);
}

uint32_t kvb_grpc_drain(struct kvb_grpc *g, uint32_t timeout_ms)
{
	if (!g->loops)
		return 0;
	if (!atomic_exchange(&g->draining, true))
		for (uint32_t i = 0; i < g->n_loops; i++)
			kvb_grpc_loop_wake(&g->loops[i]);
	return (uint32_t)await_zero(g, GAUGE_grpc_in_flight, timeout_ms);
}

bool kvb_grpc_quiet(struct kvb_grpc *g, uint32_t timeout_ms)
{
	return await_zero(g, GAUGE_grpc_parked, timeout_ms) == 0;
}

void kvb_grpc_destroy(struct kvb_grpc *g)
{
	if (!g)
		return;
	if (g->loops) {
		kvb_grpc_drain(g, 0);
		assert(kvb_gauge_get(&g->s->metrics, GAUGE_grpc_parked) == 0);
		kvb_grpc_loops_stop(g);
	}
	release(g);
}
