/*
 * tls_peer.h - a client that is known by its certificate.
 */
#ifndef SKV_TLS_PEER_H
#define SKV_TLS_PEER_H

#include <stdint.h>

#include <skv/status.h>

#define SKV_TLS_NAMES 8u
#define SKV_TLS_NAME_MAX 255u

/* The names in a client's certificate: the subject's common name, DNS and URI alternative names.
 * Those that are too long, or not visible ASCII, are left out. */
struct skv_tls_peer {
	struct skv_error refused; /* status SKV_OK: it is valid */
	uint32_t n;               /* 0: it has shown none */
	char names[SKV_TLS_NAMES][SKV_TLS_NAME_MAX + 1];
};

#endif
