/*
 * tls.h - the server's certificates: TLS 1.2 and 1.3 on its ports, clients known by certificate.
 *
 * A process has one certificate chain and key for all its ports, because libmicrohttpd's callback
 * for certificates has no argument. A reload takes effect for new connections; established ones
 * continue.
 *
 * Life cycle: load before the ports are opened - reload at any time, any thread - unload when no
 * session is left.
 */
#ifndef SKV_TLS_H
#define SKV_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <skv/status.h>
#include <skv/tls_peer.h>

/* Forward secret AEAD ciphers only. GnuTLS's syntax of priorities. */
#define SKV_TLS_PRIORITY                                                                           \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"              \
	"-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:"                 \
	"-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE"

/* PEM files. */
struct skv_tls_files {
	const char *cert;      /* the server's certificate, and those between it and the root */
	const char *key;       /* private key of cert, readable by its owner and group only */
	/* The CA that signs certificates of clients; "" = clients are not asked. */
	const char *client_ca;
};

/* Reads the files. SKV_E_INVALID: the field is the parameter, the message names file and remedy. */
int skv_tls_load(const struct skv_tls_files *f, struct skv_error *err);
/* Returns true if certificates are loaded. */
bool skv_tls_loaded(void);
/* Reads the files again, if there are certificates; *changed (may be NULL): the certificates are
 * new. On failure the old ones stay. */
int skv_tls_reload(bool *changed, struct skv_error *err);
/* End of the certificate's validity, seconds since 1970; 0: none is loaded. */
uint64_t skv_tls_expires(void);
void skv_tls_unload(void);

/* For MHD_OPTION_HTTPS_CERT_CALLBACK2: returns the current chain and key. Also requests the
 * client's certificate, if CAs for clients are set. */
int skv_tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		     gnutls_pcert_st **chain, unsigned *n_chain, gnutls_ocsp_data_st **ocsp,
		     unsigned *n_ocsp, gnutls_privkey_t *key, unsigned *flags);

/* A session for an accepted socket that does not block; `alpn` is the one protocol spoken. The
 * caller ends it with gnutls_deinit. */
int skv_tls_session(int fd, const char *alpn, gnutls_session_t *out, struct skv_error *err);
/* The same for one that blocks, without ALPN, after the handshake, however long that takes: who
 * bounds it shuts the socket down. SKV_E_NETWORK: there was none. */
int skv_tls_accept(int fd, gnutls_session_t *out, struct skv_error *err);

/* Identifies the client of a session, once, after the handshake. *known is NULL at first and then
 * belongs to the connection (skv_free). SKV_E_UNAUTHENTICATED: the client has shown a certificate
 * that is not valid for a client; the message has the reason. */
int skv_tls_peer_of(gnutls_session_t session, struct skv_tls_peer **known, struct skv_error *err);

#endif
