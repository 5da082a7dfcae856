/*
 * meta_cluster.c - getClusterInfo: the leader and its endpoint. Any node answers.
 *
 * No state.
 */
#include "meta.h"

#include "node.h"

int kvcm_run_meta_getClusterInfo(struct kvcm_request *k)
{
	KvcmMeta__GetClusterInfoResponse *res = k->res;
	struct kvcm_cluster c;
	int rc = kvcm_node_cluster(kvcm_cluster(k), kvcm_of(k)->own, &k->c->arena, &c, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->self_node_id = (char *)c.self;
	res->leader_node_id = (char *)c.leader;
	if (!c.endpoint)
		return SKV_OK;
	res->leader_endpoint = kvcm_node_for_meta(c.endpoint, &k->c->arena);
	return res->leader_endpoint ? SKV_OK : kvcm_nomem(k);
}
