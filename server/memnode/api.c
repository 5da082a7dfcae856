/*
 * api.c - the memory node's API for the transports: routes, bodies, failures; its life.
 *
 * Owns the node: slabs, the storage that it is bound to, connections.
 */
#include "memnode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/v1_codec.h>
#include <skv/v1_json.h>

static const struct skv_route routes[] = {
#define MEM_ROUTE(name, method, pattern, role, flags)                             \
	{ #name, #method, pattern, ROLE_##role, flags, SKV_PLANE_ALL, NULL, NULL, \
	  mem_op_##name##_run, mem_op_##name##_write },
	MEM_OPS(MEM_ROUTE)
#undef MEM_ROUTE
#define VERB_ROUTE(verb, text)                                                        \
	{ text, "POST", SKV_FS_PREFIX "{dir}/" text, ROLE_ADMIN, ROUTE_BLOCKS | ROUTE_BODY, \
	  SKV_PLANE_ALL, NULL, &(const enum skv_fs_verb){ SKV_FS_##verb }, mem_verb_run,     \
	  mem_verb_write },
	SKV_FS_VERBS(VERB_ROUTE)
#undef VERB_ROUTE
};

static int head(struct skv_request *c, const struct skv_head *h)
{
	c->type = skv_v1_json.content_type;
	if (!c->route || !(c->route->flags & ROUTE_BODY) ||
	    skv_v1_codec_of_type(h->content_type) == &skv_v1_json)
		return SKV_OK;
	c->http = 415;
	return skv_fail(&c->err, SKV_E_UNSUPPORTED, "Content-Type", "a body is application/json");
}

static unsigned fail(struct skv_request *c)
{
	c->type = skv_v1_json.content_type;
	skv_v1_write_error(&c->out, &c->err, c->id);
	if (c->out.failed)
		c->fixed = skv_v1_json.no_memory;
	return c->http ? c->http : (unsigned)skv_status_http(c->status);
}

static void expose_one(struct skv_buf *out, const char *name, const char *type, const char *help,
		       uint64_t v)
{
	assert(!out->over);
	skv_buf_printf(out,
		       "# HELP slabkv_memory_node_%s %s\n# TYPE slabkv_memory_node_%s %s\n"
		       "slabkv_memory_node_%s %llu\n",
		       name, help, name, type, name, (unsigned long long)v);
}

static void expose(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		   struct skv_buf *out)
{
	struct memnode *m = memnode_of(api);
	uint32_t tcp, local;

	(void)s;
	(void)a;
	data_counts(m, &tcp, &local);
	expose_one(out, "size_bytes", "gauge", "memory offered", m->slabs.size);
	expose_one(out, "free_bytes", "gauge", "memory in no slab", slabs_free_bytes(&m->slabs));
	expose_one(out, "slabs", "gauge", "slabs", slabs_count(&m->slabs));
	expose_one(out, "tcp_connections", "gauge", "clients that move bytes over TCP", tcp);
	expose_one(out, "local_connections", "gauge", "clients of this host that map slabs", local);
	expose_one(out, "queue_pairs", "gauge",
		   "TCP connections that move their bytes by RDMA", mem_rdma_count(m));
	expose_one(out, "cut_total", "counter", "connections ended because they had not said hello",
		   data_cut(m));
	expose_one(out, "writing_seconds", "gauge",
		   "age of the oldest write that has not ended; 0: none",
		   (data_writing_ms(m) + 999) / 1000);
}

static void draw_epoch(struct memnode *m)
{
	do
		skv_random(&m->epoch, sizeof m->epoch);
	while (m->epoch == 0);
}

int skv_memory_node_create(const struct skv_memory_options *o, struct skv_api **out,
			   struct skv_error *err)
{
	struct memnode *m;
	int rc;

	if (!skv_name_valid(o->name, strlen(o->name)) || strlen(o->name) >= sizeof m->name)
		return skv_fail(err, SKV_E_INVALID, "memory_name",
				"a memory node needs a name of its own: --memory-name, 1 to 63 of "
				"A-Z a-z 0-9 . _ -");
	m = skv_calloc(1, sizeof *m);
	if (!m)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	snprintf(m->name, sizeof m->name, "%s", o->name);
	snprintf(m->numa, sizeof m->numa, "%s", o->numa);
	snprintf(m->listen, sizeof m->listen, "%s", o->listen);
	m->port = o->port;
	m->max_connections = o->max_connections;
	m->tcp_fd = m->local_fd = m->stop_fd = -1;
	skv_mutex_init(&m->lock);
	skv_mutex_init(&m->conn_lock);
	skv_cond_init(&m->conn_gone);
	draw_epoch(m);
	skv_random(m->secret, sizeof m->secret);
	m->api = (struct skv_api){ .name = "memory", .prefix = "/", .routes = routes,
				   .n_routes = sizeof routes / sizeof routes[0],
				   .state_size = sizeof(struct mem_request), .ctx = m, .head = head,
				   .fail = fail, .expose = expose };
	rc = slabs_init(&m->slabs, o, err);
	if (rc == SKV_OK)
		rc = mem_rdma_create(o->rdma, m->epoch, &m->rdma, err);
	m->slabs.rdma = m->rdma;
	if (rc == SKV_OK)
		*out = &m->api;
	else
		skv_memory_node_destroy(&m->api);
	return rc;
}

int skv_memory_node_bind(struct skv_api *api, struct skv_service *s, struct skv_error *err)
{
	struct memnode *m = memnode_of(api);

	assert(m->tcp_fd < 0);
	m->service = s;
	return data_bind(m, err);
}

int skv_memory_node_start(struct skv_api *api, struct skv_error *err)
{
	return data_start(memnode_of(api), err);
}

uint16_t skv_memory_node_port(const struct skv_api *api) { return memnode_of(api)->port; }

void skv_memory_node_describe(const struct skv_api *api, char out[SKV_MEMORY_NODE_TEXT])
{
	const struct memnode *m = memnode_of(api);
	const uint64_t page = m->slabs.page;
	uint32_t n;
	const struct skv_mn_device *d = mem_rdma_devices(m->rdma, &n);

	snprintf(out, SKV_MEMORY_NODE_TEXT, "%llu %s pages, %s%s, %s%.63s%s",
		 (unsigned long long)(page >> (page >> 30 ? 30 : page >> 20 ? 20 : 10)),
		 page >> 30   ? "GiB huge"
		 : page >> 20 ? "MiB huge"
			      : "KiB ordinary",
		 m->slabs.numa ? "NUMA nodes " : "any NUMA node", m->numa,
		 n ? "RDMA on " : "no RDMA",
		 n ? d[0].name : "", n > 1 ? " and others" : "");
}

void skv_memory_node_destroy(struct skv_api *api)
{
	struct memnode *m = api ? memnode_of(api) : NULL;

	if (!m)
		return;
	data_stop(m);
	assert(!m->conns);
	slabs_destroy(&m->slabs);
	mem_rdma_destroy(m->rdma);
	skv_cond_destroy(&m->conn_gone);
	skv_mutex_destroy(&m->conn_lock);
	skv_mutex_destroy(&m->lock);
	skv_free(m);
}
