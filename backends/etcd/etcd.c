/*
 * etcd.c - clients, and calls as their callers see them: encoded, queued, waited for.
 *
 * Callers sleep on their call's condition until the client's thread has ended it or its deadline
 * has passed; so a thread that hangs in a name server or a handshake delays nobody longer than
 * that. Any thread; the client's lock is held for a few instructions at a time.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "internal.h"

#define TIMEOUT_MS 3000u
#define SILENT_MS 1000u
#define WATCH_SILENT_MS 10000u
#define WATCH_SILENT_MIN_MS 5000u

struct skv_etcd_bytes skv_etcd_text(const char *s)
{
	return (struct skv_etcd_bytes){ s, strlen(s) };
}

void skv_etcd_answer_free(struct skv_etcd_answer *a) { skv_buf_destroy(&a->bytes); }

struct skv_etcd_bytes skv_etcd_prefix_end(struct skv_etcd_bytes prefix, uint8_t *out)
{
	size_t n = prefix.n;

	memcpy(out, prefix.p, n);
	while (n > 0 && out[n - 1] == 0xff)
		n--;
	if (n > 0)
		out[n - 1]++;
	else
		out[n++] = 0; /* no such key: an end of 0 means all keys from `prefix` on in etcd */
	return (struct skv_etcd_bytes){ out, n };
}

/* ---- the queue ------------------------------------------------------------------------------- */

void etcd_wake(struct skv_etcd *c)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full: then the thread is awake anyway. */
	while (write(c->wake, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void etcd_queue_locked(struct skv_etcd *c, struct etcd_call *call)
{
	assert(skv_mutex_held(&c->lock) && !call->abandoned);
	call->state = ETCD_QUEUED;
	call->next = NULL;
	call->prev = c->queue_last;
	if (call->prev)
		call->prev->next = call;
	else
		c->queue = call;
	c->queue_last = call;
}

void etcd_unqueue_locked(struct skv_etcd *c, struct etcd_call *call)
{
	assert(skv_mutex_held(&c->lock) && call->state == ETCD_QUEUED);
	if (call->prev)
		call->prev->next = call->next;
	else
		c->queue = call->next;
	if (call->next)
		call->next->prev = call->prev;
	else
		c->queue_last = call->prev;
	call->prev = call->next = NULL;
}

void etcd_call_free_locked(struct skv_etcd *c, struct etcd_call *call)
{
	assert(skv_mutex_held(&c->lock) && c->n_calls > 0);
	c->n_calls--;
	skv_cond_destroy(&call->done);
	skv_buf_destroy(&call->out);
	skv_buf_destroy(&call->in);
	skv_free(call);
}

struct etcd_call *etcd_call_new(struct skv_etcd *c, const struct etcd_method *m,
				struct skv_error *err)
{
	static const uint8_t prefix[ETCD_PREFIX];
	struct etcd_call *call = skv_calloc(1, sizeof *call);
	bool room;

	if (!call) {
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		return NULL;
	}
	skv_mutex_lock(&c->lock);
	room = c->n_calls < SKV_ETCD_CALLS || m->login;
	c->n_calls += room;
	skv_mutex_unlock(&c->lock);
	if (!room) {
		skv_fail(err, SKV_E_TOO_MANY, "store", "%u calls of etcd are in flight already",
			 SKV_ETCD_CALLS);
		skv_free(call);
		return NULL;
	}
	call->method = m;
	call->writes = m->writes;
	call->grpc = -1;
	skv_cond_init(&call->done);
	skv_put_bytes(&call->out, prefix, sizeof prefix);
	return call;
}

void etcd_set_prefix(struct skv_buf *b)
{
	const size_t n = b->len - ETCD_PREFIX;

	assert(b->failed || b->len >= ETCD_PREFIX);
	for (unsigned i = 0; i < 4 && !b->failed; i++)
		b->data[1 + i] = (uint8_t)(n >> (24 - 8 * i));
}

/* ---- callers --------------------------------------------------------------------------------- */

/* The deadline has passed. Leaves the call to the thread, or ends it. */
static int give_up_locked(struct skv_etcd *c, struct etcd_call *call, uint32_t timeout_ms,
			  struct skv_error *err) SKV_REQUIRES(c->lock)
{
	const bool unknown = call->state == ETCD_RUNNING && call->sent && call->writes;
	const char *why = call->err.status != SKV_OK ? call->err.message : c->trouble;

	skv_fail(err, unknown ? SKV_E_UNKNOWN_OUTCOME : SKV_E_STORE_IO, "store",
		 "etcd has not answered within %u ms%s%s", timeout_ms, *why ? ": " : "", why);
	if (call->state == ETCD_QUEUED) {
		etcd_unqueue_locked(c, call);
		etcd_call_free_locked(c, call);
	} else {
		call->abandoned = true;
		c->attention = true;
		etcd_wake(c);
	}
	return unknown ? SKV_E_UNKNOWN_OUTCOME : SKV_E_STORE_IO;
}

/* Takes the only message of an answer. */
static bool take_message(struct etcd_call *call, struct skv_buf *bytes, struct skv_rd *message)
{
	const struct skv_buf *in = &call->in;
	size_t n = 0;

	if (in->len < ETCD_PREFIX || in->data[0] != 0)
		return false;
	for (unsigned i = 1; i < ETCD_PREFIX; i++)
		n = n << 8 | in->data[i];
	if (n != in->len - ETCD_PREFIX)
		return false;
	skv_buf_destroy(bytes);
	*bytes = call->in;
	skv_buf_init(&call->in);
	*message = skv_rd_make(bytes->data + ETCD_PREFIX, n);
	return true;
}

int etcd_call_run(struct skv_etcd *c, struct etcd_call *call, uint32_t timeout_ms,
		  struct skv_buf *bytes, struct skv_rd *message, struct skv_error *err)
{
	const uint64_t end = skv_now_us() + (uint64_t)timeout_ms * 1000;
	uint64_t now;
	int rc;

	assert(!call->is_watch && timeout_ms > 0 && !call->method->login);
	skv_mutex_lock(&c->lock);
	if (call->out.failed) {
		etcd_call_free_locked(c, call);
		skv_mutex_unlock(&c->lock);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	etcd_set_prefix(&call->out);
	etcd_queue_locked(c, call);
	etcd_wake(c);
	while (call->state != ETCD_DONE && (now = skv_now_us()) < end)
		skv_cond_wait_ms(&call->done, &c->lock, (end - now + 999) / 1000);
	if (call->state != ETCD_DONE) {
		rc = give_up_locked(c, call, timeout_ms, err);
	} else {
		rc = call->err.status;
		if (rc != SKV_OK && err)
			*err = call->err;
		if (rc == SKV_OK && !take_message(call, bytes, message))
			rc = skv_fail(err, call->writes ? SKV_E_UNKNOWN_OUTCOME : SKV_E_STORE_IO,
				      "store", "etcd's answer is malformed");
		etcd_call_free_locked(c, call);
	}
	skv_mutex_unlock(&c->lock);
	return rc;
}

int etcd_check_history(struct skv_etcd *c, uint64_t cluster_id, uint64_t revision, uint64_t least,
		       struct skv_error *err)
{
	uint64_t first, lost_from, lost_to;

	skv_mutex_lock(&c->lock);
	if (c->cluster_id == 0)
		c->cluster_id = cluster_id;
	first = c->cluster_id;
	if (cluster_id == first && revision > c->revision)
		c->revision = revision;
	if (cluster_id == first && revision < least && !c->lost_from) {
		c->lost_from = least;
		c->lost_to = revision;
	}
	lost_from = c->lost_from;
	lost_to = c->lost_to;
	skv_mutex_unlock(&c->lock);
	if (cluster_id != first)
		return skv_fail(err, SKV_E_FOREIGN, "store",
				"an endpoint belongs to cluster %llx, the others to %llx: correct "
				"the endpoints",
				(unsigned long long)cluster_id, (unsigned long long)first);
	if (lost_from)
		return skv_fail(err, SKV_E_CORRUPT, "store",
				"etcd went back from revision %llu to %llu: acknowledged writes "
				"are lost (was it restored from a snapshot?)",
				(unsigned long long)lost_from, (unsigned long long)lost_to);
	return SKV_OK;
}

/* ---- clients --------------------------------------------------------------------------------- */

static int parse_endpoints(struct skv_etcd *c, const char *text, struct skv_error *err)
{
	for (;; text++) {
		const size_t n = strcspn(text, ",");

		if (c->n_node == SKV_ETCD_ENDPOINTS)
			return skv_fail(err, SKV_E_INVALID, "endpoints",
					"more than %u endpoints of etcd", SKV_ETCD_ENDPOINTS);
		if (!skv_net_node_parse(text, n, SKV_ETCD_PORT, &c->node[c->n_node]))
			return skv_fail(err, SKV_E_INVALID, "endpoints",
					"'%.*s' is not host:port", n < 200 ? (int)n : 200, text);
		c->n_node++;
		text += n;
		if (!*text)
			return SKV_OK;
	}
}

static bool copy_secret(char *out, const char *text)
{
	const size_t n = text ? strlen(text) : 0;

	if (n > SKV_ETCD_SECRET_MAX)
		return false;
	memcpy(out, text ? text : "", n + 1);
	return true;
}

static int read_options(struct skv_etcd *c, const struct skv_etcd_options *o, struct skv_error *err)
{
	c->tls = o->tls;
	c->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
	c->silent_ms = o->silent_ms ? o->silent_ms : SILENT_MS;
	c->watch_silent_ms = o->watch_silent_ms ? o->watch_silent_ms : WATCH_SILENT_MS;
	if (c->watch_silent_ms < WATCH_SILENT_MIN_MS)
		return skv_fail(err, SKV_E_INVALID, "watch_silent_ms", "at least %u",
				WATCH_SILENT_MIN_MS);
	if (!copy_secret(c->user, o->user) || !copy_secret(c->password, o->password))
		return skv_fail(err, SKV_E_INVALID, "user", "user and password have %u bytes at "
				"most", SKV_ETCD_SECRET_MAX);
	if (!*o->tls.cert_file != !*o->tls.key_file)
		return skv_fail(err, SKV_E_INVALID, "cert_file", "cert_file and key_file go "
				"together");
	return parse_endpoints(c, o->endpoints, err);
}

static void destroy(struct skv_etcd *c)
{
	nghttp2_session_callbacks_del(c->callbacks);
	nghttp2_option_del(c->option);
	if (c->wake >= 0)
		close(c->wake);
	skv_mutex_destroy(&c->lock);
	skv_free(c->input);
	explicit_bzero(c->password, sizeof c->password);
	explicit_bzero(c->token, sizeof c->token);
	skv_free(c);
}

int skv_etcd_open(const struct skv_etcd_options *o, struct skv_etcd **out, struct skv_error *err)
{
	struct skv_etcd *c = skv_calloc(1, sizeof *c);
	int rc;

	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&c->lock);
	c->conn.fd = -1;
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = read_options(c, o, err);
	if (rc == SKV_OK && (c->wake < 0 || etcd_h2_init(c) != SKV_OK ||
			     pthread_create(&c->thread, NULL, etcd_loop, c) != 0))
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a client of etcd");
	if (rc == SKV_OK)
		*out = c;
	else
		destroy(c);
	return rc;
}

void skv_etcd_close(struct skv_etcd *c)
{
	if (!c)
		return;
	skv_mutex_lock(&c->lock);
	c->stopping = true;
	etcd_wake(c);
	skv_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	assert(c->n_calls == 0);
	destroy(c);
}
