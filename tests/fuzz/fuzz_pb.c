/*
 * fuzz_pb.c - any bytes into every protobuf reader of the native API.
 *
 * First byte chooses the message, the rest is the message. What is accepted is written, and must
 * then be read again and written the same. The corpus is a sample of each message.
 */
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
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct skv_error err;
	struct skv_buf once = { 0 }, twice = { 0 };
	const struct pb_message *m;
	int status;

	if (size == 0)
		return 0;
	m = &pb_messages[data[0] % n_pb_messages];
	skv_arena_init(&arena);
	skv_error_clear(&err);
	status = m->echo(&in, (const char *)data + 1, size - 1, &once, &err);
	if (status == SKV_OK || once.len > 0) {
		int again = m->echo(&in, (const char *)once.data, once.len, &twice, &err);

		must(again == status, "written, but not read again", m);
		must(once.len == twice.len &&
			     (once.len == 0 || memcmp(once.data, twice.data, once.len) == 0),
		     "written differently the second time", m);
	} else {
		must(err.status == status, "the error has another status", m);
		must(err.message[0] != '\0', "an error without a message", m);
	}
	skv_buf_destroy(&once);
	skv_buf_destroy(&twice);
	skv_arena_destroy(&arena);
	return 0;
}
