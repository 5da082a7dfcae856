/*
 * endpoint.c - the host and URL under which other machines reach this one.
 *
 * Stateless. Called at start.
 */
#include "endpoint.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static bool is_any(const char *listen)
{
	return !*listen || strcmp(listen, "0.0.0.0") == 0 || strcmp(listen, "::") == 0;
}

/* An address of this family that is up and not loopback; link-local ones mean nothing elsewhere. */
static bool first_address(const struct ifaddrs *list, int family, char *out, size_t n)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const void *at;

		if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (family == AF_INET) {
			at = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
		} else {
			const struct in6_addr *a =
				&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)
					 ->sin6_addr;

			if (IN6_IS_ADDR_LINKLOCAL(a))
				continue;
			at = a;
		}
		if (inet_ntop(family, at, out, (socklen_t)n))
			return true;
	}
	return false;
}

bool skv_endpoint_has_port(const char *advertise)
{
	const char *colon = strchr(advertise, ':');

	return *advertise == '[' ? strstr(advertise, "]:") != NULL
				 : colon && (colon == strrchr(advertise, ':') || colon[1] == '/');
}

/* Copies the host of `advertise`: a URL, host:port, or a host alone. */
static void copy_host(const char *advertise, char *out, size_t n)
{
	const char *at = strstr(advertise, "://") ? strstr(advertise, "://") + 3 : advertise;
	size_t length = skv_endpoint_has_port(at) ? strcspn(at, ":") : strlen(at);

	if (*at == '[')
		length = strcspn(++at, "]");
	snprintf(out, n, "%.*s", (int)length, at);
}

void skv_endpoint_host(const char *advertise, const char *listen, char *out, size_t n)
{
	struct ifaddrs *list = NULL;

	if (*advertise) {
		copy_host(advertise, out, n);
		return;
	}
	snprintf(out, n, "%s", is_any(listen) ? "127.0.0.1" : listen);
	if (!is_any(listen) || getifaddrs(&list) != 0)
		return;
	if (!first_address(list, AF_INET, out, n) && !first_address(list, AF_INET6, out, n))
		snprintf(out, n, "127.0.0.1");
	freeifaddrs(list);
}

void skv_endpoint_url(const char *advertise, const char *bound, char *out, size_t n)
{
	const char *host = strstr(bound, "://") + 3, *port = strrchr(bound, ':');
	const int scheme = (int)(host - bound);
	char any[8], at[256];

	if (skv_endpoint_has_port(advertise)) {
		snprintf(out, n, "%.*s%s", strstr(advertise, "://") ? 0 : scheme, bound, advertise);
		return;
	}
	assert(port >= host);
	snprintf(any, sizeof any, "%.*s", (int)(port - host), host);
	if (!*advertise && strcmp(any, "0.0.0.0") != 0 && strcmp(any, "[::]") != 0) {
		snprintf(out, n, "%s", bound);
		return;
	}
	skv_endpoint_host(advertise, "", at, sizeof at);
	snprintf(out, n, strchr(at, ':') ? "%.*s[%s]%s" : "%.*s%s%s", scheme, bound, at, port);
}
