/*
 * relay.h - forwards calls unchanged to another server: many at a time, on one thread, over
 * persistent connections. The caller handles the answers.
 */
#ifndef SKV_RELAY_H
#define SKV_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/status.h>

#define SKV_RELAY_LINES 8u
#define SKV_RELAY_VALUE 1024u

struct skv_relay;
struct relay_work; /* relay.c */

/* A header of the answer that the caller requests. */
struct skv_relay_header {
	const char *name;
	char value[SKV_RELAY_VALUE]; /* "" = it has none, or one that is longer */
};

/* A relayed call. The struct and its strings live until `done`. The relay's thread calls `done`
 * once, as the last use of the struct; `done` must not block. */
struct skv_relay_call {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url;
	const char *line[SKV_RELAY_LINES]; /* "Name: value" */
	unsigned n_lines;
	const void *body; /* or NULL */
	size_t n_body;
	size_t answer_max; /* bytes */
	uint64_t timeout_ms, connect_ms;
	struct skv_relay_header *want;
	unsigned n_want;
	/* Called now and then while no answer has arrived: returns true to give the call up. May be
	 * NULL. */
	bool (*given_up)(void *ctx);
	void (*done)(void *ctx);
	void *ctx;

	/* The outcome. */
	int rc; /* SKV_OK: there is an answer. SKV_E_NETWORK: none; SKV_E_TOO_LARGE, SKV_E_NOMEM */
	/* Of SKV_E_NETWORK, but "" when it was given up. With a field: it was refused for what is
	 * set up here or there, and will be again. */
	struct skv_error why;
	bool sent;   /* something of the call: it may have been carried out */
	long status; /* of HTTP */
	struct skv_buf answer; /* owned by the receiver, which destroys it */
	struct relay_work *work; /* relay.c's */
	struct skv_relay_call *next;
};

/* Makes the thread. */
int skv_relay_start(struct skv_relay **out, struct skv_error *err);
/* Ends calls that run without an answer. NULL is allowed. */
void skv_relay_stop(struct skv_relay *r);
/* Any thread; never blocks. */
void skv_relay_call(struct skv_relay *r, struct skv_relay_call *c);

#endif
