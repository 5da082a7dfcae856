/*
 * messages.h - every message of the native API under one signature, for the tests that treat all of
 * them alike (bad input, allocation failure, fuzzing).
 */
#ifndef TESTS_API_MESSAGES_H
#define TESTS_API_MESSAGES_H

#include <skv/v1_pb.h>

struct message {
	const char *name;
	/* Reads `text`; when that is SKV_OK writes what was read to `out`: of a request JSON is
	 * read and protobuf written, of an answer the other way round. Returns the read's
	 * status. */
	int (*echo)(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *out,
		    struct skv_error *err);
	const char *sample; /* a valid document that uses every field */
	size_t n_sample;
	const char *written; /* of an answer's sample; NULL: not an answer */
};

extern const struct message messages[];
extern const size_t n_messages;

/* Aborts the test when there is none. */
const struct message *message_find(const char *name);

extern const struct skv_secret test_secret;

#endif
