/*
 * certificates.c - certificates of the ports, and of calls to other parts, from the parameters.
 * Called by the main thread.
 */
#include "main.h"

#include <time.h>

#include <skv/http.h>
#include <skv/log.h>
#include <skv/tls.h>

#define SOON_S (14 * 24 * 3600) /* of a certificate's end: worth a warning */

static void tell_end(void)
{
	const int64_t left = (int64_t)skv_tls_expires() - (int64_t)time(NULL);

	if (left < 0)
		skv_log(SKV_LOG_ERROR, "main",
			"the certificate in tls_cert_file has expired: clients refuse it");
	else if (left < SOON_S)
		skv_log(SKV_LOG_WARN, "main",
			"the certificate in tls_cert_file ends soon, days left: %d",
			(int)(left / (24 * 3600)));
}

int skv_certificates_load(const struct skv_params *p, struct skv_error *err)
{
	const struct skv_tls_files f = { p->tls_cert_file, p->tls_key_file, p->tls_client_ca_file };
	const struct skv_http_tls calls = { p->tls_ca_file, p->tls_cert_file, p->tls_key_file };
	int rc;

	skv_http_default_tls(&calls, "tls_ca_file");
	if (!*p->tls_cert_file)
		return SKV_OK;
	rc = skv_tls_load(&f, err);
	if (rc == SKV_OK)
		tell_end();
	return rc;
}

void skv_certificates_reload(void)
{
	struct skv_error err;
	bool changed;

	if (skv_tls_reload(&changed, &err) != SKV_OK) {
		skv_log(SKV_LOG_ERROR, "main", "SIGHUP: keeping the old certificates: %s",
			err.message);
		return;
	}
	if (changed)
		skv_log(SKV_LOG_INFO, "main", "SIGHUP: new certificates, for new connections");
	if (skv_tls_loaded())
		tell_end();
}
