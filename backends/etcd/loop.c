/*
 * loop.c - the client's thread: takes calls from the queue, keeps a connection to one endpoint, and
 * decides whether a call whose try has ended is retried.
 *
 * A try that certainly was not executed, or that only reads, goes back into the queue until its
 * caller gives up. When a connection breaks, times out or drains, the client fails over to the next
 * endpoint.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/clock.h>

#include "internal.h"

#define AGAIN_MS 20u           /* before a second try, doubled for each one more, */
#define AGAIN_MAX_MS 200u      /* up to this */
#define PING_MS 5000u          /* etcd takes more frequent pings of a silent client as abuse */
#define LOGIN_MS 1000u         /* after a refused login; each costs the server much time */

const struct etcd_method etcd_login_method = { .path = "/etcdserverpb.Auth/Authenticate",
					       .login = true };

static uint64_t backoff_us(uint32_t tries)
{
	const uint64_t ms = (uint64_t)AGAIN_MS << (tries < 6 ? tries : 6);

	return (ms < AGAIN_MAX_MS ? ms : AGAIN_MAX_MS) * 1000;
}

/* ---- the list of running calls --------------------------------------------------------------- */

static void link_running(struct skv_etcd *c, struct etcd_call *call)
{
	call->prev = NULL;
	call->next = c->running;
	if (call->next)
		call->next->prev = call;
	c->running = call;
}

static void unlink_running(struct skv_etcd *c, struct etcd_call *call)
{
	assert(call->stream == 0);
	if (call->prev)
		call->prev->next = call->next;
	else
		c->running = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->prev = call->next = NULL;
}

/* ---- the end of a try ------------------------------------------------------------------------ */

/* Etcd's token of an Authenticate answer: field 2. */
static bool take_token(struct skv_etcd *c, const struct etcd_call *call)
{
	struct skv_rd r = skv_rd_make(call->in.data + ETCD_PREFIX, call->in.len - ETCD_PREFIX);
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.number != 2 || f.wire != PB_BYTES || f.n == 0 || f.n > ETCD_TOKEN_MAX)
			continue;
		for (size_t i = 0; i < f.n; i++)
			if (f.p[i] <= ' ' || f.p[i] > '~')
				return false;
		etcd_get_text(&f, c->token, sizeof c->token);
		return true;
	}
	return false;
}

static void login_ended(struct skv_etcd *c, struct etcd_call *call)
{
	struct skv_error err = { 0 };
	const enum etcd_verdict v = etcd_judge(c, call, &err);

	assert(call == c->login);
	c->login = NULL;
	c->token_number++;
	c->token[0] = '\0';
	if (v == ETCD_FINE && call->in.len >= ETCD_PREFIX && take_token(c, call))
		c->logged_in = true;
	else if (strstr(call->message, "authentication is not enabled"))
		c->logged_in = true; /* without a token */
	else if (v == ETCD_FINAL)
		c->login_err = err;
	else
		etcd_broken(c, "the login failed: %s", v == ETCD_FINE ? "there is no token in the "
			    "answer" : err.message);
	if (!c->logged_in)
		c->login_us = skv_now_us() + LOGIN_MS * 1000;
	skv_mutex_lock(&c->lock);
	etcd_call_free_locked(c, call);
	skv_mutex_unlock(&c->lock);
}

static void finish_locked(struct skv_etcd *c, struct etcd_call *call, const struct skv_error *err)
	SKV_REQUIRES(c->lock)
{
	call->err = *err;
	if (call->abandoned) {
		etcd_call_free_locked(c, call);
		return;
	}
	call->state = ETCD_DONE;
	if (call->is_watch)
		etcd_watch_end_locked(call);
	skv_cond_signal(&call->done);
}

static void retry_locked(struct skv_etcd *c, struct etcd_call *call, const struct skv_error *err)
	SKV_REQUIRES(c->lock)
{
	call->err = *err;
	if (call->abandoned) {
		etcd_call_free_locked(c, call);
		return;
	}
	call->not_before_us = skv_now_us() + backoff_us(call->tries++);
	call->sent = call->too_long = call->lost = false;
	call->out_at = 0;
	call->http = 0;
	call->grpc = -1;
	call->h2_error = 0;
	call->message[0] = '\0';
	skv_buf_clear(&call->in);
	if (call->is_watch)
		etcd_watch_restart_locked(call);
	etcd_queue_locked(c, call);
}

void etcd_call_ended(struct skv_etcd *c, struct etcd_call *call)
{
	struct skv_error err = { 0 };
	enum etcd_verdict v;

	ASSERT_ETCD_THREAD(c);
	unlink_running(c, call);
	if (call->method->login) {
		login_ended(c, call);
		return;
	}
	v = etcd_judge(c, call, &err);
	if (v == ETCD_LEAVE) /* other calls wait there for a lost leader */
		etcd_broken(c, "%s", err.message);
	if (v == ETCD_LOGIN && call->token == c->token_number)
		c->logged_in = false;
	if (v == ETCD_FINE || v == ETCD_FINAL)
		c->failures = 0;
	skv_mutex_lock(&c->lock);
	if (!call->sent && v == ETCD_UNKNOWN && !call->is_watch)
		v = ETCD_AGAIN;
	if (call->is_watch && v != ETCD_FINAL) /* a watch has no end of its own */
		retry_locked(c, call, &err);
	else if (v == ETCD_FINE || v == ETCD_FINAL)
		finish_locked(c, call, &err);
	else if (v == ETCD_UNKNOWN && call->writes) {
		err.status = SKV_E_UNKNOWN_OUTCOME;
		finish_locked(c, call, &err);
	} else
		retry_locked(c, call, &err);
	skv_mutex_unlock(&c->lock);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* The connection is over: its calls end, and the next endpoint's turn comes. */
static void move_on(struct skv_etcd *c)
{
	char why[SKV_MESSAGE_MAX];

	snprintf(why, sizeof why, "%s", *c->conn.why ? c->conn.why : "the server leaves");
	etcd_disconnect(c);
	skv_mutex_lock(&c->lock);
	snprintf(c->trouble, sizeof c->trouble, "%s", why);
	skv_mutex_unlock(&c->lock);
	while (c->running) {
		struct etcd_call *call = c->running;

		call->stream = 0;
		call->lost = call->grpc < 0;
		if (call->lost)
			snprintf(call->message, sizeof call->message, "%.190s", why);
		etcd_call_ended(c, call);
	}
	*c->conn.why = '\0';
	c->conn.draining = false;
	c->at = (c->at + 1) % c->n_node;
	c->failures++;
	if (c->failures >= c->n_node)
		c->connect_us = skv_now_us() + backoff_us(c->failures / c->n_node);
}

/* Of a connection that drains: nothing but watches, and calls that nobody waits for. */
static bool may_leave(struct skv_etcd *c)
{
	bool yes = true;

	skv_mutex_lock(&c->lock);
	for (struct etcd_call *call = c->running; call && yes; call = call->next)
		yes = call->is_watch || call->abandoned || call->method->login;
	skv_mutex_unlock(&c->lock);
	return yes;
}

/* Pings a server that is silent while somebody waits, and gives it up if it stays so. Returns when
 * to look again. */
static uint64_t keep_alive(struct skv_etcd *c, uint64_t now)
{
	struct etcd_conn *n = &c->conn;
	uint64_t silent_us = (n->heard ? c->watch_silent_ms : c->silent_ms) * 1000ull, due;

	for (struct etcd_call *call = c->running; call; call = call->next)
		if (!call->is_watch)
			silent_us = c->silent_ms * 1000ull;
	if (!c->running && !n->waits_us)
		return ETCD_NEVER;
	if (n->waits_us) {
		due = n->waits_us + silent_us;
		if (now >= due)
			etcd_broken(c, "silent for %u ms", (unsigned)(silent_us / 1000));
		return due;
	}
	due = n->heard_us + silent_us;
	if (!n->may_ping && due < n->pinged_us + PING_MS * 1000)
		due = n->pinged_us + PING_MS * 1000;
	if (now < due)
		return due;
	nghttp2_submit_ping(n->h2, NGHTTP2_FLAG_NONE, NULL);
	n->pinged_us = n->waits_us = now;
	n->may_ping = false;
	return now + silent_us;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Running calls that their callers left, or whose watches want something. */
static void attend(struct skv_etcd *c)
{
	struct etcd_call *next;
	bool any;

	skv_mutex_lock(&c->lock);
	any = c->attention;
	c->attention = false;
	skv_mutex_unlock(&c->lock);
	if (!any)
		return;
	for (struct etcd_call *call = c->running; call; call = next) {
		bool abandoned;

		next = call->next;
		skv_mutex_lock(&c->lock);
		abandoned = call->abandoned;
		skv_mutex_unlock(&c->lock);
		if (abandoned && call->stream > 0)
			nghttp2_submit_rst_stream(c->conn.h2, NGHTTP2_FLAG_NONE, call->stream,
						  NGHTTP2_CANCEL);
		else if (!abandoned && call->is_watch)
			etcd_watch_attend(c, call);
	}
}

static bool needs_login(const struct skv_etcd *c) { return *c->user && !c->logged_in; }

/* AuthenticateRequest: name 1, password 2. */
static void log_in(struct skv_etcd *c)
{
	struct etcd_call *call = etcd_call_new(c, &etcd_login_method, NULL);

	assert(!c->login);
	if (!call)
		return;
	etcd_pb_bytes(&call->out, 1, skv_etcd_text(c->user));
	etcd_pb_bytes(&call->out, 2, skv_etcd_text(c->password));
	etcd_set_prefix(&call->out);
	call->state = ETCD_RUNNING;
	c->login = call;
	link_running(c, call);
	etcd_submit(c, call);
}

/* Takes the next due call, or NULL. */
static struct etcd_call *take(struct skv_etcd *c, uint64_t now)
{
	struct etcd_call *call;

	skv_mutex_lock(&c->lock);
	call = c->queue;
	while (call && call->not_before_us > now)
		call = call->next;
	if (call) {
		etcd_unqueue_locked(c, call);
		call->state = ETCD_RUNNING;
	}
	skv_mutex_unlock(&c->lock);
	if (call)
		link_running(c, call);
	return call;
}

/* When the next queued call may be started. */
static uint64_t queue_due(struct skv_etcd *c)
{
	const bool waits = needs_login(c) && c->login_err.status == SKV_OK;
	uint64_t due = ETCD_NEVER;

	if (c->login || c->conn.draining || !c->conn.heard)
		return due;
	skv_mutex_lock(&c->lock);
	for (const struct etcd_call *call = c->queue; call; call = call->next)
		if (call->not_before_us < due)
			due = call->not_before_us;
	skv_mutex_unlock(&c->lock);
	return waits && due < c->login_us ? c->login_us : due;
}

/* Ends the calls that wait for a refused login. */
static void refuse_all(struct skv_etcd *c, uint64_t now)
{
	struct etcd_call *call;

	while ((call = take(c, now))) {
		unlink_running(c, call);
		skv_mutex_lock(&c->lock);
		finish_locked(c, call, &c->login_err);
		skv_mutex_unlock(&c->lock);
	}
}

static void start_calls(struct skv_etcd *c, uint64_t now)
{
	struct etcd_call *call;

	if (needs_login(c) && now < c->login_us) {
		if (c->login_err.status != SKV_OK)
			refuse_all(c, now);
	} else if (needs_login(c)) {
		skv_error_clear(&c->login_err);
		log_in(c);
	} else {
		while (!c->conn.draining && (call = take(c, now)))
			etcd_submit(c, call);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool is_wanted(struct skv_etcd *c, bool *stopping)
{
	bool wanted;

	skv_mutex_lock(&c->lock);
	wanted = c->queue != NULL;
	*stopping = c->stopping;
	skv_mutex_unlock(&c->lock);
	return wanted;
}

static void wait(struct skv_etcd *c, uint64_t due)
{
	const uint64_t now = skv_now_us();
	struct pollfd p[2] = { { c->wake, POLLIN, 0 }, { c->conn.fd, POLLIN, 0 } };
	uint64_t ignored;
	int ms = -1;

	if (due != ETCD_NEVER)
		ms = due > now ? (int)((due - now) / 1000 + 1) : 0;
	if (c->conn.wants_write)
		p[1].events |= POLLOUT;
	c->conn.readable = false;
	if (poll(p, 2, ms) <= 0)
		return;
	c->conn.readable = p[1].revents & (POLLIN | POLLHUP | POLLERR);
	if (p[0].revents && read(c->wake, &ignored, sizeof ignored) < 0)
		assert(errno == EAGAIN || errno == EINTR);
}

/* Does what is due on a connection; returns when to do so next. */
static uint64_t serve(struct skv_etcd *c)
{
	const uint64_t now = skv_now_us();
	uint64_t due, alive;

	/* First, so that no call is given to a connection that is over. */
	if (c->conn.readable)
		etcd_receive(c);
	attend(c);
	if (!*c->conn.why && queue_due(c) <= now)
		start_calls(c, now);
	alive = keep_alive(c, now);
	if (!*c->conn.why)
		etcd_send(c);
	if (*c->conn.why || (c->conn.draining && may_leave(c))) {
		move_on(c);
		return 0;
	}
	due = queue_due(c);
	return due < alive ? due : alive;
}

static void connect_next(struct skv_etcd *c)
{
	if (!etcd_connect(c)) {
		move_on(c);
		return;
	}
	skv_mutex_lock(&c->lock);
	c->trouble[0] = '\0';
	skv_mutex_unlock(&c->lock);
}

void *etcd_loop(void *client)
{
	struct skv_etcd *c = client;
	bool stopping = false;

	c->owner = skv_thread();
	while (!stopping) {
		const bool wanted = is_wanted(c, &stopping);
		uint64_t due = ETCD_NEVER;

		if (stopping)
			break;
		if (c->conn.fd >= 0)
			due = serve(c);
		else if (wanted && skv_now_us() >= c->connect_us)
			connect_next(c), due = 0;
		else if (wanted)
			due = c->connect_us;
		wait(c, due);
	}
	snprintf(c->conn.why, sizeof c->conn.why, "the client is closed");
	move_on(c);
	return NULL;
}
