/*
 * inherit.h - listening sockets that whoever started the process has bound already.
 *
 * The protocol is systemd's, documented in sd_listen_fds(3): LISTEN_FDS sockets from number 3 on for the process
 * LISTEN_PID, named by LISTEN_FDNAMES. Such a socket outlives the process: whoever connects while it is restarted waits
 * for the next one. Called by one thread, before others run.
 */
#ifndef KVB_INHERIT_H
#define KVB_INHERIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvb/status.h>

#define KVB_INHERITED_MAX 16

struct kvb_inherited {
	struct {
		int fd; /* -1: taken */
		uint16_t port;
		char name[32];
	} v[KVB_INHERITED_MAX];
	size_t n;
};

/* Reads the environment and takes its variables away. Each socket must be a listening one of IPv4 or IPv6: else
 * KVB_E_INVALID. None at all is fine. */
int kvb_inherit(struct kvb_inherited *in, struct kvb_error *err);
/* Takes the socket called `name`, or the one that is called nothing we know and bound to `port` (0: no such). -1: there
 * is none. */
int kvb_inherit_take(struct kvb_inherited *in, const char *name, uint16_t port);
/* KVB_E_INVALID, naming it, if a socket was not taken. */
int kvb_inherit_check(const struct kvb_inherited *in, struct kvb_error *err);
/* Closes what was not taken. */
void kvb_inherit_drop(struct kvb_inherited *in);

#endif
