/*
 * admin_node.c - this manager and its peers: health, leader, demotion, log level.
 *
 * Served by followers too, but for the stepping down. Owns nothing: the delay lives in struct kvcm.
 */
#include "op_list.h"

#include <assert.h>
#include <strings.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "node.h"

#define DELAY_MAX_MS 86400000 /* a day */

/* ---- health ---------------------------------------------------------------------------------- */

/* Leader and health come from one check: a manager that owns the first partition is leader once it
 * serves. Until then it is what its clients see, a follower, and a healthy one unless it cannot
 * load, or no storage is healthy in what it owns. */
struct kvcm_health kvcm_health(struct skv_service *s)
{
	struct skv_error ignored;
	int rc = atomic_load(&s->holding) ? SKV_E_NOT_READY
					  : skv_cluster_ready(s->cluster, &ignored);

	if (rc == SKV_OK || rc == SKV_E_UNAVAILABLE)
		return (struct kvcm_health){ .leads = skv_cluster_partition_state(s->cluster, 0) ==
						      SKV_CORE_READY,
					     .healthy = rc == SKV_OK };
	return (struct kvcm_health){ .healthy = skv_cluster_state_get(s->cluster) !=
							SKV_CORE_STOPPED &&
						!skv_cluster_load_fails(s->cluster) };
}

int kvcm_run_admin_checkHealth(struct kvcm_request *k)
{
	KvcmAdmin__CheckHealthResponse *res = k->res;
	struct kvcm_health h = kvcm_health(k->c->s);

	res->is_leader = h.leads;
	res->is_health = h.healthy;
	res->elector_last_loop_time_ms = (int64_t)skv_cluster_owner_seen_ms(kvcm_cluster(k));
	return SKV_OK;
}

int kvcm_run_admin_getManagerClusterInfo(struct kvcm_request *k)
{
	const int64_t now = (int64_t)skv_wall_ms(&skv_clock_system);
	KvcmAdmin__GetManagerClusterInfoResponse *res = k->res;
	struct kvcm_cluster c;
	int rc = kvcm_node_cluster(kvcm_cluster(k), kvcm_of(k)->own, &k->c->arena, &c, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->info_updated_time = now;
	res->self_node_id = (char *)c.self;
	res->leader_node_id = (char *)c.leader;
	res->leader_endpoint = (KvcmAdmin__NodeEndpoint *)c.endpoint;
	if (skv_cluster_partition_may_answer(kvcm_cluster(k), 0) == SKV_OK)
		res->self_leader_expiration_time = now + (int64_t)c.remaining_ms;
	return SKV_OK;
}

/* ---- stepping down --------------------------------------------------------------------------- */

int kvcm_run_admin_leaderDemote(struct kvcm_request *k)
{
	uint32_t delay = atomic_load(&kvcm_of(k)->campaign_delay_ms);

	return skv_cluster_demote(kvcm_cluster(k), delay, &k->c->err);
}

int kvcm_run_admin_getLeaderElectorConfig(struct kvcm_request *k)
{
	KvcmAdmin__GetLeaderElectorConfigResponse *res = k->res;

	res->campaign_delay_time_ms = atomic_load(&kvcm_of(k)->campaign_delay_ms);
	return SKV_OK;
}

int kvcm_run_admin_updateLeaderElectorConfig(struct kvcm_request *k)
{
	const KvcmAdmin__UpdateLeaderElectorConfigRequest *req = k->req;

	if (req->campaign_delay_time_ms < 0 || req->campaign_delay_time_ms > DELAY_MAX_MS)
		return skv_fail(&k->c->err, SKV_E_INVALID, "campaign_delay_time_ms",
				"campaign_delay_time_ms: 0 to %d are expected", DELAY_MAX_MS);
	atomic_store(&kvcm_of(k)->campaign_delay_ms, (uint32_t)req->campaign_delay_time_ms);
	return SKV_OK;
}

/* ---- the log --------------------------------------------------------------------------------- */

int kvcm_run_admin_updateLogger(struct kvcm_request *k)
{
	static const struct {
		const char *name;
		enum skv_log_level level;
	} levels[] = {
		{ "DEBUG", SKV_LOG_DEBUG }, { "INFO", SKV_LOG_INFO }, { "WARN", SKV_LOG_WARN },
		{ "ERROR", SKV_LOG_ERROR },
	};
	const KvcmAdmin__UpdateLoggerRequest *req = k->req;

	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		if (strcasecmp(req->log_level, levels[i].name) != 0)
			continue;
		skv_log_level_set(levels[i].level);
		skv_log(SKV_LOG_WARN, "kvcm", "an administrator set the log level to %s",
			levels[i].name);
		return SKV_OK;
	}
	return kvcm_missing(k, "log_level");
}

/* ---- tokens ---------------------------------------------------------------------------------- */

int kvcm_run_admin_setAdminAuthTokens(struct kvcm_request *k)
{
	const KvcmAdmin__SetAdminAuthTokensRequest *req = k->req;
	int rc = skv_auth_give(&k->c->s->auth, k->c->caller.tenant,
			       (const char *const *)req->tokens, req->n_tokens, &k->c->err);

	return rc;
}

int kvcm_run_admin_rotateAdminAuthToken(struct kvcm_request *k)
{
	const KvcmAdmin__RotateAdminAuthTokenRequest *req = k->req;

	if (!*req->old_token)
		return kvcm_missing(k, "old_token");
	if (!*req->new_token)
		return kvcm_missing(k, "new_token");
	return skv_auth_rotate(&k->c->s->auth, req->old_token, req->new_token, &k->c->err);
}

int kvcm_run_admin_listAdminAuthTokens(struct kvcm_request *k)
{
	KvcmAdmin__ListAdminAuthTokensResponse *res = k->res;
	const uint32_t *prints;
	size_t n;

	res->enforcing = skv_auth_given(&k->c->s->auth, &k->c->arena, &prints, &n);
	assert(n <= AUTH_GIVEN_MAX);
	res->fingerprints = skv_arena_calloc(&k->c->arena, n + 1, sizeof(char *));
	for (; res->fingerprints && res->n_fingerprints < n; res->n_fingerprints++) {
		res->fingerprints[res->n_fingerprints] =
			kvcm_text(k, "%08x", prints[res->n_fingerprints]);
		if (!res->fingerprints[res->n_fingerprints])
			return kvcm_nomem(k);
	}
	res->token_count = (int32_t)n;
	return res->fingerprints ? SKV_OK : kvcm_nomem(k);
}
