/*
 * memory.c - measures the permitted and the used memory of the manager.
 *
 * Control groups of version 2 have memory.max, those of version 1 memory.limit_in_bytes; the limits
 * of all parent groups apply, too. In a container the path in /proc may be the host's, and only the
 * top exists. The kernel kills a process for its resident memory without the page cache, which it
 * can reclaim. Stateless, but for the level that was logged.
 */
#include "memory.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

#define GROUPS "/sys/fs/cgroup"
#define NO_LIMIT (1ull << 60) /* version 1 has a number of this size where there is none */

/* The first bytes of a file as text; "" if it cannot be read. */
static void read_text(const char *path, char *out, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* The least limit of a group and of those above it. */
static uint64_t limit_of(const char *mount, const char *group, const char *file)
{
	char path[4096], text[64];
	uint64_t least = NO_LIMIT;

	for (int n = (int)strlen(group); n >= 0; n--) {
		if (group[n] != '\0' && group[n] != '/')
			continue;
		snprintf(path, sizeof path, "%s%.*s/%s", mount, n, group, file);
		read_text(path, text, sizeof text);
		if (*text >= '0' && *text <= '9' && strtoull(text, NULL, 10) < least)
			least = strtoull(text, NULL, 10);
	}
	return least;
}

/* Lines of /proc/self/cgroup are "0::/group", and in version 1 "4:memory:/group". */
static uint64_t limit_of_groups(void)
{
	char text[4096], *rest = text, *line;
	uint64_t least = NO_LIMIT, one;

	read_text("/proc/self/cgroup", text, sizeof text);
	while ((line = strsep(&rest, "\n"))) {
		const char *first = strchr(line, ':');
		const char *group = first ? strchr(first + 1, ':') : NULL;

		if (!group)
			continue;
		one = first + 1 == group ? limit_of(GROUPS, group + 1, "memory.max")
		      : strncmp(first, ":memory:", 8) == 0
			      ? limit_of(GROUPS "/memory", group + 1, "memory.limit_in_bytes")
			      : NO_LIMIT;
		least = one < least ? one : least;
	}
	return least < NO_LIMIT ? least : 0;
}

uint64_t memory_max(const struct skv_params *p)
{
	return p->memory_max ? p->memory_max : limit_of_groups();
}

/* The second number of statm: pages. */
static uint64_t resident(void)
{
	char text[128];
	const char *second;

	read_text("/proc/self/statm", text, sizeof text);
	second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void memory_look(uint64_t most)
{
	const enum skv_mem_level was = skv_mem_level();
	const uint64_t used = resident();
	const enum skv_mem_level now = skv_mem_note(used, most);

	assert(now == SKV_MEM_FREE || most > 0);
	if (now > SKV_MEM_FREE && (now > was || now == SKV_MEM_TIGHT))
		malloc_trim(0); /* returns freed memory between pieces that are in use */
	if (now == was)
		return;
	skv_log(now > SKV_MEM_FULL ? SKV_LOG_WARN : SKV_LOG_INFO, "main",
		"memory: %" PRIu64 " MiB of %" PRIu64 " are used: %s", used >> 20, most >> 20,
		now == SKV_MEM_FREE   ? "blocks are added again"
		: now == SKV_MEM_FULL ? "new blocks replace old ones"
				      : "starts are refused (memory_max)");
}
