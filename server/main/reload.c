/*
 * reload.c - SIGHUP: reads parameters, tokens, certificates and log files again.
 *
 * Parameters are read from the same sources as at the start. Parameters that may change at run time
 * are applied and logged, with their old values; for others the log says that a restart is needed.
 * A source with an error is ignored as a whole. Main thread.
 */
#include "serve.h"

#include <assert.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/service.h>

#include "limits.h"
#include "params_internal.h"

/* The parameters that take_over applies. */
static const enum skv_param live[] = {
	SKV_PARAM_log_level,	    SKV_PARAM_slow_ms,
	SKV_PARAM_metrics_open,	    SKV_PARAM_lease_default_ms, SKV_PARAM_session_default_ms,
	SKV_PARAM_max_sessions,	    SKV_PARAM_leased_percent, SKV_PARAM_open_percent,
	SKV_PARAM_free_percent,	    SKV_PARAM_journal_limit, SKV_PARAM_instance_idle_days,
};

static bool is_live(enum skv_param i)
{
	for (size_t k = 0; k < sizeof live / sizeof live[0]; k++)
		if (live[k] == i)
			return true;
	return false;
}

static void take_over(struct service *s, const struct skv_params *p)
{
	struct skv_core_options co;
	enum skv_log_level level = SKV_LOG_INFO;
	struct skv_service_options so;

	skv_service_options_init(&so);
	limit_service(p, &so);
	skv_core_options_init(&co);
	limit_core(p, &co);
	skv_log_level_parse(p->log_level, &level);
	skv_log_level_set(level);
	skv_service_change(s->service, &so);
	skv_cluster_change(s->cluster, &co);
}

/* Returns true if a parameter that may change at run time did. */
static bool tell_differences(const struct service *s, const struct skv_params *fresh)
{
	static char is[PARAM_VALUE_MAX], was[PARAM_VALUE_MAX]; /* of the main thread */
	bool changed = false;

	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const bool at_once = is_live((enum skv_param)i);

		if (i == SKV_PARAM_adopt || i == SKV_PARAM_config)
			continue;
		skv_param_render(fresh, (enum skv_param)i, is);
		skv_param_render(at_once && s->now ? s->now : s->p, (enum skv_param)i, was);
		if (strcmp(is, was) == 0)
			continue;
		changed |= at_once;
		if (at_once)
			skv_log(SKV_LOG_INFO, "main", "SIGHUP: %s is %s, was %s",
				skv_param_rows[i].name, is, was);
		else if (i == SKV_PARAM_store) /* the text may contain a password */
			skv_log(SKV_LOG_WARN, "main", "SIGHUP: store changed: needs a restart");
		else
			skv_log(SKV_LOG_WARN, "main", "SIGHUP: %s is %s, was %s: needs a restart",
				skv_param_rows[i].name, is, was);
	}
	return changed;
}

static void reload_params(struct service *s)
{
	struct skv_params *fresh;
	struct skv_error err;

	if (!s->run->argv) /* of kv_cache_manager_bin, which has other sources */
		return;
	fresh = skv_calloc(1, sizeof *fresh);
	if (!fresh)
		return;
	if (skv_params_load(fresh, s->run->argc, s->run->argv, s->run->envp, &err) != SKV_OK) {
		skv_log(SKV_LOG_ERROR, "main", "SIGHUP: parameters stay as they are: %s",
			err.message);
		skv_free(fresh);
		return;
	}
	if (tell_differences(s, fresh))
		take_over(s, fresh);
	serve_forget_params(s);
	s->now = fresh;
}

void serve_forget_params(struct service *s)
{
	if (s->now)
		skv_params_destroy(s->now);
	skv_free(s->now);
	s->now = NULL;
}

void serve_reload(struct service *s)
{
	struct skv_error err;

	assert(s->service && s->cluster);
	skv_sink_reopen(s->p, s->log_fd);
	if (skv_service_reload(s->service, &err) == SKV_OK)
		skv_log(SKV_LOG_INFO, "main", "SIGHUP: tokens and log files opened again");
	else
		skv_log(SKV_LOG_ERROR, "main", "SIGHUP: keeping what was: %s", err.message);
	skv_certificates_reload();
	reload_params(s);
}
