/*
 * numa.c - NUMA placement of pages (see numa.h).
 *
 * Holds nothing. A kernel without NUMA, or a container that may not ask, counts as
 * a machine with one node.
 */
#include "numa.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_NODES = 1024, WORD = sizeof(unsigned long) * CHAR_BIT }; /* the kernel's own limit */

struct nodes {
	unsigned long bits[MAX_NODES / WORD];
};

static struct nodes allowed(void)
{
	struct nodes n = { { 0 } };

	/* The kernel takes one from the number of bits, here and in mbind. */
	if (syscall(SYS_get_mempolicy, NULL, n.bits, MAX_NODES + 1L, NULL, MPOL_F_MEMS_ALLOWED) !=
	    0)
		n = (struct nodes){ { 1 } };
	return n;
}

static bool has(const struct nodes *n, int node) { return n->bits[node / WORD] >> node % WORD & 1; }

int skv_numa_last(void)
{
	struct nodes n = allowed();
	int last = MAX_NODES - 1;

	while (last > 0 && !has(&n, last))
		last--;
	return last;
}

bool skv_numa_has(int node)
{
	struct nodes n = allowed();

	return node >= 0 && node < MAX_NODES && has(&n, node);
}

bool skv_numa_prefer(void *base, size_t size, int node, bool move)
{
	struct nodes n = { { 0 } };

	n.bits[node / WORD] = 1UL << node % WORD;
	return syscall(SYS_mbind, base, size, MPOL_PREFERRED, n.bits, MAX_NODES + 1L,
		       move ? MPOL_MF_MOVE : 0) == 0;
}
