/*
 * fuzz_json.c - any bytes as a request of the native API in JSON; what is taken must be the same
 * after a way through protobuf.
 *
 * First byte chooses the message, the rest is the document (tests/api/identity.h). With SKV_FUZZ=ON
 * (clang) a libFuzzer target; replay.c runs the corpus without one.
 */
#include <stdio.h>

#include "../api/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		check_identity(data[0] % n_messages, (const char *)data + 1, size - 1);
	return 0;
}
