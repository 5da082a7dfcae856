/* endpoint.h - the host and URL under which other machines reach this one. */
#ifndef SKV_ENDPOINT_H
#define SKV_ENDPOINT_H

#include <stddef.h>

/* `listen` itself if it is one address or name; else this host's first non-loopback address. */
void skv_endpoint_host(const char *listen, char *out, size_t n);
/* `advertise` as a URL; if empty, `bound` ("http://127.0.0.1:7333"), with skv_endpoint_host's host
 * if bound to any address. */
void skv_endpoint_url(const char *advertise, const char *bound, char *out, size_t n);

#endif
