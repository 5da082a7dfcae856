/*
 * http.c - pool of libcurl handles (see skv/http.h).
 *
 * Owns the idle handles; a call takes one (or makes one) and gives it back, so that as many
 * connections stay alive as calls have ever run at a time. libcurl's own memory does not go through
 * skv/mem.h: what it cannot allocate comes back as CURLE_OUT_OF_MEMORY.
 */
#include <skv/http.h>

#include <skv/check.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <skv/lock.h>
#include <skv/mem.h>

struct connection {
	CURL *curl;
	bool http2; /* the last call was HTTP/2, and went well */
	struct connection *next;
};

struct skv_http {
	struct curl_slist *headers[SKV_HTTP_FORMS]; /* fixed */
	char *ca_file;         /* fixed; NULL: what libcurl was built with */
	struct skv_mutex lock; /* protects idle */
	struct connection *idle;
};

struct answer {
	struct skv_buf *body;
	size_t first; /* length of body before */
	size_t max;
	bool too_large;
	int grpc_status;
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
	static const char *const lines[SKV_HTTP_FORMS][2] = {
		[SKV_HTTP_JSON] = { "Content-Type: application/json", "Accept: application/json" },
		[SKV_HTTP_PROTOBUF] = { "Content-Type: application/x-protobuf", "Accept: application/x-protobuf" },
		[SKV_HTTP_GRPC] = { "Content-Type: application/grpc", "TE: trailers" },
	};
	bool ok = true;

	for (int i = 0; i < SKV_HTTP_FORMS && ok; i++)
		/* No "Expect: 100-continue": it costs a round trip for each large request. */
		ok = add_header(&h->headers[i], lines[i][0]) &&
		     add_header(&h->headers[i], lines[i][1]) &&
		     add_header(&h->headers[i], "Expect:") &&
		     (!auth || add_header(&h->headers[i], auth));
	return ok;
}

/* A libcurl that was built elsewhere, as in a wheel, does not know where this system keeps its certificates. */
static const char *usual_ca_file(void)
{
	static const char *const usual[] = {
		"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL and its kin */
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* older ones */
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

int skv_http_trust(struct skv_http *h, const char *ca_file, struct skv_error *err)
{
	char *copy = skv_strdup(ca_file);

	SKV_CHECK(!h->idle);
	if (!copy)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_free(h->ca_file);
	h->ca_file = copy;
	return SKV_OK;
}

int skv_http_create(const char *token, struct skv_http **out, struct skv_error *err)
{
	struct skv_http *h = skv_calloc(1, sizeof *h);
	struct skv_buf auth = { 0 };
	const char *ca_file = usual_ca_file();
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
	if (!ok || (ca_file && skv_http_trust(h, ca_file, NULL) != SKV_OK)) {
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
	for (int i = 0; i < SKV_HTTP_FORMS; i++)
		curl_slist_free_all(h->headers[i]);
	skv_free(h->ca_file);
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
	if (!SKV_CHECK(a->body->len >= a->first))
		return 0;
	if (a->body->len - a->first + n > a->max) {
		a->too_large = true;
		return 0;
	}
	skv_put_bytes(a->body, data, n);
	return a->body->failed ? 0 : n;
}

/* Trailers come this way too. */
static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
	static const char name[] = "grpc-status:";
	struct answer *a = ctx;

	(void)one;
	if (n > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
		a->grpc_status = atoi(line + sizeof name - 1);
	return n;
}

static void set_grpc(const struct connection *c, struct answer *a)
{
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, a);
	/* Asked for twice on one connection, libcurl 7.88 (Debian 12) refuses it: "error in the framing layer". */
	curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION,
			 (long)(c->http2 ? CURL_HTTP_VERSION_NONE : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
}

static long milliseconds(uint64_t ms) { return ms < 1 ? 1 : ms > 86400000 ? 86400000 : (long)ms; }

static void set_options(struct connection *c, const struct skv_http *h, const struct skv_http_request *r,
			struct answer *a)
{
	static const char none[] = "";
	CURL *curl = c->curl;

	curl_easy_reset(curl); /* options only: the connection stays */
	curl_easy_setopt(curl, CURLOPT_URL, r->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* managers are named directly */
	if (h->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, h->ca_file);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, h->headers[r->form]);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(r->timeout_ms));
	if (r->connect_ms)
		curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(r->connect_ms));
	if (r->buffer)
		curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)r->buffer);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
	if (r->form == SKV_HTTP_GRPC)
		set_grpc(c, a);
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
	SKV_CHECK(code != CURLE_OK);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no answer in time", url);
	if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		return skv_fail(err, SKV_E_INVALID, "urls", "%s is not an http URL", url);
	if (a->too_large)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL, "%s: the answer is too large", url);
	if (code == CURLE_OUT_OF_MEMORY || a->body->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return skv_fail(err, SKV_E_NETWORK, "ca_file", "%s: %s (ca_file or SSL_CERT_FILE says which certificates to trust)",
				url, curl_easy_strerror(code));
	return skv_fail(err, SKV_E_NETWORK, NULL, "%s: %s", url, curl_easy_strerror(code));
}

int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err)
{
	struct answer a = { .body = body, .first = body->len, .grpc_status = -1,
			    .max = r->answer_max ? r->answer_max : SKV_HTTP_ANSWER_MAX };
	struct connection *c;
	CURLcode code;

	SKV_CHECK(r->form < SKV_HTTP_FORMS && r->method && r->url);
	SKV_CHECK(r->body || r->body_len == 0);
	c = take(h);
	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	set_options(c, h, r, &a);
	code = curl_easy_perform(c->curl);
	c->http2 = code == CURLE_OK && r->form == SKV_HTTP_GRPC;
	if (code == CURLE_OK)
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, http_status);
	if (r->grpc_status)
		*r->grpc_status = a.grpc_status;
	give(h, c);
	return code == CURLE_OK ? SKV_OK : explain(code, &a, r->url, err);
}
