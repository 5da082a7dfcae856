/*
 * inherit.h - listening sockets inherited from the process that started this one.
 *
 * systemd's protocol, documented in sd_listen_fds(3): LISTEN_FDS sockets from descriptor 3 on for
 * the process LISTEN_PID, named by LISTEN_FDNAMES. Such a socket outlives the process: clients that
 * connect during a restart wait for the next one. Called by one thread, before others run.
 */
#ifndef SKV_INHERIT_H
#define SKV_INHERIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/status.h>

#define SKV_INHERITED_MAX 16

struct skv_inherited {
	struct {
		int fd; /* -1: taken */
		uint16_t port;
		char name[32];
	} v[SKV_INHERITED_MAX];
	size_t n;
};

/* Reads and removes the environment variables. Each socket must be a listening one of IPv4 or IPv6:
 * else SKV_E_INVALID. None at all is fine. */
int skv_inherit(struct skv_inherited *in, struct skv_error *err);
/* Takes the socket named `name`, or one with an unknown name bound to `port` (0: none). -1: there
 * is none. */
int skv_inherit_take(struct skv_inherited *in, const char *name, uint16_t port);
/* SKV_E_INVALID, naming it, if a socket was not taken. */
int skv_inherit_check(const struct skv_inherited *in, struct skv_error *err);
/* Closes sockets that were not taken. */
void skv_inherit_drop(struct skv_inherited *in);

#endif
