/*
 * begin.c - the first tasks of a ready manager: default objects, the KVCM ports, its published
 * address.
 *
 * Runs on its own thread, because a storage's directory may hang: the main thread keeps handling
 * signals. Owns nothing; sets exit_status when it cannot continue.
 */
#include "serve.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <skv/bytes.h>
#include <skv/httpd.h>
#include <skv/grpc.h>
#include <skv/log.h>
#include <skv/nodes.h>
#include <skv/service.h>

#include "compat.h"
#include "daemon.h"

#define POLL_MS 200

void serve_end(struct service *s, int status)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&s->exit_status, &none, status))
		kill(getpid(), SIGTERM);
}

/* "default (file ./slabkv-data, 16384 MiB)" */
static void put_storages(struct service *s, struct skv_buf *out)
{
	struct skv_storage_view *v = NULL;
	struct skv_arena a;
	struct skv_error err;
	uint32_t n = 0, external = 0, told = 0;

	skv_arena_init(&a);
	if (skv_cluster_every_storage(s->cluster, "", &a, &v, &n, &err) != SKV_OK)
		n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(v[i].spec.type, "external") == 0) {
			external++;
			continue;
		}
		skv_buf_printf(out, "%s%s (%s%s%s, %" PRIu64 " MiB%s)", told++ ? ", " : "",
			       v[i].spec.name, v[i].spec.type, *v[i].spec.root ? " " : "",
			       v[i].spec.root, v[i].spec.capacity >> 20,
			       v[i].healthy ? "" : ", not usable now");
	}
	assert(told + external == n);
	if (external)
		skv_buf_printf(out, "%s%u external", told ? ", " : "", external);
	skv_put_u8(out, '\0');
	skv_arena_destroy(&a);
}

/* The line on standard output that tells users and scripts that the manager is ready; in the log's
 * format. */
static void say_ready(struct service *s)
{
	const char *grpc = s->grpc ? skv_grpc_address(s->grpc) : "";
	struct skv_buf storages = { 0 }, line = { 0 };

	put_storages(s, &storages);
	if (skv_log_is_json()) {
		const struct skv_log_field fields[] = {
			SKV_TEXT("version", SKV_VERSION),
			SKV_TEXT("url", skv_httpd_url(s->httpd)),
			SKV_TEXT("grpc", grpc),
			SKV_TEXT("store", s->store_shown),
			SKV_TEXT("durability", s->p->durability),
			SKV_TEXT("storages", storages.failed ? "" : (char *)storages.data)
		};

		skv_log_line(&line, SKV_LOG_INFO, "main", "ready", fields,
			     sizeof fields / sizeof fields[0]);
	} else {
		skv_buf_printf(
			&line,
			"slabkvd " SKV_VERSION " ready: %s%s%s, store %s (%s), storages %s\n",
			skv_httpd_url(s->httpd), s->grpc ? ", grpc " : "", grpc, s->store_shown,
			s->p->durability, storages.failed ? "" : (char *)storages.data);
	}
	if (!line.failed)
		fwrite(line.data, 1, line.len, stdout);
	fflush(stdout);
	skv_buf_destroy(&line);
	skv_buf_destroy(&storages);
}

/* The background starter may return: we serve, even if only to say that another manager owns the
 * store. */
static void release_starter(struct service *s)
{
	skv_daemon_ready(s->ready_fd);
	s->ready_fd = -1;
}

/* KVCM's clients expect that a manager with an open port knows whether it is leader or follower. */
static int open_for_business(struct service *s, struct skv_error *err)
{
	int rc = skv_compat_start(s->compat, err);

	if (rc == SKV_OK)
		release_starter(s);
	return rc;
}

/* Another manager owns the store and its address is known: clients can be redirected. */
static bool is_follower(struct service *s)
{
	char url[SKV_URL_MAX];

	return skv_cluster_state_get(s->cluster) == SKV_CORE_STANDBY &&
	       skv_service_owner_url(s->service, 0, url) == SKV_OK;
}

static int make_objects(struct service *s, struct skv_error *err)
{
	assert(skv_thread_locks == 0); /* a storage's directory may hang */
	return skv_compat_has_objects(s->compat)
		       ? skv_compat_make(s->compat, s->cluster, err)
		       : skv_defaults_make(s->p, s->compat, s->cluster, err);
}

/* Returns true for a temporary failure, or if other managers that own partitions cannot be asked
 * now. */
static bool is_early(const struct service *s, int rc)
{
	return rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER ||
	       (rc == SKV_E_UNAVAILABLE && skv_cluster_may_answer(s->cluster) != SKV_OK);
}

static bool has_first(const struct service *s)
{
	return skv_cluster_partition_may_answer(s->cluster, 0) == SKV_OK;
}

static void log_owner(const struct service *s)
{
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME];
	uint64_t left;

	skv_cluster_leader(s->cluster, self, owner, &left);
	skv_log(SKV_LOG_INFO, "main", *owner ? "standby: this manager does not own the store %s"
					     : "not ready: nobody owns the store %s yet",
		s->store_shown);
}

/* Waits until the default objects exist, whoever owns the store meanwhile. They are made by who
 * owns the first partition; where that is another one, *made is false. */
static int await_defaults(struct service *s, bool *made, struct skv_error *err)
{
	int rc = SKV_E_NOT_READY;
	bool told = false;

	while (!atomic_load(&s->stopping) && is_early(s, rc)) {
		if (skv_cluster_wait_ready(s->cluster, POLL_MS) == SKV_OK) {
			*made = has_first(s);
			if (*made && !skv_cluster_has_storages(s->cluster))
				skv_service_hold_calls(s->service);
			rc = *made ? make_objects(s, err) : SKV_OK;
		} else if (!told && skv_cluster_state_get(s->cluster) == SKV_CORE_STANDBY) {
			told = true;
			log_owner(s);
			if (open_for_business(s, err) != SKV_OK)
				return SKV_E_INTERNAL;
		}
		if (rc != SKV_OK && is_follower(s))
			skv_httpd_open(s->httpd);
	}
	return rc;
}

/* Makes missing default objects later: the owner of the first partition may have ended before it
 * made them. */
static void make_later(struct service *s)
{
	const struct timespec pause = { 0, POLL_MS * 1000 * 1000 };
	int rc = SKV_E_NOT_OWNER;
	struct skv_error err;

	while (!atomic_load(&s->stopping) && is_early(s, rc)) {
		nanosleep(&pause, NULL);
		if (has_first(s))
			rc = make_objects(s, &err);
	}
	if (!atomic_load(&s->stopping) && rc != SKV_OK)
		skv_log(SKV_LOG_ERROR, "main", "%s", err.message);
}

/* Waits until a storage is usable: after a start each one is checked first. */
static void await_storage(struct service *s)
{
	const struct timespec pause = { 0, 20 * 1000 * 1000 };
	unsigned rounds = 0;
	struct skv_error err;

	while (!atomic_load(&s->stopping) && skv_cluster_ready(s->cluster, &err) != SKV_OK) {
		if (++rounds == 100)
			skv_log(SKV_LOG_WARN, "main", "not ready yet: %s", err.message);
		/* open the port now, because waiting may last long */
		if (rounds == 500 && open_for_business(s, &err) != SKV_OK)
			skv_log(SKV_LOG_ERROR, "main", "%s", err.message);
		nanosleep(&pause, NULL);
	}
}

static int publish_all(struct service *s, struct skv_error *err)
{
	const char *url = s->service->advertised;
	int rc = skv_compat_publish(s->compat, s->cluster, err);

	if (rc == SKV_OK && *url)
		rc = skv_node_publish(s->cluster, SKV_NODE_URL, url, err);
	if (rc == SKV_OK) /* before the address */
		rc = skv_node_publish(s->cluster, SKV_NODE_ASK,
				      skv_auth_manager_token(&s->service->auth), err);
	return rc == SKV_OK ? skv_node_publish(s->cluster, SKV_NODE_PEER, s->service->peer, err)
			    : rc;
}

/* Publishes this manager's address for the others. Retried, because the store may be busy for
 * long. */
static void publish(struct service *s)
{
	const struct timespec pause = { 0, POLL_MS * 1000 * 1000 };
	struct skv_error err;

	while (!atomic_load(&s->stopping) && publish_all(s, &err) != SKV_OK)
		nanosleep(&pause, NULL);
}

void *serve_begin(void *arg)
{
	struct service *s = arg;
	struct skv_error err;
	bool made = true;
	int rc;

	skv_thread_waits = true;
	publish(s);
	rc = await_defaults(s, &made, &err);
	if (rc == SKV_OK) {
		skv_service_release_ready(s->service);
		skv_httpd_open(s->httpd);
		await_storage(s);
		rc = skv_compat_start(s->compat, &err);
	}
	if (atomic_load(&s->stopping))
		return NULL;
	if (rc == SKV_OK) {
		say_ready(s);
		release_starter(s);
	} else {
		skv_log(SKV_LOG_ERROR, "main", "%s", err.message);
		serve_end(s, EXIT_PROBLEM);
	}
	if (!made)
		make_later(s);
	return NULL;
}
