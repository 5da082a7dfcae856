/*
 * http.h - a raw HTTP/1.1 client for tests: sends exactly the given bytes, reads one answer at a
 * time.
 */
#ifndef TESTS_FRONT_HTTP_H
#define TESTS_FRONT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define HTTP_WAIT_MS 20000 /* a test fails when nothing comes for so long */

struct http {
	int fd;
	char *data; /* received and not consumed */
	size_t len;
	size_t cap;
};

struct answer {
	int status; /* 0: the connection ended without an answer */
	char *head; /* status line and headers */
	char *body;
	size_t body_len;
};

void http_open(struct http *h, uint16_t port);
void http_close(struct http *h);
/* False when the peer has closed. */
bool http_send(struct http *h, const char *bytes, size_t n);
/* Sends a request with Host, the extra headers ("Name: value\r\n"...) and Content-Length if
 * body. */
void http_request(struct http *h, const char *method, const char *path, const char *headers,
		  const char *body);
/* Reads one answer; `no_body` for HEAD. Release with answer_free. */
struct answer http_read(struct http *h, bool no_body);
/* True when the peer closes without sending anything further. */
bool http_ended(struct http *h);
void answer_free(struct answer *a);

/* Request and answer on a connection of its own. */
struct answer http_call(uint16_t port, const char *method, const char *path, const char *headers,
			const char *body);
/* Value of a header as a static string, "" if absent. */
const char *answer_header(const struct answer *a, const char *name);
/* The body as JSON; the caller releases. Fails the test if it is none. */
json_t *answer_json(const struct answer *a);
/* Fails the test unless the answer is an error of this status and code in the one shape. */
void assert_error(const struct answer *a, int status, const char *code);
/* Same for a whole call. */
void assert_call_error(uint16_t port, const char *method, const char *path, const char *headers,
		       const char *body, int status, const char *code);

#endif
