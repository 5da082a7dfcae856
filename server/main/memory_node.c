/*
 * memory_node.c - the role memory-node: the API of server/memnode, and its data port. Its memory
 * goes with the process.
 */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/memory_node_api.h>

#include "role.h"

/* Connections to its data, TCP and local; each has a thread. */
#define MEMORY_CONNECTIONS 4096u

static int create(const struct skv_params *p, struct skv_api **out, struct skv_error *err)
{
	char host[64] = "";
	const struct skv_memory_options o = {
		.name = *p->memory_name ? p->memory_name : host,
		.size = p->memory,
		.pages = p->memory_pages,
		.numa = p->memory_numa,
		.rdma = p->memory_rdma,
		.listen = p->http_listen,
		.port = (uint16_t)p->memory_port,
		.max_connections = MEMORY_CONNECTIONS,
	};

	assert(p->memory_port <= UINT16_MAX);
	gethostname(host, sizeof host - 1);
	host[strcspn(host, ".")] = '\0';
	return skv_memory_node_create(&o, out, err);
}

static void announce(const struct skv_params *p, const struct skv_api *api, const char *url)
{
	char what[SKV_MEMORY_NODE_TEXT];

	(void)p;
	assert(skv_memory_node_port(api) != 0);
	skv_memory_node_describe(api, what);
	skv_log(SKV_LOG_INFO, "main", "memory node listening on %s, data on port %u: %s", url,
		skv_memory_node_port(api), what);
}

int skv_serve_memory_node(const struct skv_params *p)
{
	static const struct skv_role role = {
		.create = create,
		.destroy = skv_memory_node_destroy,
		.bind = skv_memory_node_bind,
		.start = skv_memory_node_start,
		.announce = announce,
		.body_max = 256u << 10,
		.hangs = "its memory",
	};

	return skv_role_serve(&role, p);
}
