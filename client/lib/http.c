/*
 * http.c - pool of libcurl handles (see http.h).
 *
 * Owns the idle handles; a call takes one (or makes one) and gives it back, so that as many
 * connections stay alive as calls have ever run at a time. libcurl's own memory does not go through
 * skv/mem.h: what it cannot allocate comes back as CURLE_OUT_OF_MEMORY.
 */
#include "http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/mem.h>

struct connection {
	CURL *curl;
	struct connection *next;
};

struct skv_http {
	struct curl_slist *headers[2]; /* fixed; [1] for protobuf */
	struct skv_mutex lock;      /* protects idle */
	struct connection *idle;
};

struct answer {
	struct skv_buf *body;
	size_t first; /* length of body before */
	bool too_large;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

static bool add_header(struct curl_slist **headers, const char *line)
{
	struct curl_slist *more = curl_slist_append(*headers, line);

	if (more)
		*headers = more;
	return more != NULL;
}

static bool add_headers(struct skv_http *h, const char *auth)
{
	static const char *const types[2][2] = {
		{ "Content-Type: application/json", "Accept: application/json" },
		{ "Content-Type: application/x-protobuf", "Accept: application/x-protobuf" },
	};
	bool ok = true;

	for (int i = 0; i < 2 && ok; i++)
		/* No "Expect: 100-continue": it costs a round trip for each large request. */
		ok = add_header(&h->headers[i], types[i][0]) &&
		     add_header(&h->headers[i], types[i][1]) &&
		     add_header(&h->headers[i], "Expect:") &&
		     (!auth || add_header(&h->headers[i], auth));
	return ok;
}

int skv_http_create(const char *token, struct skv_http **out, struct skv_error *err)
{
	struct skv_http *h = skv_calloc(1, sizeof *h);
	struct skv_buf auth = { 0 };
	bool ok;

	if (!h)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	pthread_once(&curl_once, init_curl);
	skv_mutex_init(&h->lock);
	if (token) {
		skv_buf_printf(&auth, "Authorization: Bearer %s", token);
		skv_put_u8(&auth, 0);
	}
	ok = !auth.failed && add_headers(h, (const char *)auth.data);
	skv_buf_destroy(&auth);
	if (!ok) {
		skv_http_destroy(h);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	*out = h;
	return SKV_OK;
}

void skv_http_destroy(struct skv_http *h)
{
	if (!h)
		return;
	while (h->idle) {
		struct connection *c = h->idle;

		h->idle = c->next;
		curl_easy_cleanup(c->curl);
		skv_free(c);
	}
	curl_slist_free_all(h->headers[0]);
	curl_slist_free_all(h->headers[1]);
	skv_mutex_destroy(&h->lock);
	skv_free(h);
}

static struct connection *take(struct skv_http *h)
{
	struct connection *c;

	skv_mutex_lock(&h->lock);
	c = h->idle;
	if (c)
		h->idle = c->next;
	skv_mutex_unlock(&h->lock);
	if (c)
		return c;
	c = skv_calloc(1, sizeof *c);
	if (c)
		c->curl = curl_easy_init();
	if (c && !c->curl) {
		skv_free(c);
		c = NULL;
	}
	return c;
}

static void give(struct skv_http *h, struct connection *c)
{
	skv_mutex_lock(&h->lock);
	c->next = h->idle;
	h->idle = c;
	skv_mutex_unlock(&h->lock);
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
	struct answer *a = ctx;

	(void)one;
	if (a->body->len - a->first + n > SKV_HTTP_ANSWER_MAX) {
		a->too_large = true;
		return 0;
	}
	skv_put_bytes(a->body, data, n);
	return a->body->failed ? 0 : n;
}

static void set_options(CURL *curl, const struct skv_http *h, const struct skv_http_request *r,
			struct answer *a)
{
	static const char none[] = "";
	long ms = r->timeout_ms < 1 ? 1 : r->timeout_ms > 86400000 ? 86400000 : (long)r->timeout_ms;

	curl_easy_reset(curl); /* options only: the connection stays */
	curl_easy_setopt(curl, CURLOPT_URL, r->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* managers are named directly */
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, h->headers[r->protobuf]);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ms);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
	if (strcmp(r->method, "GET") == 0)
		return;
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body ? r->body : none);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
}

static int explain(CURLcode code, const struct answer *a, const char *url, struct skv_error *err)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no answer in time", url);
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		return skv_fail(err, SKV_E_INVALID, "urls", "%s is no http URL", url);
	if (a->too_large)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL, "%s: the answer is too large", url);
	if (code == CURLE_OUT_OF_MEMORY || a->body->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return skv_fail(err, SKV_E_NETWORK, NULL, "%s: %s", url, curl_easy_strerror(code));
}

int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err)
{
	struct answer a = { .body = body, .first = body->len };
	struct connection *c = take(h);
	CURLcode code;

	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	set_options(c->curl, h, r, &a);
	code = curl_easy_perform(c->curl);
	if (code == CURLE_OK)
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, http_status);
	give(h, c);
	return code == CURLE_OK ? SKV_OK : explain(code, &a, r->url, err);
}
