/* keys.c - block keys from tokens, bit for bit as KVCM's clients compute them. */
#include <skv/kvcm.h>

#include <assert.h>

void kvcm_token_keys(const int64_t *tokens, size_t n, uint32_t block_size, int64_t *keys)
{
	uint64_t h = 0;

	assert(block_size > 0);
	for (size_t i = 0; i < n / block_size; i++) {
		for (uint32_t j = 0; j < block_size; j++) {
			/* The state is a signed number there, so its right shift copies the sign
			 * bit. */
			uint64_t right = (uint64_t)((int64_t)h >> 32);

			h ^= (uint64_t)*tokens++ + 0x9e3779b97f4a7c15u + (h << 12) + right;
		}
		keys[i] = (int64_t)h;
	}
}
