/*
 * fuzz_proto_binary.c - any bytes into the reader of protobuf's binary form.
 */
#include "fuzz_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_proto(&skv_proto_binary, data, size);
	return 0;
}
