/* endpoint.h - under which host and URL other machines find this one. */
#ifndef KVB_ENDPOINT_H
#define KVB_ENDPOINT_H

#include <stddef.h>

/* `listen` itself if it is one address or name; else this host's first address that is no loopback. */
void kvb_endpoint_host(const char *listen, char *out, size_t n);
/* `advertise` as a URL; if it is empty, `bound` ("http://127.0.0.1:7333"), with kvb_endpoint_host's if that is any
 * address. */
void kvb_endpoint_url(const char *advertise, const char *bound, char *out, size_t n);

#endif
