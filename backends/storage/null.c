/*
 * null.c - the storages `null` and `external`: addresses without a directory of the manager's.
 *
 * `null` is for metadata benchmarks and tests of everything above a storage. Every file exists
 * already and has any length; space has no bound. Header and trailer are those of `file`, so that
 * the same requests get the same offsets on both. Slots of `external` are merely counted, in a file
 * that clients make themselves: the manager knows their number, but neither their size nor the
 * file's location. Nothing is made, checked or removed. No state, no locks, any thread, never
 * blocks.
 */
#include <skv/storage.h>
#include <skv/superblock.h>

static char no_state;

static int null_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	(void)c;
	(void)err;
	*self = &no_state;
	return SKV_OK;
}

static void null_close(void *self) { (void)self; }

static int null_file(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	(void)self;
	(void)file;
	(void)length;
	(void)err;
	return SKV_OK;
}

static int null_remove(void *self, uint32_t file, struct skv_error *err)
{
	return null_file(self, file, 0, err);
}

static int null_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
		      struct skv_error *err)
{
	(void)what;
	(void)self;
	(void)err;
	*out = (struct skv_storage_health){ .free_bytes = UINT64_MAX, .total_bytes = UINT64_MAX };
	return SKV_OK;
}

const struct skv_storage_ops skv_storage_null = {
	.size = sizeof(struct skv_storage_ops),
	.type = "null",
	.edge = SKV_SUPERBLOCK_SIZE,
	.open = null_open,
	.close = null_close,
	.create_file = null_file,
	.check_file = null_file,
	.remove_file = null_remove,
	.probe = null_probe,
	.steady = true,
};

const struct skv_storage_ops skv_storage_external = {
	.size = sizeof(struct skv_storage_ops),
	.type = "external",
	.open = null_open,
	.close = null_close,
	.create_file = null_file,
	.check_file = null_file,
	.remove_file = null_remove,
	.probe = null_probe,
	.counted = true,
	.steady = true,
};
