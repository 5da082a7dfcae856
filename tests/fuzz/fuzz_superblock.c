/*
 * fuzz_superblock.c - any 4096 bytes as the superblock of a slab file.
 *
 * The input is laid over a block of zeros; the first byte says whether the checksum is made right,
 * so that what lies behind it is reached. What is accepted must encode to the bytes it came from.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/superblock.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t block[SKV_SUPERBLOCK_SIZE] = { 0 }, again[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock sb;
	struct skv_error err = { 0 };
	int rc;

	if (size == 0)
		return 0;
	memcpy(block, data + 1, size - 1 < sizeof block ? size - 1 : sizeof block);
	if (data[0] & 1) {
		uint64_t sum = skv_checksum(block, sizeof block - 8);

		for (int i = 0; i < 8; i++)
			block[sizeof block - 8 + i] = (uint8_t)(sum >> 8 * i);
	}
	rc = skv_superblock_decode(block, &sb, &err);
	if (rc != SKV_OK && (rc != err.status || err.message[0] == '\0'))
		abort();
	if (rc != SKV_OK)
		return 0;
	skv_superblock_encode(&sb, again);
	/* Bytes that no version uses yet are not kept. */
	if (memcmp(block, again, 72) != 0)
		abort();
	return 0;
}
