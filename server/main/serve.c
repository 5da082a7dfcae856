/*
 * serve.c - the running manager: starts in order, waits for signals, shuts down in order.
 *
 * Start: log, ports (so that a taken one is reported before anything is touched), store, core,
 * transports. The HTTP port answers at once: /healthz, and /readyz says why it is not ready. A
 * separate thread waits for the core to own its partition and makes the default objects; the main
 * thread only waits for signals and returns memory when nothing goes on, neither of which takes a
 * lock of the core, so that SIGTERM works whatever hangs. Shutdown: requests drain, the core writes
 * a checkpoint, everything is released; if something hangs on a dead mount the process exits
 * without it, since its state is durable.
 */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/httpd.h>
#include <skv/grpc.h>
#include <skv/log.h>
#include <skv/v1_api.h>
#include <skv/nodes.h>
#include <skv/hf3fs_api.h>
#include <skv/service.h>
#include <skv/store.h>
#include <skv/tls.h>

#include "compat.h"
#include "endpoint.h"
#include "limits.h"
#include "page_files.h"
#include "serve.h"

#define DRAIN_MS 10000
#define STORE_RESERVE (16u << 20) /* bytes of a full disk that deletes may still use */
/* How long clients at an inherited socket may wait for a manager to be ready. */
#define HOLD_MS 3000
#define LEAVE_MS 200 /* how long their next requests are still answered */
#define JOIN_US 2000000u /* how long a hanging thread is waited for */

/* ---- start ----------------------------------------------------------------------------------- */

static struct skv_service_options service_options(const struct skv_params *p,
						  struct skv_api *const *apis, size_t n)
{
	struct skv_service_options o;

	skv_service_options_init(&o);
	o.apis = apis;
	o.n_apis = n;
	o.tokens_file = p->tokens_file;
	o.hold_ready = true;
	limit_service(p, &o);
	return o;
}

static struct skv_hf3fs_api_options hf3fs_options(const struct skv_params *p)
{
	return (struct skv_hf3fs_api_options){
		.strict_upstream = p->strict_upstream,
		.lease_ms = (uint32_t)p->pages_lease_ms,
		.reserve_ms = (uint32_t)p->session_default_ms,
		.grace_ms = (uint32_t)p->pages_grace_ms,
		.retry_ms = (uint32_t)p->hold_ms,
	};
}

/* The longest deadline plus grace of a page whose reservation a power loss may lose. */
static uint32_t relaxed_ms(const struct skv_params *p)
{
	uint64_t grace = p->pages_grace_ms > p->grace_ms ? p->pages_grace_ms : p->grace_ms;

	if (!p->pages)
		return 0;
	assert(p->session_default_ms + grace <= UINT32_MAX);
	return (uint32_t)(p->session_default_ms + grace);
}

/* Our own ports serve everything; faults only if enabled. */
static struct skv_apis all_apis(const struct service *s)
{
	return (struct skv_apis){
		.v = { &skv_v1_api, skv_compat_api(s->compat), s->pages },
		.n = s->pages ? 3 : 2,
		.planes = s->p->kvcm_debug ? SKV_PLANE_ALL : SKV_PLANE_ALL & ~SKV_PLANE_DEBUG,
	};
}

static void set_port(const struct service *s, uint64_t port, struct skv_port_options *o)
{
	assert(port <= UINT16_MAX || port == SKV_PORT_OFF);
	o->apis = all_apis(s);
	o->listen = s->p->http_listen;
	o->port = (uint16_t)port;
	limit_port(s->p, o);
}

static uint64_t longest(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Sets the core's options. Limits must not break the promises of an API to its clients. */
static struct skv_core_options core_options(const struct skv_params *p, struct skv_store *store)
{
	struct skv_core_options o;

	skv_core_options_init(&o);
	o.store = store;
	limit_core(p, &o);
	o.owner_lease_ms = (uint32_t)p->owner_lease_ms;
	o.lease_max_ms =
		(uint32_t)longest(p->lease_max_ms, longest(p->pages_lease_ms, p->kvcm_transfer_ms));
	o.session_max_ms = (uint32_t)p->session_max_ms;
	o.grace_ms = (uint32_t)p->grace_ms;
	/* requested by the calls themselves */
	o.grace_max_ms = (uint32_t)longest(p->pages_grace_ms, p->kvcm_transfer_ms);
	o.relaxed_ms = relaxed_ms(p);
	o.storage_roots = p->storage_roots;
	o.fs_master_token_file = p->fs_master_token_file;
	o.adopt = p->adopt;
	o.standby_cold = !p->warm_standby;
	o.assigned = true; /* start_spread */
	return o;
}

static int open_store(struct service *s, struct skv_error *err)
{
	const struct skv_store_options o = {
		.path = s->p->store,
		.durability = strcmp(s->p->durability, "full") == 0 ? SKV_DURABILITY_FULL
								      : SKV_DURABILITY_NORMAL,
		.reserve_bytes = STORE_RESERVE,
	};
	struct skv_error cause;
	int rc = skv_store_open(skv_store_backend(o.path), &o, &s->store, &cause);

	skv_store_shown(s->p->store, s->store_shown);
	if (rc == SKV_OK)
		return SKV_OK;
	return skv_fail(
		err, rc, "store", "cannot open the store %.120s: %.200s (--store names it%s)",
		s->store_shown, cause.message,
		skv_store_is_file(o.path) ? "; it must be a writable file on a local file system"
					  : "");
}

/* Connections need descriptors: raises the limit as far as allowed. */
static void raise_file_limit(const struct skv_params *p)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit_connections() && limit_connections() < p->max_connections)
		skv_log(SKV_LOG_WARN, "main",
			"max_connections is %" PRIu64 ", but the limit of open files is %ju, so "
			"that of connections is %u: raise 'ulimit -n'",
			p->max_connections, (uintmax_t)limit.rlim_cur,
			(unsigned)limit_connections());
}

/* Handles a fault that a new process would meet, too: a manager that answers for other partitions
 * continues. */
static void on_hopeless(void *ctx, int why)
{
	struct service *s = ctx;

	if (why == SKV_E_UNAVAILABLE && skv_cluster_may_begin(s->cluster))
		return;
	skv_log(SKV_LOG_ERROR, "main", "ending: %s",
		why == SKV_E_NOT_READY ? "a new process may load the store, or another manager"
				       : "a new process would end, too, until the store is "
					 "repaired as logged before");
	serve_end(s, why == SKV_E_NOT_READY ? EXIT_PROBLEM : EXIT_REPAIR);
}

/* Binds all ports before anything else is touched. */
static int bind_ports(struct service *s, struct skv_error *err)
{
	struct skv_hf3fs_api_options po = hf3fs_options(s->p);
	struct skv_api *apis[3] = { &skv_v1_api };
	struct skv_service_options so;
	struct skv_port_options http, grpc;
	int rc = skv_certificates_load(s->p, err);

	if (rc == SKV_OK)
		rc = skv_compat_create(s->p, &s->compat, err);
	if (rc == SKV_OK && s->p->pages)
		rc = skv_page_files_open(s->p, &s->looker, &po.files, err);
	if (rc == SKV_OK && s->p->pages)
		rc = skv_hf3fs_api_create(&po, &s->pages, err);
	if (rc != SKV_OK)
		return rc;
	apis[1] = skv_compat_api(s->compat);
	apis[2] = s->pages;
	so = service_options(s->p, apis, s->pages ? 3 : 2);
	skv_httpd_options_init(&http);
	set_port(s, s->p->http_port, &http);
	http.hold_ms = HOLD_MS;
	skv_grpc_options_init(&grpc);
	set_port(s, s->p->grpc_port, &grpc);
	rc = skv_service_create(&so, &s->service, err);
	if (rc == SKV_OK)
		rc = skv_inherit(&s->service->inherited, err);
	if (rc == SKV_OK)
		rc = skv_httpd_create(&http, s->service, &s->httpd, err);
	if (rc == SKV_OK && (*s->p->advertise || !*s->p->tokens_file))
		skv_endpoint_url(s->p->advertise, skv_httpd_url(s->httpd), s->service->advertised,
				 SKV_URL_MAX);
	if (rc == SKV_OK)
		skv_endpoint_url(s->p->advertise, skv_httpd_url(s->httpd), s->service->peer,
				 SKV_URL_MAX);
	if (rc == SKV_OK && s->p->grpc_port != SKV_PORT_OFF)
		rc = skv_grpc_create(&grpc, s->service, &s->grpc, err);
	if (rc == SKV_OK)
		rc = skv_compat_bind(s->compat, s->service, skv_httpd_port(s->httpd),
				     s->grpc ? skv_grpc_port(s->grpc) : 0, err);
	if (rc == SKV_OK)
		rc = skv_inherit_check(&s->service->inherited, err);
	return rc;
}

/* The managers of this store may run on several hosts. */
static bool on_several_hosts(const struct service *s)
{
	return strcmp(skv_store_name(s->store), "etcd") == 0;
}

/* Managers may have parts of it, or be on hosts where nobody sees whether they run. */
static bool has_members(const struct service *s)
{
	return skv_cluster_partitions(s->cluster) > 1 || on_several_hosts(s);
}

/* Managers share the partitions of a store that several may write at once; in a file they would
 * wait for each other. */
static int start_spread(struct service *s, struct skv_error *err)
{
	if (skv_cluster_partitions(s->cluster) > 1)
		return skv_spread_start(&s->service->spread, s->cluster, &s->service->members,
					on_several_hosts(s), err);
	skv_cluster_may_own(s->cluster, 1);
	return SKV_OK;
}

static int start_transports(struct service *s, struct skv_error *err)
{
	int rc;

	assert(s->service && s->httpd);
	rc = skv_service_start(s->service, s->cluster, err);
	if (rc == SKV_OK)
		skv_v1_ask_others(s->service);
	if (rc == SKV_OK && has_members(s))
		rc = skv_members_start(&s->service->members, s->cluster, s->service->peer,
				       (uint32_t)s->p->owner_lease_ms, err);
	if (rc == SKV_OK)
		rc = start_spread(s, err);
	if (rc == SKV_OK && s->pages)
		rc = skv_hf3fs_api_start(s->pages, s->cluster, err);
	if (rc == SKV_OK)
		rc = skv_httpd_start(s->httpd, err);
	if (rc == SKV_OK && s->grpc)
		rc = skv_grpc_start(s->grpc, err);
	/* gRPC's first: a client that reads HTTP's port file may then look for the other. */
	if (rc == SKV_OK && s->grpc)
		rc = skv_write_port_file(s->p->port_file, ".grpc", skv_grpc_port(s->grpc), err);
	if (rc == SKV_OK)
		rc = skv_write_port_file(s->p->port_file, "", skv_httpd_port(s->httpd), err);
	if (rc == SKV_OK)
		skv_audit_act(&s->service->audit, "start", skv_httpd_url(s->httpd), "ok");
	if (rc == SKV_OK)
		skv_log(SKV_LOG_INFO, "main", "listening on %s%s%s", skv_httpd_url(s->httpd),
			s->grpc ? ", grpc " : "", s->grpc ? skv_grpc_address(s->grpc) : "");
	return rc;
}

static int start(struct service *s, struct skv_error *err)
{
	const struct skv_cluster_options all = { .partitions = (uint32_t)s->p->partitions,
						 .family = skv_hf3fs_family };
	struct skv_core_options co;
	int rc = bind_ports(s, err);

	assert(s->p->partitions <= SKV_MAX_PARTITIONS);
	if (rc == SKV_OK)
		rc = open_store(s, err);
	if (rc != SKV_OK)
		return rc;
	co = core_options(s->p, s->store);
	co.hopeless = on_hopeless;
	co.hopeless_ctx = s;
	rc = skv_cluster_create(&co, &all, &s->cluster, err);
	return rc == SKV_OK ? start_transports(s, err) : rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define MEMORY_LOOK_S 2

/* Blocks asked for by starts, and loads: at the last look, and when memory was returned. */
struct memory {
	uint64_t seen, returned;
};

/* Makes malloc return large tables to the system when they are replaced: glibc would otherwise keep
 * them once one of that size was freed (98 bytes per block instead of 95, with ten million). */
static void return_tables(void) { mallopt(M_MMAP_THRESHOLD, 256 << 10); }

/* Returns what was freed between pieces that are in use, once, when nothing has been written or
 * loaded since the last look: 5 bytes per block of a full store of four million. */
static void return_pieces(struct memory *m, const struct skv_cluster *cluster)
{
	struct skv_core_counters c;
	uint64_t now;

	skv_cluster_counters_get(cluster, &c);
	now = c.start_keys + c.takeovers + c.standby_loads;
	if (now == m->seen && now != m->returned) {
		malloc_trim(0);
		m->returned = now;
	}
	m->seen = now;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void wait_for_end(struct service *s, const sigset_t *signals)
{
	const struct timespec look = { MEMORY_LOOK_S, 0 };
	struct memory memory = { .seen = 0, .returned = UINT64_MAX };

	for (;;) {
		int number = sigtimedwait(signals, NULL, &look);

		if (number < 0 && errno == EAGAIN)
			return_pieces(&memory, s->cluster);
		if (number == SIGHUP)
			serve_reload(s);
		else if (number == SIGTERM || number == SIGINT)
			return;
	}
}

/* ---- shutdown -------------------------------------------------------------------------------- */

/* Joins the thread that began the service; false: it hangs, in a file system for example. By
 * attempts, because the wall clock of timedjoin may be set, and ThreadSanitizer does not know
 * clockjoin. */
static bool join_begin(struct service *s)
{
	const uint64_t end = skv_now_us() + JOIN_US;
	int rc;

	if (!s->has_begin)
		return true;
	while ((rc = pthread_tryjoin_np(s->begin, NULL)) == EBUSY && skv_now_us() < end)
		poll(NULL, 0, 2);
	return rc == 0;
}

static void release(struct service *s)
{
	if (s->compat)
		skv_compat_close(s->compat);
	skv_grpc_destroy(s->grpc);
	skv_httpd_destroy(s->httpd);
	if (s->service) {
		skv_spread_stop(&s->service->spread);
		skv_members_stop(&s->service->members);
	}
	skv_service_destroy(s->service);
	skv_tls_unload();
	if (s->cluster)
		skv_cluster_destroy(s->cluster);
	if (s->store)
		skv_store_close(s->store);
	skv_compat_destroy(s->compat);
	skv_hf3fs_api_destroy(s->pages);
	skv_file_looker_close(s->looker);
	serve_forget_params(s);
	skv_sink_close(s->log_fd);
}

static void stop(struct service *s)
{
	uint32_t left;

	skv_log(SKV_LOG_INFO, "main", "stopping: waiting for running requests");
	skv_audit_act(&s->service->audit, "stop", skv_httpd_url(s->httpd), "ok");
	assert(!atomic_load(&s->stopping));
	atomic_store(&s->stopping, true);
	skv_remove_port_file(s->p->port_file, "");
	skv_remove_port_file(s->p->port_file, ".grpc");
	skv_members_leave(&s->service->members);
	skv_httpd_leave(s->httpd, LEAVE_MS);
	skv_compat_retire(s->compat, s->cluster);
	if (s->grpc)
		skv_grpc_drain(s->grpc, 0); /* all start now and share the same time */
	skv_compat_drain(s->compat, 0);
	left = skv_httpd_drain(s->httpd, DRAIN_MS);
	if (s->grpc)
		left += skv_grpc_drain(s->grpc, left ? 0 : DRAIN_MS);
	left += skv_compat_drain(s->compat, left ? 0 : DRAIN_MS);
	if (left > 0)
		skv_log(SKV_LOG_WARN, "main", "requests that did not end in %d s: %" PRIu32,
			DRAIN_MS / 1000, left);
	skv_spread_stop(&s->service->spread);
	skv_cluster_shutdown(s->cluster);
	/* others return it as long as this manager owns the store */
	skv_members_stop(&s->service->members);
	skv_node_retire(s->cluster, SKV_NODE_URL);
	skv_node_retire(s->cluster, SKV_NODE_PEER);
	skv_node_retire(s->cluster, SKV_NODE_ASK);
	if (!join_begin(s) || !skv_httpd_quiet(s->httpd, 1000) ||
	    (s->grpc && !skv_grpc_quiet(s->grpc, 1000)) || !skv_compat_quiet(s->compat, 1000) ||
	    !skv_hf3fs_api_quiet(s->pages, 1000) || !skv_cluster_quiet(s->cluster, 1000)) {
		skv_log(SKV_LOG_WARN, "main", "ending although calls hang in a file system");
		_exit(atomic_load(&s->exit_status));
	}
	serve_unwatch(s);
	release(s);
	skv_log(SKV_LOG_INFO, "main", "stopped");
}

int skv_serve(const struct skv_run *run)
{
	const struct skv_params *p = run->p;
	struct service s = { .p = p, .run = run, .log_fd = -1, .ready_fd = run->ready_fd };
	struct skv_error err;
	sigset_t signals;

	return_tables();

	skv_signals_block(&signals);
	skv_modes_set(p);
	if (skv_sink_open(p, &s.log_fd, &err) != SKV_OK) {
		skv_sink_say("slabkvd", err.message);
		return EXIT_PROBLEM;
	}
	for (size_t i = 0; i < run->n_notes; i++)
		skv_log(SKV_LOG_WARN, "main", "%s", run->notes[i]);
	raise_file_limit(p);
	if (start(&s, &err) != SKV_OK) {
		skv_log(SKV_LOG_ERROR, "main", "cannot start: %s", err.message);
		if (s.ready_fd >= 0)
			skv_sink_say("slabkvd: cannot start", err.message);
		if (s.cluster)
			skv_cluster_shutdown(s.cluster);
		if (!skv_hf3fs_api_quiet(s.pages, 1000))
			_exit(EXIT_PROBLEM);
		release(&s);
		return EXIT_PROBLEM;
	}
	serve_watch(&s);
	s.has_begin = pthread_create(&s.begin, NULL, serve_begin, &s) == 0;
	if (s.has_begin)
		wait_for_end(&s, &signals);
	else
		atomic_store(&s.exit_status, EXIT_PROBLEM);
	skv_signals_arm(&signals);
	stop(&s);
	return atomic_load(&s.exit_status);
}
