/*
 * fuzz_v1_json.c - any bytes into every reader of the native API.
 *
 * First byte chooses the message, the rest is the document. What is accepted is written, and must then
 * be read again and written the same: a codec that disagrees with itself aborts. With KVB_FUZZ=ON
 * (clang) a libFuzzer target; as a plain program it replays the files or folders it is given.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what, const struct message *m)
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
	struct kvb_buf once, twice;
	const struct message *m;
	int status;

	if (size == 0)
		return 0;
	m = &messages[data[0] % n_messages];
	kvb_arena_init(&arena);
	kvb_buf_init(&once);
	kvb_buf_init(&twice);
	status = m->echo(&in, (const char *)data + 1, size - 1, &once, &err);
	if (status == KVB_OK || once.len > 0) {
		int again = m->echo(&in, (const char *)once.data, once.len, &twice, &err);

		must(again == status, "written, but not read again", m);
		must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0,
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
	LLVMFuzzerTestOneInput(data, n);
	replayed++;
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

/* Every sample, and every sample with each byte changed or cut off: a cheap fuzzer for any compiler. */
static void replay_samples(void)
{
	for (size_t i = 0; i < n_messages; i++) {
		size_t n = strlen(messages[i].sample) + 1;
		uint8_t *data = malloc(n);

		if (!data)
			exit(1);
		for (size_t at = 1; at < n; at++) {
			static const char swaps[] = "\"{}[],:0-9e.\\\x80\xffnt";

			for (size_t s = 0; s < sizeof swaps; s++) {
				data[0] = (uint8_t)i;
				memcpy(data + 1, messages[i].sample, n - 1);
				data[at] = (uint8_t)swaps[s];
				LLVMFuzzerTestOneInput(data, n);
				replayed++;
			}
			LLVMFuzzerTestOneInput(data, at);
		}
		free(data);
	}
}

int main(int argc, char **argv)
{
	replay_samples();
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u documents replayed\n", replayed);
	return argc > 1 && replayed ? 0 : 1;
}

#endif
