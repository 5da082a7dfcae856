/* place.c - KVCM's names for the core's storages, states and slots. */
#include <skv/kvcm.h>

#include <assert.h>
#include <string.h>

#include <kvcm/meta.pb-c.h>

static const struct {
	const char *core;
	int type;
	const char *scheme;
} types[] = {
	{ "file", KVCM_META__STORAGE_TYPE__ST_NFS, "file" },
	{ "hf3fs", KVCM_META__STORAGE_TYPE__ST_3FS, "hf3fs" },
	{ "null", KVCM_META__STORAGE_TYPE__ST_DUMMY, "dummy" },
};

int kvcm_storage_type(const char *core_type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i].core, core_type) == 0)
			return types[i].type;
	return KVCM_META__STORAGE_TYPE__ST_UNSPECIFIED;
}

const char *kvcm_scheme(const char *core_type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i].core, core_type) == 0)
			return types[i].scheme;
	return "file";
}

const char *kvcm_core_type(int storage_type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].type == storage_type)
			return types[i].core;
	return NULL;
}

const char *kvcm_status_name(enum kvcm_status status)
{
	static const char *const names[] = { "CLS_NOT_FOUND", "CLS_NEW", "CLS_WRITING",
					     "CLS_SERVING", "CLS_DELETING" };

	return (unsigned)status <= KVCM_DELETING ? names[status] : names[0];
}

void kvcm_location_id(uint64_t generation, char out[KVCM_LOCATION_ID])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t mixed = generation * 0x9e3779b97f4a7c15u;
	uint32_t high, low;

	/* Each half is a fraction of 32 bits: its next digit is what crosses
	 * the point when multiplied. */
	mixed ^= mixed >> 32;
	mixed *= 0xd6e8feb86659fd93u;
	high = (uint32_t)(mixed >> 32);
	low = (uint32_t)mixed;
	for (int i = 0; i < KVCM_LOCATION_ID / 2; i++) {
		uint64_t a = (uint64_t)high * 36, b = (uint64_t)low * 36;

		assert(a >> 32 < 36 && b >> 32 < 36);
		out[i] = digits[a >> 32];
		out[i + KVCM_LOCATION_ID / 2] = digits[b >> 32];
		high = (uint32_t)a;
		low = (uint32_t)b;
	}
}

uint32_t kvcm_columns(const char *const *want, size_t n_want, const char *const *specs,
		      uint32_t n_specs)
{
	uint32_t columns = 0;

	assert(n_specs <= SKV_MAX_SPECS);
	if (n_want == 0)
		return KVCM_ALL_COLUMNS;
	for (size_t i = 0; i < n_want; i++)
		for (uint32_t s = 0; s < n_specs; s++)
			if (strcmp(want[i], specs[s]) == 0)
				columns |= (uint32_t)1 << s;
	return columns;
}
