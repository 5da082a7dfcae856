/*
 * redis.c - the store on Redis or Valkey: open, check the server, close.
 *
 * Opening refuses a server that cannot keep data: one that evicts keys, persists nothing, or is too
 * old. Commands that a managed service forbids are skipped with a warning.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>

#include "redis_store.h"

/* ---- what it is ------------------------------------------------------------------------------ */

/* The value after "\nname:" in INFO. */
static bool info_text(const char *info, const char *name, char *out, size_t size)
{
	const char *at = strstr(info, name);

	if (!at)
		return false;
	at += strlen(name);
	snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
	return true;
}

static int check_version(const char *info, struct skv_error *err)
{
	char version[32] = "";
	bool valkey = info_text(info, "\nvalkey_version:", version, sizeof version);

	if (!valkey && !info_text(info, "\nredis_version:", version, sizeof version))
		return SKV_OK; /* it does not say */
	if (atoi(version) >= (valkey ? 8 : 7))
		return SKV_OK;
	return skv_fail(err, SKV_E_UNSUPPORTED, "store",
			"%s %s is too old: Redis 7.0 or Valkey 8 is needed",
			valkey ? "Valkey" : "Redis", version);
}

static int look_at_info(struct redis_link *l, struct skv_error *err)
{
	redisReply *r = redis_command(l->c, "INFO");
	int rc = SKV_OK;

	if (!r) {
		rc = skv_fail(err, SKV_E_STORE_IO, "store", "no answer to INFO: %s",
			      redis_conn_error(l->c));
		redis_link_drop(l);
	} else if (r->type == REDIS_REPLY_STRING) {
		rc = check_version(r->str, err);
		l->store->cluster = strstr(r->str, "\ncluster_enabled:1") != NULL;
	} else {
		skv_log(SKV_LOG_WARN, "store",
			"%s:%u does not allow INFO: its version is not known", l->at.host,
			l->at.port);
	}
	freeReplyObject(r);
	return rc;
}

/* The value of a setting; false: not available. */
static bool setting(struct redis_link *l, const char *name, char *out, size_t size)
{
	redisReply *r = l->c ? redis_command(l->c, "CONFIG GET %s", name) : NULL;
	bool well = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2;

	if (well)
		snprintf(out, size, "%s", redis_text(r, 1));
	if (!r && l->c)
		redis_link_drop(l);
	freeReplyObject(r);
	return well;
}

static int look_at_settings(struct redis_link *l, struct skv_error *err)
{
	char policy[64], max[32], append_only[16], save[256];

	if (!setting(l, "maxmemory-policy", policy, sizeof policy) ||
	    !setting(l, "maxmemory", max, sizeof max)) {
		skv_log(SKV_LOG_WARN, "store",
			"%s:%u does not tell its settings: see that maxmemory-policy is noeviction",
			l->at.host, l->at.port);
		return SKV_OK;
	}
	if (strcmp(max, "0") != 0 && strcmp(policy, "noeviction") != 0)
		return skv_fail(
			err, SKV_E_UNSUPPORTED, "store",
			"maxmemory-policy is %s: it must be noeviction, or blocks are lost when "
			"memory is short",
			policy);
	if (setting(l, "appendonly", append_only, sizeof append_only) &&
	    setting(l, "save", save, sizeof save) && strcmp(append_only, "no") == 0)
		skv_log(SKV_LOG_WARN, "store",
			"%s:%u has appendonly no%s: what it holds is lost when all of its "
			"processes end",
			l->at.host, l->at.port, save[0] ? "" : " and saves nothing");
	return SKV_OK;
}

/* The prefix must be ours, or unused. */
static int claim_prefix(struct redis_link *l, struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, l->store, REDIS_REGISTRY, "meta");
	redis_arg_text(&a, REDIS_FORMAT);
	rc = redis_run(l, RUN_FORMAT, &a, 0, &r, err);
	if (rc == SKV_E_UNKNOWN_OUTCOME)
		rc = skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers");
	if (rc == SKV_OK && strcmp(redis_text(r, 1), REDIS_FORMAT) != 0)
		rc = skv_fail(err, SKV_E_UNSUPPORTED, "store",
			      "prefix '%s' holds '%.60s', not '%s': name another prefix in the URL",
			      l->store->url.prefix, redis_text(r, 1), REDIS_FORMAT);
	freeReplyObject(r);
	return rc;
}

static int look_over(struct redis_store *s, struct skv_error *err)
{
	struct redis_link *l = redis_link_take(s, REDIS_REGISTRY, REDIS_OWNER);
	int rc;

	if (!l)
		return redis_no_memory(err);
	rc = redis_link_connect(l, redis_deadline(s), err);
	if (rc == SKV_OK)
		rc = look_at_info(l, err);
	if (rc == SKV_OK)
		rc = look_at_settings(l, err);
	if (rc == SKV_OK)
		rc = redis_silent_check(l, err);
	if (rc == SKV_OK)
		rc = claim_prefix(l, err);
	redis_link_give(l);
	return rc;
}

/* ---- open and close
 * ------------------------------------------------------------------------------- */

static void redis_close(void *self)
{
	struct redis_store *s = self;

	for (struct redis_link *l = s->links, *next; l; l = next) {
		next = l->next;
		redis_link_destroy(l);
	}
	for (struct redis_fence *f = s->fences, *next; f; f = next) {
		next = f->next;
		skv_free(f);
	}
	for (struct redis_sighting *at = s->sightings, *next; at; at = next) {
		next = at->next;
		skv_free(at);
	}
	skv_mutex_destroy(&s->lock);
	memset(s->url.password, 0, sizeof s->url.password);
	skv_free(s);
}

static int redis_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	struct redis_store *s = skv_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return redis_no_memory(err);
	skv_mutex_init(&s->lock);
	rc = redis_url_parse(o->path, &s->url, err);
	if (rc == SKV_OK) {
		assert(s->url.n > 0 && s->url.n <= REDIS_NODES);
		s->clock = o->clock ? o->clock : &skv_clock_system;
		s->reserve_bytes = o->reserve_bytes;
		skv_boot_id(s->boot_id);
		memcpy(s->node, s->url.node, s->url.n * sizeof s->node[0]);
		s->n_node = s->url.n;
		rc = look_over(s, err);
	}
	if (rc != SKV_OK) {
		redis_close(s);
		return rc;
	}
	*self = s;
	return SKV_OK;
}

const struct skv_store_ops skv_store_redis = {
	.size = sizeof skv_store_redis,
	.name = "redis",
	.open = redis_open,
	.close = redis_close,
	.get = redis_get,
	.put = redis_put,
	.del = redis_del,
	.list = redis_list,
	.acquire = redis_acquire,
	.renew = redis_renew,
	.release = redis_release,
	.append = redis_append,
	.sync = redis_sync,
	.checkpoint_begin = redis_checkpoint_begin,
	.checkpoint_slice = redis_checkpoint_slice,
	.checkpoint_commit = redis_checkpoint_commit,
	.checkpoint_abort = redis_checkpoint_abort,
	.load = redis_load,
	.follow = redis_follow,
	.renewed = redis_renewed,
	.restore = redis_restore,
	.survived = redis_survived,
	.vouch = redis_vouch,
	.marks = redis_marks,
	.restored = redis_restored,
	.stats = redis_stats,
};
