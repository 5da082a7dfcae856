/*
 * http.c - pool of libcurl handles (see skv/http.h).
 *
 * Owns the idle handles; a call takes one (or creates one) and returns it, so that as many
 * connections stay open as calls have ever run at a time. libcurl's own memory does not go through
 * skv/mem.h: its failures come back as CURLE_OUT_OF_MEMORY.
 */
#include "internal.h"

#include <skv/check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/mem.h>
#include <skv/trace_context.h>

#define KEPT 32L /* open connections of a handle: one to each manager of a store, and more */

struct connection {
	CURL *curl;
	bool http2; /* the last call used HTTP/2 and succeeded */
	CURL *second; /* for hedging: both are NULL until it is asked for; connections that stay */
	CURLM *multi; /* open are the multi's then */
	char why[2][CURL_ERROR_SIZE]; /* of both */
	struct connection *next;
};

struct skv_http {
	struct curl_slist *headers[SKV_HTTP_FORMS]; /* fixed */
	struct curl_slist lined[SKV_HTTP_FORMS]; /* fixed: a line and those; no line: unused */
	char *ca_file;         /* fixed; NULL: libcurl's built-in default */
	char *cert_file;       /* fixed; NULL: none */
	char *key_file;        /* fixed; NULL: none */
	struct skv_mutex lock; /* protects idle */
	struct connection *idle;
};

struct answer {
	struct skv_buf *body;
	size_t first; /* length of body before */
	size_t max;
	bool too_large;
	int grpc_status;
	struct curl_slist *headers; /* of the request */
	struct curl_slist *plain;   /* of the request to hedge_url */
	char *why;                  /* of its handle (http_set_common) */
	const char *wanted;         /* a header; NULL: none */
	char got[SKV_HTTP_WANTED_MAX];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

void http_init_curl(void) { pthread_once(&curl_once, init_curl); }

static bool add_header(struct curl_slist **headers, const char *line)
{
	struct curl_slist *more = curl_slist_append(*headers, line);

	if (more)
		*headers = more;
	return more != NULL;
}

static bool add_headers(struct skv_http *h, const char *auth)
{
	static const char *const lines[SKV_HTTP_FORMS][2] = {
		[SKV_HTTP_JSON] = { "Content-Type: application/json", "Accept: application/json" },
		[SKV_HTTP_PROTOBUF] = { "Content-Type: application/x-protobuf",
					"Accept: application/x-protobuf" },
		[SKV_HTTP_GRPC] = { "Content-Type: application/grpc", "TE: trailers" },
	};
	bool ok = true;

	for (int i = 0; i < SKV_HTTP_FORMS && ok; i++)
		/* No "Expect: 100-continue": it costs a round trip per large request. */
		ok = add_header(&h->headers[i], lines[i][0]) &&
		     add_header(&h->headers[i], lines[i][1]) &&
		     add_header(&h->headers[i], "Expect:") &&
		     (!auth || add_header(&h->headers[i], auth));
	return ok;
}

/* A libcurl built elsewhere, as in a wheel, does not know where this system keeps its
 * certificates. */
static const char *usual_ca_file(void)
{
	static const char *const usual[] = {
		"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL and its kin */
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* older distributions */
		"/etc/ssl/ca-bundle.pem",                            /* SUSE */
		"/etc/ssl/cert.pem",
	};
	const char *named = getenv("SSL_CERT_FILE");

	if (named && named[0])
		return named;
	for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
		if (access(usual[i], R_OK) == 0)
			return usual[i];
	return NULL;
}

static struct skv_http_tls default_tls; /* set before threads, both */
static const char *ca_file_is = "ca_file";

void skv_http_default_tls(const struct skv_http_tls *tls, const char *ca_param)
{
	default_tls = *tls;
	ca_file_is = ca_param;
}

struct skv_http_tls http_default_tls(void)
{
	struct skv_http_tls tls = default_tls;

	if (!tls.ca_file || !tls.ca_file[0])
		tls.ca_file = usual_ca_file();
	return tls;
}

/* Returns false if out of memory. */
static bool copy_path(const char *path, char **out)
{
	if (path && path[0])
		*out = skv_strdup(path);
	return !path || !path[0] || *out;
}

static bool copy_tls(struct skv_http *h, const struct skv_http_tls *tls)
{
	const char *ca_file = tls->ca_file && tls->ca_file[0] ? tls->ca_file : usual_ca_file();

	return copy_path(ca_file, &h->ca_file) && copy_path(tls->cert_file, &h->cert_file) &&
	       copy_path(tls->key_file, &h->key_file);
}

int skv_http_create(const char *token, const struct skv_http_tls *tls, struct skv_http **out,
		    struct skv_error *err)
{
	struct skv_http *h = skv_calloc(1, sizeof *h);
	struct skv_buf auth = { 0 };
	bool ok;

	if (!h)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	http_init_curl();
	skv_mutex_init(&h->lock);
	if (token) {
		skv_buf_printf(&auth, "Authorization: Bearer %s", token);
		skv_put_u8(&auth, 0);
	}
	ok = !auth.failed && add_headers(h, (const char *)auth.data);
	skv_buf_destroy(&auth);
	if (!ok || !copy_tls(h, tls ? tls : &default_tls)) {
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
		curl_easy_cleanup(c->second);
		curl_multi_cleanup(c->multi);
		skv_free(c);
	}
	for (int i = 0; i < SKV_HTTP_FORMS; i++)
		curl_slist_free_all(h->headers[i]);
	skv_free(h->lined[0].data);
	skv_free(h->ca_file);
	skv_free(h->cert_file);
	skv_free(h->key_file);
	skv_mutex_destroy(&h->lock);
	skv_free(h);
}

int skv_http_add_line(struct skv_http *h, const char *line)
{
	SKV_CHECK(!h->idle && !h->lined[0].data);
	h->lined[0].data = skv_strdup(line);
	for (int i = 0; i < SKV_HTTP_FORMS; i++)
		h->lined[i] = (struct curl_slist){ h->lined[0].data, h->headers[i] };
	return h->lined[0].data ? SKV_OK : SKV_E_NOMEM;
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
	if (!SKV_CHECK(a->body->len >= a->first))
		return 0;
	if (a->body->len - a->first + n > a->max) {
		a->too_large = true;
		return 0;
	}
	skv_put_bytes(a->body, data, n);
	return a->body->failed ? 0 : n;
}

/* Trailers arrive here too. */
static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
	static const char name[] = "grpc-status:";
	struct answer *a = ctx;

	(void)one;
	if (n > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
		a->grpc_status = atoi(line + sizeof name - 1);
	return n;
}

/* Of several with that name the last one counts. */
static size_t on_answer_header(char *line, size_t one, size_t n, void *ctx)
{
	struct answer *a = ctx;
	const size_t name = strlen(a->wanted);
	size_t from = name + 1, end = n;

	(void)one;
	if (n <= name || line[name] != ':' || strncasecmp(line, a->wanted, name) != 0)
		return n;
	while (from < n && (line[from] == ' ' || line[from] == '\t'))
		from++;
	while (end > from && strchr(" \t\r\n", line[end - 1]))
		end--;
	if (end - from >= sizeof a->got)
		end = from;
	memcpy(a->got, line + from, end - from);
	a->got[end - from] = '\0';
	return n;
}

static bool is_https(const char *url) { return strncmp(url, "https://", 8) == 0; }

static void set_grpc(const struct connection *c, const char *url, struct answer *a)
{
	const bool tls = is_https(url); /* the handshake decides on HTTP/2 */
	const long version = tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;

	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, a);
	/* If requested twice on one connection, libcurl 7.88 (Debian 12) fails: "error in the
	 * framing layer". */
	curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION,
			 c->http2 && !tls ? (long)CURL_HTTP_VERSION_NONE : version);
}

struct skv_http_tls http_tls_of(const struct skv_http *h)
{
	return (struct skv_http_tls){ h->ca_file, h->cert_file, h->key_file };
}

long http_milliseconds(uint64_t ms) { return ms < 1 ? 1 : ms > 86400000 ? 86400000 : (long)ms; }

void http_set_common(CURL *curl, const char *url, const struct skv_http_tls *tls,
		     char why[CURL_ERROR_SIZE])
{
	curl_easy_reset(curl); /* options only: the connection stays */
	*why = '\0';
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXCONNECTS, KEPT);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* managers are named directly */
	if (tls->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca_file);
	if (tls->cert_file && tls->cert_file[0])
		curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->cert_file);
	if (tls->key_file && tls->key_file[0])
		curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key_file);
}

static void set_options(CURL *curl, const struct skv_http *h, const struct skv_http_request *r,
			const char *url, uint64_t timeout_ms, struct answer *a)
{
	static const char none[] = "";

	const struct skv_http_tls tls = http_tls_of(h);

	http_set_common(curl, url, &tls, a->why);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, a->headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, http_milliseconds(timeout_ms));
	if (r->connect_ms)
		curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, http_milliseconds(r->connect_ms));
	if (r->buffer)
		curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)r->buffer);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
	if (a->wanted) {
		curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_answer_header);
		curl_easy_setopt(curl, CURLOPT_HEADERDATA, a);
	}
	if (strcmp(r->method, "GET") == 0)
		return;
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body ? r->body : none);
	if (strcmp(r->method, "POST") != 0)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
}

static int explain(CURLcode code, const struct answer *a, const char *url, struct skv_error *err)
{
	if (a->too_large)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL, "%s: the answer is too large", url);
	if (a->body->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return http_explain(code, url, a->why, err);
}

int http_explain(CURLcode code, const char *url, const char *why, struct skv_error *err)
{
	SKV_CHECK(code != CURLE_OK);
	if (!*why)
		why = curl_easy_strerror(code);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no answer in time", url);
	if (code == CURLE_UNSUPPORTED_PROTOCOL && strncmp(url, "http://", 7) == 0)
		return skv_fail(err, SKV_E_NETWORK, "urls",
				"%s: what answers there does not speak plain http: where it has a "
				"certificate, the URL begins with https://",
				url);
	if ((code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) &&
	    !is_https(url)) /* or the server was killed */
		return skv_fail(err, SKV_E_NETWORK, NULL,
				"%s: %s (where it has a certificate, the URL begins with https://)",
				url, why);
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		return skv_fail(err, SKV_E_INVALID, "urls", "%s is not an http URL", url);
	if (code == CURLE_OUT_OF_MEMORY)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return skv_fail(err, SKV_E_NETWORK, ca_file_is,
				"%s: %s (set %s or SSL_CERT_FILE to the CA certificates; the "
				"server's certificate must name the URL's host)",
				url, why, ca_file_is);
	if (code == CURLE_SSL_CERTPROBLEM)
		return skv_fail(err, SKV_E_NETWORK, "cert_file",
				"%s: cert_file or key_file cannot be used: %s", url, why);
	if (code == CURLE_SSL_CONNECT_ERROR && is_https(url))
		return skv_fail(err, SKV_E_NETWORK, "urls",
				"%s: %s (where a port speaks plain http, the URL begins with "
				"http://)",
				url, why);
	return skv_fail(err, SKV_E_NETWORK, NULL, "%s: %s", url, curl_easy_strerror(code));
}

/* ---- hedging --------------------------------------------------------------------------------- */

struct race {
	CURL *curl[2];
	struct answer *answer[2];
	CURLcode code[2];
	bool begun[2], ended[2];
};

static long status_of(CURL *curl)
{
	long status = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool has_won(const struct race *x, int i)
{
	return x->ended[i] && x->code[i] == CURLE_OK && status_of(x->curl[i]) < 500;
}

static void read_messages(CURLM *multi, struct race *x)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left)) != NULL) {
		const int i = m->easy_handle == x->curl[1];

		SKV_CHECK(m->msg == CURLMSG_DONE && x->begun[i]);
		x->ended[i] = true;
		x->code[i] = m->data.result;
	}
}

static bool send_one(CURLM *multi, struct race *x, int i)
{
	x->begun[i] = curl_multi_add_handle(multi, x->curl[i]) == CURLM_OK;
	return x->begun[i];
}

/* Returns the number of the request whose answer counts. */
static int run_race(struct connection *c, const struct skv_http *h,
		    const struct skv_http_request *r, struct race *x)
{
	const uint64_t begin = skv_now_us();
	int running;

	set_options(x->curl[0], h, r, r->url, r->timeout_ms, x->answer[0]);
	if (!send_one(c->multi, x, 0))
		return 0;
	for (;;) {
		const uint64_t ms = (skv_now_us() - begin) / 1000;

		if (!x->begun[1] && ms >= r->hedge_ms && ms < r->timeout_ms) {
			set_options(x->curl[1], h, r, r->hedge_url, r->timeout_ms - ms,
				    x->answer[1]);
			if (!send_one(c->multi, x, 1))
				return 0;
		}
		if (curl_multi_perform(c->multi, &running) != CURLM_OK)
			return 0;
		read_messages(c->multi, x);
		for (int i = 0; i < 2; i++)
			if (has_won(x, i))
				return i;
		if (running == 0) /* a request that failed at once needs no hedge */
			return x->begun[1] && x->code[0] != CURLE_OK && x->code[1] == CURLE_OK;
		curl_multi_poll(c->multi, NULL, 0,
				(int)http_milliseconds(x->begun[1] || ms >= r->hedge_ms
							  ? 1000
							  : r->hedge_ms - ms),
				NULL);
	}
}

static bool make_second(struct connection *c)
{
	if (!c->second)
		c->second = curl_easy_init();
	if (!c->multi)
		c->multi = curl_multi_init();
	return c->second && c->multi;
}

static CURLcode perform_hedged(struct connection *c, const struct skv_http *h,
			       const struct skv_http_request *r, struct answer *a, long *status)
{
	struct skv_buf body = { 0 };
	struct answer other = { .body = &body,
				.grpc_status = -1,
				.max = a->max,
				.headers = a->plain,
				.wanted = a->wanted,
				.why = c->why[1] };
	struct race x = { .curl = { c->curl, c->second },
			  .answer = { a, &other },
			  .code = { CURLE_SEND_ERROR, CURLE_SEND_ERROR } };
	const int won = run_race(c, h, r, &x);

	*status = status_of(x.curl[won]);
	for (int i = 0; i < 2; i++)
		if (x.begun[i])
			curl_multi_remove_handle(c->multi, x.curl[i]);
	if (won == 1) {
		a->body->len = a->first;
		skv_put_bytes(a->body, body.data, body.len);
		a->why = other.why;
		memcpy(a->got, other.got, sizeof a->got);
	}
	skv_buf_destroy(&body);
	if (r->hedged)
		*r->hedged = won == 1;
	return a->body->failed ? CURLE_OUT_OF_MEMORY : x.code[won];
}

/* ---- one request ----------------------------------------------------------------------------- */

static CURLcode perform(struct connection *c, const struct skv_http *h,
			const struct skv_http_request *r, struct answer *a, long *status)
{
	CURLcode code;

	set_options(c->curl, h, r, r->url, r->timeout_ms, a);
	if (r->form == SKV_HTTP_GRPC)
		set_grpc(c, r->url, a);
	code = curl_easy_perform(c->curl);
	c->http2 = code == CURLE_OK && r->form == SKV_HTTP_GRPC;
	if (code == CURLE_OK)
		*status = status_of(c->curl);
	return code;
}

int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err)
{
	char trace[sizeof "traceparent: " + SKV_TRACE_SIZE] = "traceparent: ";
	struct curl_slist *plain = h->headers[r->form];
	struct curl_slist *headers =
		h->lined[0].data && !r->plain ? &h->lined[r->form] : plain;
	struct curl_slist traced = { trace, headers }, traced_plain = { trace, plain };
	struct answer a = { .body = body, .first = body->len, .grpc_status = -1,
			    .max = r->answer_max ? r->answer_max : SKV_HTTP_ANSWER_MAX,
			    .wanted = r->wanted, .headers = headers, .plain = plain };
	struct connection *c;
	CURLcode code;
	int rc = SKV_OK;

	if (r->hedged)
		*r->hedged = false;
	SKV_CHECK(r->form < SKV_HTTP_FORMS && r->method && r->url);
	SKV_CHECK(r->body || r->body_len == 0);
	if (r->trace && *r->trace && SKV_CHECK(strlen(r->trace) < SKV_TRACE_SIZE)) {
		memcpy(trace + strlen(trace), r->trace, strlen(r->trace) + 1);
		a.headers = &traced;
		a.plain = &traced_plain;
	}
	c = take(h);
	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	a.why = c->why[0];
	code = r->hedge_url && r->form != SKV_HTTP_GRPC && make_second(c)
		       ? perform_hedged(c, h, r, &a, http_status)
		       : perform(c, h, r, &a, http_status);
	if (r->grpc_status)
		*r->grpc_status = a.grpc_status;
	if (r->wanted)
		memcpy(r->got, a.got, sizeof a.got);
	if (code != CURLE_OK)
		rc = explain(code, &a, r->url, err);
	give(h, c);
	return rc;
}
