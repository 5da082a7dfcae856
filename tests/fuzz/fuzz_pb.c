/*
 * fuzz_pb.c - any bytes into every protobuf reader of the native API.
 *
 * First byte chooses the message, the rest is the message. What is accepted is written, and must then be
 * read again and written the same. With KVB_FUZZ=ON (clang) a libFuzzer target; with KVB_REPLAY a plain
 * program for any compiler: it replays every sample cut at each byte and with each byte changed, random
 * changes, and the files or folders it is given.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "pb_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what, const struct pb_message *m)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", m->name, what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kvb_arena arena;
	struct kvb_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct kvb_error err;
	struct kvb_buf once = { 0 }, twice = { 0 };
	const struct pb_message *m;
	int status;

	if (size == 0)
		return 0;
	m = &pb_messages[data[0] % n_pb_messages];
	kvb_arena_init(&arena);
	kvb_error_clear(&err);
	status = m->echo(&in, (const char *)data + 1, size - 1, &once, &err);
	if (status == KVB_OK || once.len > 0) {
		int again = m->echo(&in, (const char *)once.data, once.len, &twice, &err);

		must(again == status, "written, but not read again", m);
		must(once.len == twice.len &&
			     (once.len == 0 || memcmp(once.data, twice.data, once.len) == 0),
		     "written differently the second time", m);
	} else {
		must(err.status == status, "the error has another status", m);
		must(err.message[0] != '\0', "an error without a message", m);
	}
	kvb_buf_destroy(&once);
	kvb_buf_destroy(&twice);
	kvb_arena_destroy(&arena);
	return 0;
}

#ifdef KVB_REPLAY

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
}

static void replay(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir) {
		replay_file(path);
		return;
	}
	while ((e = readdir(dir))) {
		char file[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		replay_file(file);
	}
	closedir(dir);
}

/* One sample behind its number: cut anywhere, each byte changed, and many bytes changed. */
static void change(uint8_t *data, size_t n)
{
	static const uint8_t swaps[] = { 0, 1, 2, 3, 8, 9, 10, 11, 16, 18, 26, 34, 42, 127, 128, 129, 255 };
	uint8_t *work = malloc(n);
	uint64_t random = n;

	if (!work)
		exit(1);
	for (size_t at = 1; at < n; at++) {
		try(data, at);
		for (size_t s = 0; s < sizeof swaps; s++) {
			memcpy(work, data, n);
			work[at] = swaps[s];
			try(work, n);
		}
	}
	for (unsigned round = 0; round < 2000; round++) {
		memcpy(work, data, n);
		for (unsigned k = 0; k < 1 + round % 4 && n > 1; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			work[1 + (random >> 40) % (n - 1)] ^= (uint8_t)(1u << (random >> 60) % 8);
		}
		try(work, n);
	}
	free(work);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < n_pb_messages; i++) {
		struct kvb_buf b = { 0 };

		kvb_put_u8(&b, (uint8_t)i);
		pb_sample(&pb_messages[i], &b);
		change(b.data, b.len);
		kvb_buf_destroy(&b);
	}
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u messages replayed\n", replayed);
	return 0;
}

#endif
