/*
 * fuzz_json.c - any bytes through the JSON codec of the native API and through the reference on jansson.
 *
 * First byte chooses the message, the rest is the document; any difference aborts. With SKV_FUZZ=ON (clang)
 * a libFuzzer target; replay.c runs the corpus without one.
 */
#include <stdio.h>

#include "../api/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		compare_codecs(data[0] % n_messages, (const char *)data + 1, size - 1);
	return 0;
}
