/* internal.h - shared by http.c and relay.c: how this process calls others. */
#ifndef SKV_HTTP_INTERNAL_H
#define SKV_HTTP_INTERNAL_H

#include <curl/curl.h>
#include <stdint.h>

#include <skv/http.h>

/* Once per process, before any other call of libcurl. */
void http_init_curl(void);
/* Returns the TLS options of requests that set none; strings may be NULL. ca_file is never "". */
struct skv_http_tls http_default_tls(void);
/* Sets the options that all requests of this process to a manager share. libcurl writes into `why`
 * the reason of a TLS failure; `why` outlives the request. */
void http_set_common(CURL *curl, const char *url, const struct skv_http_tls *tls,
		     char why[CURL_ERROR_SIZE]);
struct skv_http_tls http_tls_of(const struct skv_http *h);
/* Why libcurl did not get to `url`, without an answer. Where the connection itself was refused
 * (TLS, or another protocol there), the error has a field and the sentence a remedy. */
int http_explain(CURLcode code, const char *url, const char *why, struct skv_error *err);
/* As a timeout of libcurl. */
long http_milliseconds(uint64_t ms);

#endif
