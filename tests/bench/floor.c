/*
 * floor.c - the floor of a key: hash 16 bytes (XXH3), touch one random cache line of a large table;
 * and of the bytes that travel: copy the request and the answer once.
 *
 * Usage: floor TABLE_MIB KEYS REQUEST_BYTES ANSWER_BYTES SECONDS. One JSON object on stdout:
 * ns_per_key, copy_us (of one call's bytes), call_us (both for one call of KEYS keys). Not a test.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "bench_util.h"

#define LINE 64u

static double ns_per_key(uint8_t *table, uint64_t lines, double seconds)
{
	uint64_t begin = bench_now_us(), now = begin, n = 0;

	do {
		for (int i = 0; i < 4096; i++, n++) {
			uint64_t key[2] = { 0, n };

			table[XXH3_64bits(key, sizeof key) % lines * LINE]++;
		}
		now = bench_now_us();
	} while (now - begin < (uint64_t)(seconds * 1e6));
	return (double)(now - begin) * 1e3 / (double)n;
}

static double copy_us(size_t bytes, double seconds)
{
	uint8_t *from = bench_memory(bytes + 1), *to = bench_memory(bytes + 1);
	uint64_t begin = bench_now_us(), now = begin, n = 0;

	do {
		for (int i = 0; i < 16; i++, n++) {
			memcpy(to, from, bytes);
			__asm__ volatile("" : : "r"(to) : "memory");
		}
		now = bench_now_us();
	} while (now - begin < (uint64_t)(seconds * 1e6));
	free(from);
	free(to);
	return (double)(now - begin) / (double)n;
}

int main(int argc, char **argv)
{
	uint64_t bytes, keys;
	double key, copy, seconds;
	void *table;

	if (argc < 6)
		bench_die("usage: floor TABLE_MIB KEYS REQUEST_BYTES ANSWER_BYTES SECONDS");
	bytes = strtoull(argv[1], NULL, 10) << 20;
	keys = strtoull(argv[2], NULL, 10);
	seconds = strtod(argv[5], NULL) / 2;
	if (bytes == 0 || keys == 0)
		bench_die("a table and keys are needed");
	table = bench_memory(bytes);
	key = ns_per_key(table, bytes / LINE, seconds);
	free(table);
	copy = copy_us(strtoull(argv[3], NULL, 10) + strtoull(argv[4], NULL, 10), seconds);
	printf("{\"ns_per_key\": %.2f, \"copy_us\": %.3f, \"call_us\": %.3f}\n", key, copy,
	       key * (double)keys / 1e3 + copy);
	return 0;
}
