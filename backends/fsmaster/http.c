/*
 * http.c - one POST to an fs-master, over libcurl.
 *
 * A handle for each call: calls are rare, and nothing that was learned of an fs-master (its address, say) shall outlive
 * it. No state but libcurl's own; blocks until the answer is there or the time is over.
 */
#include "http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

#define CONNECT_MS 1000L

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

struct sink {
	struct skv_buf *body;
	size_t first;
};

static size_t take(char *p, size_t size, size_t n, void *ctx)
{
	struct sink *s = ctx;

	if (s->body->len - s->first + size * n > FSM_ANSWER_MAX)
		return 0;
	skv_put_bytes(s->body, p, size * n);
	return s->body->failed ? 0 : size * n;
}

static struct curl_slist *headers(const char *token)
{
	static const char *const fixed[] = { "Content-Type: application/json", "Accept: application/json", "Expect:" };
	struct curl_slist *all = NULL, *more = NULL;
	struct skv_buf auth = { 0 };

	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
		more = curl_slist_append(all, fixed[i]);
		if (!more)
			break;
		all = more;
	}
	if (more && *token) {
		skv_buf_printf(&auth, "Authorization: Bearer %s", token);
		skv_put_u8(&auth, 0);
		more = auth.failed ? NULL : curl_slist_append(all, (const char *)auth.data);
		skv_buf_destroy(&auth);
	}
	if (!more) {
		curl_slist_free_all(all);
		return NULL;
	}
	return more;
}

static void set_up(CURL *c, const char *url, const struct skv_buf *body, struct curl_slist *list, uint32_t timeout_ms,
		   struct sink *sink)
{
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms < CONNECT_MS ? (long)timeout_ms : CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
	curl_easy_setopt(c, CURLOPT_POST, 1L);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, (const char *)body->data);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)body->len);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, sink);
}

int skv_fsm_post(const char *url, const char *token, const struct skv_buf *body, uint32_t timeout_ms, long *http,
		 struct skv_buf *answer, struct skv_error *err)
{
	struct sink sink = { answer, answer->len };
	struct curl_slist *list;
	CURLcode code;
	CURL *c;

	pthread_once(&curl_once, init_curl);
	c = curl_easy_init();
	list = headers(token);
	if (!c || !list) {
		if (c)
			curl_easy_cleanup(c);
		curl_slist_free_all(list);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	set_up(c, url, body, list, timeout_ms, &sink);
	code = curl_easy_perform(c);
	if (code == CURLE_OK)
		code = curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, http);
	curl_easy_cleanup(c);
	curl_slist_free_all(list);
	if (code == CURLE_OK)
		return SKV_OK;
	if (code == CURLE_OUT_OF_MEMORY || answer->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return skv_fail(err, SKV_E_NETWORK, NULL, "%s: %s", url, curl_easy_strerror(code));
}
