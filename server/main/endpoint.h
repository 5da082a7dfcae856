/* endpoint.h - the host and URL under which other machines reach this one. */
#ifndef SKV_ENDPOINT_H
#define SKV_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if `advertise` is a URL or host:port; otherwise it is a host alone, or empty. */
bool skv_endpoint_has_port(const char *advertise);
/* The host of `advertise`. If that is empty: `listen` itself if it is one address or name; else
 * this host's first non-loopback address. */
void skv_endpoint_host(const char *advertise, const char *listen, char *out, size_t n);
/* `advertise` as a URL, with the port of `bound` ("http://127.0.0.1:7333") if it has none; if
 * empty, `bound`, with skv_endpoint_host's host if bound to any address. */
void skv_endpoint_url(const char *advertise, const char *bound, char *out, size_t n);

#endif
