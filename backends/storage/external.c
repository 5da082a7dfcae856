/*
 * external.c - the `external` storage: slots that are merely counted, in a file that
 * clients make themselves.
 *
 * The manager knows how many slots there are, and neither their size nor where the file lies;
 * nothing here is made, checked or removed. No state, no locks, any thread, never blocks.
 */
#include <skv/storage.h>

static char no_state;

static int external_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	(void)c;
	(void)err;
	*self = &no_state;
	return SKV_OK;
}

static void external_close(void *self) { (void)self; }

static int external_file(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	(void)self;
	(void)file;
	(void)length;
	(void)err;
	return SKV_OK;
}

static int external_remove(void *self, uint32_t file, struct skv_error *err)
{
	return external_file(self, file, 0, err);
}

static int external_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
			  struct skv_error *err)
{
	(void)what;
	(void)self;
	(void)err;
	*out = (struct skv_storage_health){ .free_bytes = UINT64_MAX, .total_bytes = UINT64_MAX };
	return SKV_OK;
}

const struct skv_storage_ops skv_storage_external = {
	.size = sizeof(struct skv_storage_ops),
	.type = "external",
	.open = external_open,
	.close = external_close,
	.create_file = external_file,
	.check_file = external_file,
	.remove_file = external_remove,
	.probe = external_probe,
	.counted = true,
	.steady = true,
};
