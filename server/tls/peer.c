/* peer.c - identifies a client by its certificate. No state, any thread. */
#include "internal.h"

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

/* Returns true for a name that a line of the tokens file can have. */
static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	return n > 0 && n <= SKV_TLS_NAME_MAX;
}

static void add(struct skv_tls_peer *p, const char *s, size_t n)
{
	if (p->n == SKV_TLS_NAMES || !is_name(s, n))
		return;
	memcpy(p->names[p->n], s, n);
	p->names[p->n++][n] = '\0';
	assert(p->n <= SKV_TLS_NAMES);
}

static void take_names(gnutls_x509_crt_t crt, struct skv_tls_peer *p)
{
	char name[SKV_TLS_NAME_MAX + 1];
	size_t n = sizeof name;
	unsigned type;

	if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &n) == 0)
		add(p, name, strnlen(name, n));
	for (unsigned i = 0; p->n < SKV_TLS_NAMES; i++) {
		int rc;

		n = sizeof name;
		rc = gnutls_x509_crt_get_subject_alt_name2(crt, i, name, &n, &type, NULL);
		if (rc == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue;
		if (rc < 0)
			return;
		if (type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_URI)
			add(p, name, strnlen(name, n));
	}
}

static int verify(const struct generation *g, gnutls_x509_crt_t *chain, unsigned n,
		  struct skv_error *err)
{
	gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
					  .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT };
	gnutls_datum_t text = { 0 };
	unsigned status = 0;
	int rc = gnutls_x509_trust_list_verify_crt2(g->clients, chain, n, &purpose, 1, 0, &status,
						    NULL);

	if (rc == 0 && status == 0)
		return SKV_OK;
	if (rc == 0)
		gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	skv_fail(err, SKV_E_UNAUTHENTICATED, NULL, "the client's certificate is refused: %.160s",
		 text.data ? (const char *)text.data : "it cannot be verified");
	gnutls_free(text.data);
	return SKV_E_UNAUTHENTICATED;
}

static int look(gnutls_session_t session, struct skv_tls_peer *out, struct skv_error *err)
{
	const struct generation *g = skv_tls_current();
	gnutls_x509_crt_t chain[CHAIN_MAX];
	const gnutls_datum_t *shown;
	unsigned n = 0, got = 0;
	int rc = SKV_OK;

	shown = gnutls_certificate_get_peers(session, &n);
	if (!g->clients || !shown || n == 0)
		return SKV_OK;
	if (n > CHAIN_MAX)
		return skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
				"the client's certificate is refused: over %u in its chain",
				CHAIN_MAX);
	for (; rc == SKV_OK && got < n; got++) {
		if (gnutls_x509_crt_init(&chain[got]) != 0)
			return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		if (gnutls_x509_crt_import(chain[got], &shown[got], GNUTLS_X509_FMT_DER) != 0)
			rc = skv_fail(err, SKV_E_UNAUTHENTICATED, NULL,
				      "the client's certificate is refused: it cannot be read");
	}
	if (rc == SKV_OK)
		rc = verify(g, chain, n, err);
	if (rc == SKV_OK)
		take_names(chain[0], out);
	for (unsigned i = 0; i < got; i++)
		gnutls_x509_crt_deinit(chain[i]);
	return rc;
}

int skv_tls_peer_of(gnutls_session_t session, struct skv_tls_peer **known, struct skv_error *err)
{
	if (!*known) {
		*known = skv_calloc(1, sizeof **known);
		if (!*known)
			return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		look(session, *known, &(*known)->refused);
	}
	assert((*known)->n <= SKV_TLS_NAMES);
	if ((*known)->refused.status != SKV_OK)
		*err = (*known)->refused;
	return (*known)->refused.status;
}
