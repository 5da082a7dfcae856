/*
 * memory.c - the `memory` storage: slabs in the memory of a node, which is another process (slabkvd
 * --role memory-node) with the protocol of an fs-master.
 *
 * backends/fsmaster/remote.c does all the work; this file only describes the type. No state.
 */
#include <skv/storage.h>

#include <assert.h>

#include <skv/superblock.h>

static int without_node(struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, "fs_master",
			"a storage of type memory needs the URL of its memory node: "
			"\"fs_master\":[\"http://host:port/NAME\"]");
}

static int memory_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	assert(c->n_masters == 0); /* else remote.c opens it */
	(void)self;
	return without_node(err);
}

static void memory_close(void *self) { assert(!self); }

/* Never called: without a node there is none that is open. */
static int no_file(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	(void)self;
	(void)file;
	(void)length;
	return without_node(err);
}

static int no_file_to_remove(void *self, uint32_t file, struct skv_error *err)
{
	return no_file(self, file, 0, err);
}

static int no_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
		    struct skv_error *err)
{
	(void)what;
	(void)out;
	return no_file(self, 0, 0, err);
}

static int no_owners(void *self, const struct skv_storage_owner *mine,
		     struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		     struct skv_error *err)
{
	(void)mine;
	(void)v;
	(void)n;
	return no_file(self, 0, 0, err);
}

static int no_claim(void *self, const struct skv_storage_owner *o, struct skv_error *err)
{
	(void)o;
	return no_file(self, 0, 0, err);
}

static int no_leave(void *self, struct skv_error *err) { return no_file(self, 0, 0, err); }

const struct skv_storage_ops skv_storage_memory = {
	.size = sizeof(struct skv_storage_ops),
	.type = "memory",
	.edge = SKV_SUPERBLOCK_SIZE,
	.open = memory_open,
	.close = memory_close,
	.create_file = no_file,
	.check_file = no_file,
	.remove_file = no_file_to_remove,
	.probe = no_probe,
	.forgetful = true,
	.owners = no_owners,
	.claim = no_claim,
	.disown = no_claim,
	.leave = no_leave,
};
