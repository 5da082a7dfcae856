/*
 * redis_member.c - parses lines of CLUSTER NODES.
 *
 * Stateless; any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_store.h"

/* ID HOST:PORT@BUSPORT[,NAME] FLAGS PRIMARY PING PONG EPOCH STATE [SLOTS...] */
bool redis_member_parse(const char *text, struct redis_member *out)
{
	char at[REDIS_HOST_MAX + 16], flags[128];
	const char *bus;
	int slots = 0;

	if (sscanf(text, "%63s %270s %127s %63s %*s %*s %*s %*s%n", out->id, at, flags, out->of,
		   &slots) != 4)
		return false;
	bus = strchr(at, '@');
	assert(strlen(out->id) < sizeof out->id && strlen(out->of) < sizeof out->of);
	out->bus = (uint16_t)(bus ? atoi(bus + 1) : 0);
	at[strcspn(at, "@")] = '\0';
	out->myself = strstr(flags, "myself") != NULL;
	out->master = strstr(flags, "master") != NULL;
	out->replica = strstr(flags, "slave") != NULL;
	out->gone = strstr(flags, "noaddr") || strstr(flags, "handshake");
	out->suspect = strstr(flags, "fail") && !strstr(flags, "nofailover");
	out->votes = out->master && slots > 0 && text[slots] == ' ';
	return strrchr(at, ':') && at[0] != ':' && redis_node_parse(at, strlen(at), &out->at);
}
