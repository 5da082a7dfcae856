/* endpoint.h - under which host other machines find this one. */
#ifndef KVB_ENDPOINT_H
#define KVB_ENDPOINT_H

#include <stddef.h>

/* `listen` itself if it is one address or name; else this host's first address that is no loopback. */
void kvb_endpoint_host(const char *listen, char *out, size_t n);

#endif
