/*
 * tls.c - the certificates that are current, and sessions with them.
 *
 * `current` is replaced as a whole and never changed: readers take it without a lock. Reloads take
 * turns under `reload_lock`, which is held while files are read.
 */
#include "internal.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/mem.h>

static _Atomic(struct generation *) current;

/* Set by load, before other threads. */
static struct {
	char *cert, *key, *client_ca;
	gnutls_priority_t priority;
	gnutls_certificate_credentials_t credentials; /* of sessions that are made here */
	struct skv_mutex reload_lock;
} self;

const struct generation *skv_tls_current(void) { return atomic_load(&current); }

bool skv_tls_loaded(void) { return skv_tls_current() != NULL; }

uint64_t skv_tls_expires(void)
{
	const struct generation *g = skv_tls_current();

	return g ? g->expires : 0;
}

static void free_self(void)
{
	skv_free(self.cert);
	skv_free(self.key);
	skv_free(self.client_ca);
	if (self.credentials)
		gnutls_certificate_free_credentials(self.credentials);
	if (self.priority)
		gnutls_priority_deinit(self.priority);
	skv_mutex_destroy(&self.reload_lock);
	memset(&self, 0, sizeof self);
}

int skv_tls_load(const struct skv_tls_files *f, struct skv_error *err)
{
	struct generation *g;
	int rc = skv_tls_read(f, &g, err);

	assert(!skv_tls_loaded());
	if (rc != SKV_OK)
		return rc;
	skv_mutex_init(&self.reload_lock);
	self.cert = skv_strdup(f->cert);
	self.key = skv_strdup(f->key);
	self.client_ca = skv_strdup(f->client_ca);
	if (!self.cert || !self.key || !self.client_ca ||
	    gnutls_certificate_allocate_credentials(&self.credentials) != 0 ||
	    gnutls_priority_init(&self.priority, SKV_TLS_PRIORITY, NULL) != 0) {
		free_self();
		skv_tls_generation_free(g);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	gnutls_certificate_set_retrieve_function3(self.credentials, skv_tls_retrieve);
	atomic_store(&current, g);
	return SKV_OK;
}

int skv_tls_reload(bool *changed, struct skv_error *err)
{
	struct generation *g, *old;
	int rc;

	if (changed)
		*changed = false;
	if (!skv_tls_loaded())
		return SKV_OK;
	skv_mutex_lock(&self.reload_lock);
	rc = skv_tls_read(&(struct skv_tls_files){ self.cert, self.key, self.client_ca }, &g, err);
	if (rc == SKV_OK) {
		old = atomic_load(&current);
		if (memcmp(old->digest, g->digest, sizeof g->digest) == 0) {
			skv_tls_generation_free(g);
		} else {
			g->older = old;
			atomic_store(&current, g);
			if (changed)
				*changed = true;
		}
	}
	skv_mutex_unlock(&self.reload_lock);
	return rc;
}

void skv_tls_unload(void)
{
	struct generation *g = atomic_exchange(&current, NULL);

	if (!g)
		return;
	while (g) {
		struct generation *older = g->older;

		skv_tls_generation_free(g);
		g = older;
	}
	free_self();
}

int skv_tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		     gnutls_pcert_st **chain, unsigned *n_chain, gnutls_ocsp_data_st **ocsp,
		     unsigned *n_ocsp, gnutls_privkey_t *key, unsigned *flags)
{
	const struct generation *g = skv_tls_current();

	(void)info;
	assert(g && g->n_chain > 0 && g->n_chain <= CHAIN_MAX);
	if (g->clients) {
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
		/* do not disclose the CA of clients, which may also change */
		gnutls_certificate_send_x509_rdn_sequence(session, 1);
	}
	*chain = (gnutls_pcert_st *)g->chain;
	*n_chain = g->n_chain;
	*ocsp = NULL;
	*n_ocsp = 0;
	*key = g->key;
	*flags = 0;
	return 0;
}

/* `alpn`: NULL: none. */
static int new_session(int fd, unsigned flags, const char *alpn, gnutls_session_t *out,
		       struct skv_error *err)
{
	const gnutls_datum_t protocol = { (unsigned char *)(uintptr_t)alpn,
					  alpn ? (unsigned)strlen(alpn) : 0 };
	gnutls_session_t s;

	assert(skv_tls_loaded() && fd >= 0);
	if (gnutls_init(&s, GNUTLS_SERVER | GNUTLS_NO_SIGNAL | flags) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (gnutls_priority_set(s, self.priority) != 0 ||
	    gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, self.credentials) != 0 ||
	    (alpn && gnutls_alpn_set_protocols(s, &protocol, 1, GNUTLS_ALPN_MANDATORY) != 0)) {
		gnutls_deinit(s);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	gnutls_transport_set_int(s, fd);
	*out = s;
	return SKV_OK;
}

int skv_tls_session(int fd, const char *alpn, gnutls_session_t *out, struct skv_error *err)
{
	return new_session(fd, GNUTLS_NONBLOCK, alpn, out, err);
}

int skv_tls_accept(int fd, gnutls_session_t *out, struct skv_error *err)
{
	gnutls_session_t s;
	int rc = new_session(fd, 0, NULL, &s, err);

	if (rc != SKV_OK)
		return rc;
	do
		rc = gnutls_handshake(s);
	while (rc < 0 && !gnutls_error_is_fatal(rc));
	if (rc < 0) {
		gnutls_alert_send_appropriate(s, rc);
		gnutls_deinit(s);
		return skv_fail(err, SKV_E_NETWORK, NULL, "%s", gnutls_strerror(rc));
	}
	*out = s;
	return SKV_OK;
}
