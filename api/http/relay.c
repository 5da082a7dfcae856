/*
 * relay.c - forwards calls on one thread with libcurl's multi interface. See skv/relay.h.
 *
 * Callers leave calls in a list; the thread takes them, drives all transfers, and reports each when
 * it ends. Transfers keep their handle and libcurl its connections, so a call costs no handshake.
 * One lock protects the list; everything else belongs to the thread. Without calls the thread
 * sleeps.
 */
#include <skv/relay.h>

#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <skv/check.h>
#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/mem.h>

#define TICK_MS 50 /* calls that run are asked so often whether they are given up */
#define IDLE_MS 3600000
#define CONNECTIONS 128L /* kept open */

/* A transfer, or one that may be used again. */
struct relay_work {
	CURL *curl;
	struct curl_slist *lines;
	struct skv_relay_call *call; /* NULL: idle */
	bool too_large;
	char why[CURL_ERROR_SIZE];
	struct relay_work *next;
};

struct skv_relay {
	struct skv_http_tls tls;
	CURLM *multi;
	pthread_t thread;
	struct skv_mutex lock; /* of the two that follow */
	struct skv_relay_call *come;
	bool stopping;
	/* the thread's */
	struct relay_work *idle;
	struct skv_relay_call *running; /* by next */
	uint64_t asked_ms;
};

/* ---- one call -------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
	struct relay_work *w = ctx;
	struct skv_relay_call *c = w->call;

	(void)one;
	if (n > c->answer_max - c->answer.len) {
		w->too_large = true;
		return 0;
	}
	skv_put_bytes(&c->answer, data, n);
	return c->answer.failed ? 0 : n;
}

static void keep_value(struct skv_relay_header *h, const char *line, size_t n)
{
	const size_t at = strlen(h->name) + 1;

	if (n <= at || line[at - 1] != ':' || strncasecmp(line, h->name, at - 1) != 0)
		return;
	line += at;
	n -= at;
	for (; n > 0 && (*line == ' ' || *line == '\t'); n--)
		line++;
	while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' '))
		n--;
	if (n >= sizeof h->value)
		return;
	memcpy(h->value, line, n);
	h->value[n] = '\0';
}

static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
	struct relay_work *w = ctx;

	(void)one;
	for (unsigned i = 0; i < w->call->n_want; i++)
		keep_value(&w->call->want[i], line, n);
	return n;
}

static bool set_lines(struct relay_work *w)
{
	const struct skv_relay_call *c = w->call;

	SKV_CHECK(!w->lines && c->n_lines <= SKV_RELAY_LINES);
	for (unsigned i = 0; i <= c->n_lines; i++) {
		/* No "Expect: 100-continue": it costs a round trip. */
		struct curl_slist *more =
			curl_slist_append(w->lines, i < c->n_lines ? c->line[i] : "Expect:");

		if (!more)
			return false;
		w->lines = more;
	}
	return true;
}

static void set_options(const struct skv_relay *r, struct relay_work *w)
{
	static const char none[] = "";
	const struct skv_relay_call *c = w->call;

	http_set_common(w->curl, c->url, &r->tls, w->why);
	curl_easy_setopt(w->curl, CURLOPT_PRIVATE, w);
	curl_easy_setopt(w->curl, CURLOPT_HTTPHEADER, w->lines);
	curl_easy_setopt(w->curl, CURLOPT_TIMEOUT_MS, http_milliseconds(c->timeout_ms));
	curl_easy_setopt(w->curl, CURLOPT_CONNECTTIMEOUT_MS, http_milliseconds(c->connect_ms));
	curl_easy_setopt(w->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(w->curl, CURLOPT_WRITEDATA, w);
	curl_easy_setopt(w->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(w->curl, CURLOPT_HEADERDATA, w);
	if (strcmp(c->method, "GET") == 0)
		return;
	curl_easy_setopt(w->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(w->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->n_body);
	curl_easy_setopt(w->curl, CURLOPT_POSTFIELDS, c->body ? c->body : none);
	if (strcmp(c->method, "POST") != 0)
		curl_easy_setopt(w->curl, CURLOPT_CUSTOMREQUEST, c->method);
}

static struct relay_work *take_work(struct skv_relay *r)
{
	struct relay_work *w = r->idle;

	if (w) {
		SKV_CHECK(!w->call && !w->lines);
		r->idle = w->next;
		return w;
	}
	w = skv_calloc(1, sizeof *w);
	if (w)
		w->curl = curl_easy_init();
	if (!w || w->curl)
		return w;
	skv_free(w);
	return NULL;
}

/* The call ends here; `w` may be NULL. */
static void finish(struct skv_relay *r, struct skv_relay_call *c, int rc)
{
	struct relay_work *w = c->work;
	long sent = 0;

	SKV_CHECK(rc != SKV_PENDING && (!w || w->call == c));

	c->rc = rc;
	if (w) {
		if (rc == SKV_OK)
			curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &c->status);
		curl_easy_getinfo(w->curl, CURLINFO_REQUEST_SIZE, &sent);
		curl_slist_free_all(w->lines);
		w->lines = NULL;
		w->call = NULL;
		w->next = r->idle;
		r->idle = w;
	}
	c->sent = sent > 0;
	c->work = NULL;
	c->done(c->ctx);
}

static void begin(struct skv_relay *r, struct skv_relay_call *c)
{
	struct relay_work *w = take_work(r);

	c->work = w;
	if (w)
		w->call = c;
	if (!w || !set_lines(w)) {
		finish(r, c, SKV_E_NOMEM);
		return;
	}
	w->too_large = false;
	set_options(r, w);
	if (curl_multi_add_handle(r->multi, w->curl) != CURLM_OK) {
		finish(r, c, SKV_E_NOMEM);
		return;
	}
	c->next = r->running;
	r->running = c;
}

static void end(struct skv_relay *r, struct skv_relay_call *c, int rc)
{
	struct skv_relay_call **at = &r->running;

	while (*at && *at != c)
		at = &(*at)->next;
	if (!SKV_CHECK(*at == c && c->work))
		return;
	*at = c->next;
	curl_multi_remove_handle(r->multi, c->work->curl);
	finish(r, c, rc);
}

/* Of the server, without path and query: those are the client's matter. */
static void explain(const struct relay_work *w, CURLcode code)
{
	struct skv_relay_call *c = w->call;
	const char *host = strstr(c->url, "://");
	char server[SKV_RELAY_VALUE];
	const size_t n = host ? (size_t)(host - c->url) + 3 + strcspn(host + 3, "/") : 0;

	snprintf(server, sizeof server, "%.*s", (int)n, c->url);
	http_explain(code, server, w->why, &c->why);
}

static int outcome(const struct relay_work *w, CURLcode code)
{
	if (code == CURLE_OK)
		return SKV_OK;
	if (w->too_large)
		return SKV_E_TOO_LARGE;
	if (code == CURLE_OUT_OF_MEMORY || w->call->answer.failed)
		return SKV_E_NOMEM;
	explain(w, code);
	return SKV_E_NETWORK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void read_messages(struct skv_relay *r)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(r->multi, &left)) != NULL) {
		struct relay_work *w = NULL;
		const CURLcode code = m->data.result;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&w);
		SKV_CHECK(m->msg == CURLMSG_DONE && w && w->call);
		end(r, w->call, outcome(w, code));
	}
}

static void drop_given_up(struct skv_relay *r)
{
	const uint64_t now = skv_now_ms(&skv_clock_system);
	struct skv_relay_call *next;

	if (now - r->asked_ms < TICK_MS)
		return;
	r->asked_ms = now;
	for (struct skv_relay_call *c = r->running; c; c = next) {
		next = c->next;
		if (c->given_up && c->given_up(c->ctx))
			end(r, c, SKV_E_NETWORK);
	}
}

/* Takes new calls. Returns false if the relay ends. */
static bool take_come(struct skv_relay *r)
{
	struct skv_relay_call *c, *next;
	bool stopping;

	skv_mutex_lock(&r->lock);
	c = r->come;
	r->come = NULL;
	stopping = r->stopping;
	skv_mutex_unlock(&r->lock);
	for (; c; c = next) {
		next = c->next;
		begin(r, c);
	}
	return !stopping;
}

static void *drive(void *arg)
{
	struct skv_relay *r = arg;
	int running;

	while (take_come(r)) {
		curl_multi_perform(r->multi, &running);
		read_messages(r);
		drop_given_up(r);
		curl_multi_poll(r->multi, NULL, 0, r->running ? TICK_MS : IDLE_MS, NULL);
	}
	while (r->running)
		end(r, r->running, SKV_E_NETWORK);
	return NULL;
}

static void release(struct skv_relay *r)
{
	while (r->idle) {
		struct relay_work *w = r->idle;

		r->idle = w->next;
		curl_easy_cleanup(w->curl);
		skv_free(w);
	}
	curl_multi_cleanup(r->multi);
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

int skv_relay_start(struct skv_relay **out, struct skv_error *err)
{
	struct skv_relay *r = skv_calloc(1, sizeof *r);

	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	http_init_curl();
	skv_mutex_init(&r->lock);
	r->tls = http_default_tls();
	r->multi = curl_multi_init();
	if (r->multi)
		curl_multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS);
	if (!r->multi || pthread_create(&r->thread, NULL, drive, r) != 0) {
		release(r);
		return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
	}
	*out = r;
	return SKV_OK;
}

void skv_relay_stop(struct skv_relay *r)
{
	if (!r)
		return;
	skv_mutex_lock(&r->lock);
	r->stopping = true;
	skv_mutex_unlock(&r->lock);
	curl_multi_wakeup(r->multi);
	pthread_join(r->thread, NULL);
	SKV_CHECK(!r->come && !r->running);
	release(r);
}

void skv_relay_call(struct skv_relay *r, struct skv_relay_call *c)
{
	SKV_CHECK(c->done && (c->n_want == 0 || c->want));
	skv_buf_init(&c->answer);
	skv_error_clear(&c->why);
	c->work = NULL;
	skv_mutex_lock(&r->lock);
	SKV_CHECK(!r->stopping);
	c->next = r->come;
	r->come = c;
	skv_mutex_unlock(&r->lock);
	curl_multi_wakeup(r->multi);
}
