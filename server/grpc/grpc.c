/*
 * grpc.c - life cycle of the gRPC server: options, port, threads, drain, shutdown.
 *
 * Owns everything in struct skv_grpc; shares struct skv_service with other transports. Called by
 * one thread of main. It never calls the core itself: the operations do.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <skv/mem.h>

void skv_grpc_options_init(struct skv_port_options *o)
{
	*o = (struct skv_port_options){
		.listen = "127.0.0.1",
		.port = 7334,
		.host_param = "http_listen",
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

static void release(struct skv_grpc *g)
{
	if (g->bound.fd >= 0)
		close(g->bound.fd);
	if (g->callbacks)
		nghttp2_session_callbacks_del(g->callbacks);
	if (g->option)
		nghttp2_option_del(g->option);
	skv_peers_destroy(&g->peers);
	skv_free(g->methods);
	skv_free((char *)g->o.listen);
	skv_free(g);
}

int skv_grpc_create(const struct skv_port_options *o, struct skv_service *s, struct skv_grpc **out,
		    struct skv_error *err)
{
	const struct skv_listen l = { o->listen,      o->port,        o->host_param, o->port_param,
				      o->port_option, o->socket_name, &s->inherited };
	struct skv_grpc *g = skv_calloc(1, sizeof *g);
	int rc;

	if (!g)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	g->o = *o;
	g->s = s;
	g->bound.fd = -1;
	g->n_loops = thread_count(o->threads);
	skv_peers_init(&g->peers, o->max_connections_per_ip);
	g->o.listen = skv_strdup(o->listen);
	rc = g->o.listen ? skv_grpc_methods_init(g, err)
			 : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = skv_grpc_h2_init(g, err);
	if (rc == SKV_OK)
		rc = skv_listen(&l, o->open || s->auth.path, &g->bound, err);
	if (rc != SKV_OK) {
		g->bound.fd = -1;
		release(g);
		return rc;
	}
	*out = g;
	return SKV_OK;
}

int skv_grpc_start(struct skv_grpc *g, struct skv_error *err)
{
	assert(!g->loops && g->s->cluster);
	return skv_grpc_loops_start(g, err);
}

uint16_t skv_grpc_port(const struct skv_grpc *g) { return g->bound.port; }

const char *skv_grpc_address(const struct skv_grpc *g) { return g->bound.text; }

uint32_t skv_grpc_drain(struct skv_grpc *g, uint32_t timeout_ms)
{
	if (!g->loops)
		return 0;
	if (!atomic_exchange(&g->draining, true))
		for (uint32_t i = 0; i < g->n_loops; i++)
			skv_grpc_loop_wake(&g->loops[i]);
	return skv_gauge_await_zero(&g->s->metrics, GAUGE_grpc_in_flight, timeout_ms);
}

bool skv_grpc_quiet(struct skv_grpc *g, uint32_t timeout_ms)
{
	return skv_gauge_await_zero(&g->s->metrics, GAUGE_grpc_parked, timeout_ms) == 0;
}

void skv_grpc_destroy(struct skv_grpc *g)
{
	if (!g)
		return;
	if (g->loops) {
		skv_grpc_drain(g, 0);
		assert(skv_gauge_get(&g->s->metrics, GAUGE_grpc_parked) == 0);
		skv_grpc_loops_stop(g);
	}
	release(g);
}
