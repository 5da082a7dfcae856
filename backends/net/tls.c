/*
 * tls.c - TLS towards other servers: sessions of GnuTLS, the server's only TLS library.
 *
 * A server must show a certificate that the CAs vouch for and that has its name. Files are read for
 * each connection: connections live long, and renewed certificates need no restart.
 *
 * A session belongs to its connection's thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <skv/mem.h>
#include <skv/net.h>

struct skv_net_session {
	gnutls_session_t session;
	gnutls_certificate_credentials_t files;
	char name[SKV_NET_HOST_MAX + 1]; /* in the server's certificate */
	bool ready;                    /* the handshake is over */
	bool heard;                    /* and something came after it */
	bool pending;                  /* a record that GnuTLS has taken is not wholly sent yet */
	const char *plain;             /* begins URLs of servers without TLS, or NULL */
	char why[256];
};

const char *skv_net_session_error(const struct skv_net_session *s) { return s->why; }

void skv_net_session_free(struct skv_net_session *s)
{
	if (!s)
		return;
	if (s->ready && !s->pending)
		gnutls_bye(s->session, GNUTLS_SHUT_WR); /* if the socket takes it */
	if (s->session)
		gnutls_deinit(s->session);
	if (s->files)
		gnutls_certificate_free_credentials(s->files);
	skv_free(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int no_use(struct skv_error *err, const char *option, const char *path, int why)
{
	return skv_fail(err, SKV_E_STORE_IO, "store", "%s of the URL: %.200s cannot be used: %s",
			option, path, gnutls_strerror(why));
}

static int read_files(struct skv_net_session *s, const struct skv_net_tls *tls,
		      struct skv_error *err)
{
	int n = *tls->ca_file ? gnutls_certificate_set_x509_trust_file(s->files, tls->ca_file,
								       GNUTLS_X509_FMT_PEM)
			      : gnutls_certificate_set_x509_system_trust(s->files);

	if (n <= 0)
		return no_use(err, "ca_file", *tls->ca_file ? tls->ca_file : "the system's file",
			      n < 0 ? n : GNUTLS_E_NO_CERTIFICATE_FOUND);
	if (!*tls->cert_file)
		return SKV_OK;
	n = gnutls_certificate_set_x509_key_file(s->files, tls->cert_file, tls->key_file,
						 GNUTLS_X509_FMT_PEM);
	return n >= 0 ? SKV_OK : no_use(err, "cert_file or key_file", tls->cert_file, n);
}

/* ---- a session ------------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
	unsigned char room[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, room) == 1 || inet_pton(AF_INET6, host, room) == 1;
}

static bool prepare(struct skv_net_session *s, int fd, const char *alpn)
{
	gnutls_datum_t protocol = { (void *)(uintptr_t)alpn, alpn ? (unsigned)strlen(alpn) : 0 };

	if (gnutls_init(&s->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0)
		return false;
	if (gnutls_priority_set_direct(s->session,
				       "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL) != 0 ||
	    gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, s->files) != 0)
		return false;
	if (!is_address(s->name) &&
	    gnutls_server_name_set(s->session, GNUTLS_NAME_DNS, s->name, strlen(s->name)) != 0)
		return false;
	if (alpn && gnutls_alpn_set_protocols(s->session, &protocol, 1, 0) != 0)
		return false;
	gnutls_session_set_verify_cert(s->session, s->name, 0);
	gnutls_transport_set_int(s->session, fd);
	return true;
}

struct skv_net_session *skv_net_session_new(int fd, const char *host, const struct skv_net_tls *tls,
					    const char *alpn, const char *plain,
					    struct skv_error *err)
{
	struct skv_net_session *s = skv_calloc(1, sizeof *s);

	assert(tls->on && fd >= 0);
	if (!s) {
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		return NULL;
	}
	s->plain = plain;
	snprintf(s->name, sizeof s->name, "%s", *tls->server_name ? tls->server_name : host);
	if (gnutls_certificate_allocate_credentials(&s->files) != 0)
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	else if (read_files(s, tls, err) == SKV_OK) {
		if (prepare(s, fd, alpn))
			return s;
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	skv_net_session_free(s);
	return NULL;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The server's certificate, as GnuTLS judges it; its sentences end with a space. */
static void note_certificate(struct skv_net_session *s)
{
	const unsigned status = gnutls_session_get_verify_cert_status(s->session);
	gnutls_datum_t text = { NULL, 0 };

	if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) != 0)
		text.data = NULL;
	snprintf(s->why, sizeof s->why, "its certificate is refused (for %.60s): %.150s", s->name,
		 text.data ? (const char *)text.data : "not valid");
	gnutls_free(text.data);
	for (size_t n = strlen(s->why); n > 0 && s->why[n - 1] == ' '; n--)
		s->why[n - 1] = '\0';
}

/* With TLS 1.3 a server refuses a client after the handshake, and its alert is lost when it closes
 * a connection on which something waits. */
static void note(struct skv_net_session *s, int rc)
{
	static const char hint[] =
		" (does it ask for a certificate? see cert_file and key_file of the URL)";
	const char *alert;

	if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
		note_certificate(s);
	} else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		alert = gnutls_alert_get_name(gnutls_alert_get(s->session));
		snprintf(s->why, sizeof s->why, "it ends TLS: '%s'%s",
			 alert ? alert : "unknown alert", hint);
	} else if (!s->ready) {
		snprintf(s->why, sizeof s->why,
			 "no TLS handshake: %.120s (is this a plain port?%s%s%s)",
			 gnutls_strerror(rc), s->plain ? " " : "", s->plain ? s->plain : "",
			 s->plain ? " is for these" : "");
	} else {
		snprintf(s->why, sizeof s->why, "TLS: %.120s%s", gnutls_strerror(rc),
			 s->heard ? "" : hint);
	}
}

static ssize_t stopped(struct skv_net_session *s, ssize_t rc)
{
	assert(rc < 0);
	if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED)
		return gnutls_record_get_direction(s->session) ? SKV_NET_WANTS_WRITE
							       : SKV_NET_WANTS_READ;
	note(s, (int)rc);
	return SKV_NET_BROKEN;
}

ssize_t skv_net_session_handshake(struct skv_net_session *s)
{
	int rc;

	assert(!s->ready);
	do
		rc = gnutls_handshake(s->session);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && rc != GNUTLS_E_INTERRUPTED &&
	       !gnutls_error_is_fatal(rc));
	if (rc < 0) {
		if (gnutls_error_is_fatal(rc))
			gnutls_alert_send_appropriate(s->session, rc);
		return stopped(s, rc);
	}
	s->ready = true;
	return 1;
}

ssize_t skv_net_session_receive(struct skv_net_session *s, void *p, size_t n)
{
	ssize_t rc;

	assert(s->ready);
	do
		rc = gnutls_record_recv(s->session, p, n);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal((int)rc));
	if (rc == GNUTLS_E_PREMATURE_TERMINATION && s->heard)
		return 0;
	s->heard |= rc > 0;
	return rc >= 0 ? rc : stopped(s, rc);
}

ssize_t skv_net_session_send(struct skv_net_session *s, const void *p, size_t n)
{
	/* Of a pending record GnuTLS has its own copy, and knows the length that it was given. */
	const ssize_t rc = s->pending ? gnutls_record_send(s->session, NULL, 0)
				      : gnutls_record_send(s->session, p, n);

	assert(s->ready);
	s->pending = rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED;
	return rc >= 0 ? rc : stopped(s, rc);
}
