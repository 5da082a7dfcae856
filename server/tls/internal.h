/* internal.h - the certificates and keys as read from the files at one time; shared by tls.c,
 * files.c and peer.c. */
#ifndef SKV_TLS_INTERNAL_H
#define SKV_TLS_INTERNAL_H

#include <skv/tls.h>

#include <gnutls/x509.h>

#define CHAIN_MAX 16u
#define FILE_MAX (1u << 20) /* bytes of a PEM file */

/* Immutable once published. Sessions use it without a reference, so it lives until the end of the
 * process: a few KiB for each renewed certificate. */
struct generation {
	struct generation *older;
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned n_chain;
	gnutls_privkey_t key;
	gnutls_x509_trust_list_t clients; /* NULL: clients are not asked for certificates */
	uint64_t expires;                 /* of chain[0], seconds since 1970 */
	uint8_t digest[32];               /* of the files' contents */
};

/* Reads the files; the caller frees with skv_tls_generation_free. */
int skv_tls_read(const struct skv_tls_files *f, struct generation **out, struct skv_error *err);
void skv_tls_generation_free(struct generation *g);
/* NULL before load. */
const struct generation *skv_tls_current(void);

#endif
