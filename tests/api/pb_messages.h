/*
 * pb_messages.h - every message of the native API in protobuf under one signature, as messages.h
 * has them in JSON. The samples are those of messages.h, carried over.
 */
#ifndef TESTS_API_PB_MESSAGES_H
#define TESTS_API_PB_MESSAGES_H

#include <skv/v1_pb.h>

struct pb_message {
	const char *name;
	/* Reads `text`; when that is SKV_OK writes what was read to `out`.
	 * Returns the read's status. */
	int (*echo)(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *out,
		    struct skv_error *err);
};

extern const struct pb_message pb_messages[];
extern const size_t n_pb_messages;

/* Aborts the test when there is none. */
const struct pb_message *pb_message_find(const char *name);

/* Appends the sample of messages.h, in protobuf. Aborts when there is none. */
void pb_sample(const struct pb_message *m, struct skv_buf *out);

#endif
