/* endpoint.h - under which host and URL other machines find this one. */
#ifndef KVB_ENDPOINT_H
#define KVB_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

/* `listen` itself if it is one address or name; else this host's first address that is no loopback. */
void kvb_endpoint_host(const char *listen, char *out, size_t n);
/* `advertise` as a URL, or, if it is empty, that of kvb_endpoint_host and `port`. Without a slash at its end. */
void kvb_endpoint_url(const char *advertise, const char *listen, uint16_t port, char *out, size_t n);

#endif
