/*
 * replay.c - a main for fuzz targets without a fuzzer, for any compiler: each file of the folders
 * it is given, then the same cut at each byte and with each byte changed. Files over MUTATED
 * bytes are only replayed.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATED 1500u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

/* In memory of exactly that size, so that a sanitizer sees the byte behind it. */
static void try(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		exit(1);
	memcpy(copy, data, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
	replayed++;
}

static void replay_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		exit(1);
	}
	n = fread(data, 1, sizeof data, f);
	fclose(f);
	try(data, n);
	for (size_t i = 0; n <= MUTATED && i < n; i++) {
		uint8_t was = data[i];

		try(data, i);
		data[i] = (uint8_t)(was ^ 1u << i % 8);
		try(data, n);
		data[i] = 0xff;
		try(data, n);
		data[i] = was;
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *e;
		char file[4096];

		if (!dir) {
			replay_file(argv[i]);
			continue;
		}
		while ((e = readdir(dir))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(file, sizeof file, "%s/%s", argv[i], e->d_name);
			replay_file(file);
		}
		closedir(dir);
	}
	printf("%u inputs replayed\n", replayed);
	return replayed ? 0 : 1;
}
