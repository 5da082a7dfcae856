/* http.c - raw sockets and a minimal parser of answers. One thread per struct http. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void http_open(struct http *h, uint16_t port)
{
	int one = 1;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	memset(h, 0, sizeof *h);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(h->fd >= 0);
	assert_int_equal(connect(h->fd, (struct sockaddr *)&to, sizeof to), 0);
	setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void http_close(struct http *h)
{
	close(h->fd);
	free(h->data);
	memset(h, 0, sizeof *h);
	h->fd = -1;
}

bool http_send(struct http *h, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(h->fd, bytes, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		n -= (size_t)sent;
	}
	return true;
}

void http_request(struct http *h, const char *method, const char *path, const char *headers,
		  const char *body)
{
	size_t size = strlen(path) + (headers ? strlen(headers) : 0) + 256;
	char *text = malloc(size);
	int n = snprintf(text, size, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, path,
			 headers ? headers : "");

	if (body)
		n += snprintf(text + n, size - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
	n += snprintf(text + n, size - (size_t)n, "\r\n");
	http_send(h, text, (size_t)n);
	if (body)
		http_send(h, body, strlen(body));
	free(text);
}

/* Appends what comes next; false at the end of the stream. */
static bool receive(struct http *h)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };
	ssize_t n;

	if (h->cap - h->len < 4096) {
		h->cap = h->cap * 2 + 8192;
		h->data = realloc(h->data, h->cap);
		assert_non_null(h->data);
	}
	if (poll(&p, 1, HTTP_WAIT_MS) != 1)
		fail_msg("the server sent nothing for %d ms", HTTP_WAIT_MS);
	n = recv(h->fd, h->data + h->len, h->cap - h->len - 1, 0);
	if (n <= 0)
		return false;
	h->len += (size_t)n;
	h->data[h->len] = '\0';
	return true;
}

static void consume(struct http *h, size_t n)
{
	memmove(h->data, h->data + n, h->len - n + 1);
	h->len -= n;
}

static char *take(struct http *h, size_t n)
{
	char *out = malloc(n + 1);

	assert_non_null(out);
	memcpy(out, h->data, n);
	out[n] = '\0';
	consume(h, n);
	return out;
}

struct answer http_read(struct http *h, bool no_body)
{
	struct answer a = { 0 };
	const char *end = NULL;
	size_t length;

	while (!(end = h->len ? strstr(h->data, "\r\n\r\n") : NULL))
		if (!receive(h))
			return a;
	a.head = take(h, (size_t)(end - h->data) + 4);
	assert_int_equal(sscanf(a.head, "HTTP/1.1 %d", &a.status), 1);
	if (a.status == 100) {
		free(a.head);
		return http_read(h, no_body);
	}
	length = no_body ? 0 : strtoul(answer_header(&a, "Content-Length"), NULL, 10);
	while (h->len < length)
		if (!receive(h))
			fail_msg("the answer's body was cut");
	a.body = take(h, length);
	a.body_len = length;
	return a;
}

bool http_ended(struct http *h) { return h->len == 0 && !receive(h); }

void answer_free(struct answer *a)
{
	free(a->head);
	free(a->body);
	memset(a, 0, sizeof *a);
}

struct answer http_call(uint16_t port, const char *method, const char *path, const char *headers,
			const char *body)
{
	struct http h;
	struct answer a;

	http_open(&h, port);
	http_request(&h, method, path, headers, body);
	a = http_read(&h, strcmp(method, "HEAD") == 0);
	http_close(&h);
	return a;
}

const char *answer_header(const struct answer *a, const char *name)
{
	static _Thread_local char value[512];
	size_t n = strlen(name);

	for (const char *line = a->head; (line = strstr(line, "\r\n")) != NULL;) {
		line += 2;
		if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(line + n + 2, "\r"),
				 line + n + 2);
			return value;
		}
	}
	return "";
}

json_t *answer_json(const struct answer *a)
{
	json_error_t e;
	json_t *j = a->body ? json_loadb(a->body, a->body_len, 0, &e) : NULL;

	if (!j)
		fail_msg("the body is no JSON: %s", a->body ? a->body : "(none)");
	return j;
}

void assert_error(const struct answer *a, int status, const char *code)
{
	json_t *j, *e;

	if (a->status != status)
		fail_msg("status %d, not %d: %s", a->status, status,
			 a->body ? a->body : "(no answer)");
	assert_string_equal(answer_header(a, "Content-Type"), "application/json");
	j = answer_json(a);
	e = json_object_get(j, "error");
	if (!json_is_object(e) || !json_is_string(json_object_get(e, "message")) ||
	    !json_object_get(e, "detail") || json_object_size(e) != 3 || json_object_size(j) != 2)
		fail_msg("not the shape of an error: %s", a->body);
	assert_string_equal(json_string_value(json_object_get(e, "code")), code);
	assert_string_equal(json_string_value(json_object_get(j, "request_id")),
			    answer_header(a, "X-Request-Id"));
	json_decref(j);
}

void assert_call_error(uint16_t port, const char *method, const char *path, const char *headers,
		       const char *body, int status, const char *code)
{
	struct answer a = http_call(port, method, path, headers, body);

	assert_error(&a, status, code);
	answer_free(&a);
}
