/* files.c - certificates, their key and CAs from PEM files. One thread at a time. */
#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <gnutls/crypto.h>
#include <sodium.h>

#include <skv/mem.h>

/* A file and the parameter that names it. */
struct pem {
	const char *param;
	const char *path;
	gnutls_datum_t text;
};

static int read_pem(struct pem *p, bool secret, struct skv_error *err)
{
	FILE *f = fopen(p->path, "re");
	struct stat st;
	int rc = SKV_OK;
	size_t n;

	if (!f)
		return skv_fail(err, SKV_E_INVALID, p->param, "%s: cannot read %s: %s", p->param,
				p->path, strerror(errno));
	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)FILE_MAX)
		rc = skv_fail(err, SKV_E_INVALID, p->param,
			      "%s: %s is not a PEM file of at most %u bytes", p->param, p->path,
			      FILE_MAX);
	else if (secret && st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
		rc = skv_fail(err, SKV_E_INVALID, p->param,
			      "%s: %s is readable by everybody or writable by others: run 'chmod "
			      "600 %s', and replace the key if others have used this machine",
			      p->param, p->path, p->path);
	if (rc == SKV_OK) {
		n = (size_t)st.st_size;
		p->text.data = skv_malloc(n + 1);
		if (!p->text.data)
			rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		else if (fread(p->text.data, 1, n, f) != n)
			rc = skv_fail(err, SKV_E_INVALID, p->param, "%s: cannot read %s", p->param,
				      p->path);
		else
			p->text.size = (unsigned)n;
	}
	fclose(f);
	return rc;
}

static int not_this(const struct pem *p, int why, const char *what, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, p->param, "%s: %s is not %s: %s", p->param, p->path,
			what, gnutls_strerror(why));
}

static int take_chain(struct generation *g, const struct pem *p, struct skv_error *err)
{
	gnutls_x509_crt_t first = NULL;
	unsigned n = CHAIN_MAX;
	int rc = gnutls_pcert_list_import_x509_raw(g->chain, &n, &p->text, GNUTLS_X509_FMT_PEM,
						   GNUTLS_X509_CRT_LIST_SORT);

	if (rc == 0 && n == 0)
		rc = GNUTLS_E_NO_CERTIFICATE_FOUND;
	if (rc < 0)
		return not_this(p, rc, "a certificate chain", err);
	assert(n <= CHAIN_MAX);
	g->n_chain = n;
	rc = gnutls_pcert_export_x509(&g->chain[0], &first);
	if (rc < 0)
		return not_this(p, rc, "an X.509 certificate", err);
	g->expires = (uint64_t)gnutls_x509_crt_get_expiration_time(first);
	gnutls_x509_crt_deinit(first);
	return SKV_OK;
}

/* Key ids are digests of public keys. */
static bool same_key(gnutls_pubkey_t a, gnutls_pubkey_t b)
{
	unsigned char x[64], y[64];
	size_t n_x = sizeof x, n_y = sizeof y;

	return gnutls_pubkey_get_key_id(a, GNUTLS_KEYID_USE_SHA256, x, &n_x) == 0 &&
	       gnutls_pubkey_get_key_id(b, GNUTLS_KEYID_USE_SHA256, y, &n_y) == 0 && n_x == n_y &&
	       memcmp(x, y, n_x) == 0;
}

static int take_key(struct generation *g, const struct pem *p, const char *cert,
		    struct skv_error *err)
{
	gnutls_pubkey_t public = NULL;
	int rc = gnutls_privkey_init(&g->key);

	if (rc == 0)
		rc = gnutls_privkey_import_x509_raw(g->key, &p->text, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (rc < 0)
		return not_this(p, rc, "a private key without a password", err);
	if (gnutls_pubkey_init(&public) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = gnutls_pubkey_import_privkey(public, g->key, 0, 0) == 0 &&
		     same_key(public, g->chain[0].pubkey)
		     ? SKV_OK
		     : skv_fail(err, SKV_E_INVALID, p->param,
				"%s: %s is not the key of the first certificate in %s", p->param,
				p->path, cert);
	gnutls_pubkey_deinit(public);
	return rc;
}

static int take_clients(struct generation *g, const struct pem *p, struct skv_error *err)
{
	int n = gnutls_x509_trust_list_init(&g->clients, 0);

	if (n == 0)
		n = gnutls_x509_trust_list_add_trust_mem(g->clients, &p->text, NULL,
							 GNUTLS_X509_FMT_PEM, 0, 0);
	if (n == 0)
		n = GNUTLS_E_NO_CERTIFICATE_FOUND;
	return n > 0 ? SKV_OK : not_this(p, n, "a file of CA certificates", err);
}

void skv_tls_generation_free(struct generation *g)
{
	for (unsigned i = 0; i < g->n_chain; i++)
		gnutls_pcert_deinit(&g->chain[i]);
	if (g->key)
		gnutls_privkey_deinit(g->key);
	if (g->clients)
		gnutls_x509_trust_list_deinit(g->clients, 1);
	skv_free(g);
}

static void digest(struct generation *g, const struct pem *v, unsigned n)
{
	gnutls_hash_hd_t h;
	int rc = gnutls_hash_init(&h, GNUTLS_DIG_SHA256);

	assert(rc == 0 && gnutls_hash_get_len(GNUTLS_DIG_SHA256) == sizeof g->digest);
	for (unsigned i = 0; i < n; i++) {
		gnutls_hash(h, &v[i].text.size, sizeof v[i].text.size);
		gnutls_hash(h, v[i].text.data, v[i].text.size);
	}
	gnutls_hash_deinit(h, g->digest);
}

int skv_tls_read(const struct skv_tls_files *f, struct generation **out, struct skv_error *err)
{
	struct pem v[] = { { "tls_cert_file", f->cert, { 0 } },
			   { "tls_key_file", f->key, { 0 } },
			   { "tls_client_ca_file", f->client_ca, { 0 } } };
	const unsigned n = *f->client_ca ? 3 : 2;
	struct generation *g = skv_calloc(1, sizeof *g);
	int rc = g ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");

	for (unsigned i = 0; rc == SKV_OK && i < n; i++)
		rc = read_pem(&v[i], i == 1, err);
	if (rc == SKV_OK)
		rc = take_chain(g, &v[0], err);
	if (rc == SKV_OK)
		rc = take_key(g, &v[1], f->cert, err);
	if (rc == SKV_OK && n == 3)
		rc = take_clients(g, &v[2], err);
	if (rc == SKV_OK)
		digest(g, v, n);
	for (unsigned i = 0; i < n; i++) {
		if (v[i].text.data)
			sodium_memzero(v[i].text.data, v[i].text.size);
		skv_free(v[i].text.data);
	}
	if (rc != SKV_OK && g) {
		skv_tls_generation_free(g);
		return rc;
	}
	*out = g;
	return rc;
}
