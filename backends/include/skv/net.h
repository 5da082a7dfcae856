/*
 * net.h - connections that this process opens to other servers: addresses, sockets that do not
 * block, and TLS sessions over them.
 *
 * Stores on other hosts use it (etcd). A socket or session belongs to one thread at a time.
 */
#ifndef SKV_NET_H
#define SKV_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <skv/status.h>

#define SKV_NET_PATH_MAX 1023u
#define SKV_NET_HOST_MAX 255u

struct skv_net_node {
	char host[SKV_NET_HOST_MAX + 1];
	uint16_t port;
};

/* Parses host, host:port or [IPv6 address]:port. `n`: bytes of text. False: it is none of these. */
bool skv_net_node_parse(const char *text, size_t n, uint16_t default_port,
			struct skv_net_node *out);

/* Connects within `ms` milliseconds; looking a name up may take longer. Returns the socket, which
 * does not block, or -1: SKV_E_STORE_IO, and `err` names address and reason. */
int skv_net_connect(const struct skv_net_node *at, uint32_t ms, struct skv_error *err);

/* PEM files, read for each connection: new ones need no restart. "" = none. */
struct skv_net_tls {
	bool on;
	char ca_file[SKV_NET_PATH_MAX + 1];     /* signs servers; "": the system's CAs */
	char cert_file[SKV_NET_PATH_MAX + 1];   /* sent to servers that request a certificate */
	char key_file[SKV_NET_PATH_MAX + 1];    /* private key of cert_file */
	char server_name[SKV_NET_HOST_MAX + 1]; /* in every server's certificate; "": its host */
};

/* A TLS session over a socket that does not block. The server's certificate and its name are always
 * checked. `alpn`: the one application protocol, or NULL. `plain` (may be NULL) begins URLs of
 * servers without TLS: it is named when a server seems to be one. Both live as long as the session.
 * NULL: SKV_E_STORE_IO (a file cannot be used) or SKV_E_NOMEM. */
struct skv_net_session;
struct skv_net_session *skv_net_session_new(int fd, const char *host, const struct skv_net_tls *tls,
					    const char *alpn, const char *plain,
					    struct skv_error *err);
void skv_net_session_free(struct skv_net_session *s); /* may be NULL; the socket stays open */

/* Results of a call: bytes moved (a handshake: 1, it has completed); 0: the other end has closed;
 * or the reason why the call stopped. A receive needs at least 16 KiB of room: otherwise a record
 * could remain that poll(2) does not report after receive returned SKV_NET_WANTS_READ. */
enum { SKV_NET_WANTS_READ = -1, SKV_NET_WANTS_WRITE = -2, SKV_NET_BROKEN = -3 };
ssize_t skv_net_session_handshake(struct skv_net_session *s);
ssize_t skv_net_session_receive(struct skv_net_session *s, void *p, size_t n);
/* After SKV_NET_WANTS_...: call it again with the same first bytes. */
ssize_t skv_net_session_send(struct skv_net_session *s, const void *p, size_t n);
/* The reason of SKV_NET_BROKEN, for people. */
const char *skv_net_session_error(const struct skv_net_session *s);

#endif
