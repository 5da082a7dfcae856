/*
 * pb_messages.h - every message of the native API in protobuf under one signature, as messages.h has
 * them in JSON. The samples are those of messages.h, carried over.
 */
#ifndef TESTS_API_PB_MESSAGES_H
#define TESTS_API_PB_MESSAGES_H

#include <kvb/v1_codec.h>

struct pb_message {
	const char *name;
	/* Reads `text`; when that is KVB_OK writes what was read to `out`. Returns the read's status. */
	int (*echo)(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *out,
		    struct kvb_error *err);
	/* Reads JSON, writes protobuf, reads that, writes JSON. Returns the status of the first failure. */
	int (*convert)(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *pb,
		       struct kvb_buf *json, struct kvb_error *err);
};

extern const struct pb_message pb_messages[];
extern const size_t n_pb_messages;

/* Appends the sample of messages.h, in protobuf. Aborts when there is none. */
void pb_sample(const struct pb_message *m, struct kvb_buf *out);

#endif
