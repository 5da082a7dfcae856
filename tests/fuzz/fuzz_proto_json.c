/*
 * fuzz_proto_json.c - any bytes into the reader of proto3 JSON.
 */
#include "fuzz_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_proto(&skv_proto_json, data, size);
	return 0;
}
