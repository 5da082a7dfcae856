/*
 * pipe.c - a TLS connection that carries something else than HTTP: libcurl connects and checks the
 * certificate, so that a client has one TLS library, whichever libcurl brings.
 */
#include "internal.h"

#include <string.h>

#include <skv/check.h>
#include <skv/mem.h>

struct skv_http_pipe {
	CURL *curl;
	int fd;
	char why[CURL_ERROR_SIZE];
};

void skv_http_pipe_close(struct skv_http_pipe *p)
{
	if (!p)
		return;
	curl_easy_cleanup(p->curl);
	skv_free(p);
}

static CURLcode open_pipe(struct skv_http_pipe *p, const struct skv_http *h, const char *url,
			  uint64_t connect_ms)
{
	const struct skv_http_tls tls = http_tls_of(h);
	curl_socket_t fd = CURL_SOCKET_BAD;
	CURLcode code;

	http_set_common(p->curl, url, &tls, p->why);
	curl_easy_setopt(p->curl, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(p->curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
	curl_easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, http_milliseconds(connect_ms));
	code = curl_easy_perform(p->curl);
	if (code == CURLE_OK)
		code = curl_easy_getinfo(p->curl, CURLINFO_ACTIVESOCKET, &fd);
	p->fd = (int)fd;
	return code == CURLE_OK && fd == CURL_SOCKET_BAD ? CURLE_COULDNT_CONNECT : code;
}

int skv_http_pipe_open(const struct skv_http *h, const char *url, uint64_t connect_ms,
		       struct skv_http_pipe **out, struct skv_error *err)
{
	struct skv_http_pipe *p = skv_calloc(1, sizeof *p);
	CURLcode code;

	SKV_CHECK(strncmp(url, "https://", 8) == 0);
	if (p)
		p->curl = curl_easy_init();
	if (!p || !p->curl) {
		skv_free(p);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	code = open_pipe(p, h, url, connect_ms);
	if (code == CURLE_OK) {
		*out = p;
		return SKV_OK;
	}
	http_explain(code, url, p->why, err);
	skv_http_pipe_close(p);
	return err->status;
}

int skv_http_pipe_fd(const struct skv_http_pipe *p) { return p->fd; }

static ssize_t moved(CURLcode code, size_t n)
{
	if (code == CURLE_AGAIN)
		return 0;
	return code == CURLE_OK && n > 0 ? (ssize_t)n : -1;
}

ssize_t skv_http_pipe_send(struct skv_http_pipe *p, const void *bytes, size_t n)
{
	size_t done = 0;
	CURLcode code = curl_easy_send(p->curl, bytes, n, &done);

	SKV_CHECK(n > 0 && done <= n);
	return moved(code, done);
}

ssize_t skv_http_pipe_receive(struct skv_http_pipe *p, void *bytes, size_t n)
{
	size_t done = 0;
	CURLcode code = curl_easy_recv(p->curl, bytes, n, &done);

	SKV_CHECK(n > 0 && done <= n);
	return moved(code, done);
}
