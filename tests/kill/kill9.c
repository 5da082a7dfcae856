/*
 * kill9.c - kills the manager again and again under load; nothing that was acknowledged may be
 * lost, no byte wrong, nothing leaked.
 *
 * usage: kill9 SLABKVD full|normal KILLS
 *
 * Two phases of KILLS kills each, at random moments: one with room for everything (what was
 * acknowledged must be found), one in a storage that is too small (what is found must be right).
 * Before each kill a session is opened; after the restart its slots are written and it is finished
 * by its client. After each kill `slabkvd fsck --files` must find nothing. At the end: no session,
 * no quarantine, no byte in use beyond the blocks.
 */
#include "kill9.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const char *const instance = "kill9";

/* ---- a session that is open when the manager dies -------------------------------------------- */

struct survivor {
	const struct slabkv_session *s;
	uint64_t first;
};

static void open_session(struct slabkv *kv, struct survivor *v, uint64_t first)
{
	uint64_t ints[CHAIN];
	struct slabkv_keys keys;
	struct slabkv_error err;
	int rc = SLABKV_E_NO_SPACE;

	for (uint32_t i = 0; i < CHAIN; i++)
		ints[i] = first + i;
	keys = slabkv_keys_ints(ints, CHAIN);
	v->first = first;
	v->s = NULL;
	/* Just after a restart every block may still be leased: then there
	 * is room when that is over. */
	for (int i = 0; i < 500 && rc == SLABKV_E_NO_SPACE; i++) {
		rc = slabkv_start(
			kv, instance, &keys,
			&(struct slabkv_put_options){ .size = sizeof(struct slabkv_put_options),
						      .deadline_ms = 8000 },
			NULL, &v->s, &err);
		if (rc == SLABKV_E_NO_SPACE)
			poll(NULL, 0, 10);
	}
	MUST(rc == SLABKV_OK, "%s", err.message);
	MUST(v->s->n_write == CHAIN, "%u blocks to write", v->s->n_write);
}

/* Writes by itself where the dead manager told it to, and finishes at the new one. */
static void finish_session(struct slabkv *kv, const struct manager *m, struct survivor *v)
{
	uint8_t bytes[BLOCK];
	uint64_t sums[CHAIN];
	struct slabkv_finished done = { .size = sizeof(struct slabkv_finished) };
	struct slabkv_error err;

	for (uint32_t i = 0; i < CHAIN; i++) {
		const struct slabkv_location *loc = &v->s->loc[i];
		char path[256];
		int fd;

		fill(v->first + i, bytes);
		sums[i] = slabkv_checksum(bytes, sizeof bytes);
		snprintf(path, sizeof path, "%s/slabkv-data/%s", m->dir,
			 v->s->files[loc->file].path);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		MUST(fd >= 0, "%s", path);
		MUST(pwrite(fd, bytes, BLOCK, (off_t)loc->offset) == BLOCK && fdatasync(fd) == 0,
		     "%s", path);
		close(fd);
	}
	MUST(slabkv_finish(kv, v->s->id,
			   &(struct slabkv_finish_options){
				   .size = sizeof(struct slabkv_finish_options),
				   .checksums = sums,
				   .n_checksums = CHAIN,
				   .quiesced = true },
			   &done, &err) == SLABKV_OK,
	     "%s", err.message);
	MUST(done.committed == CHAIN, "%u committed", done.committed);
	slabkv_free(v->s);
}

static void check_and_delete(struct slabkv *kv, const struct survivor *v, bool evicts)
{
	static uint8_t bytes[CHAIN][BLOCK];
	uint8_t expected[BLOCK];
	uint64_t ints[CHAIN];
	struct slabkv_buf buf[CHAIN];
	struct slabkv_block block[CHAIN];
	struct slabkv_keys keys = slabkv_keys_ints(ints, CHAIN);
	struct slabkv_error err;

	for (uint32_t i = 0; i < CHAIN; i++) {
		ints[i] = v->first + i;
		buf[i] = (struct slabkv_buf){ bytes[i], BLOCK };
		block[i] = (struct slabkv_block){ .bufs = &buf[i], .n_bufs = 1 };
	}
	MUST(slabkv_get(kv, instance, &keys, NULL, block, sizeof(struct slabkv_block), NULL,
			&err) == SLABKV_OK,
	     "%s", err.message);
	for (uint32_t i = 0; i < CHAIN; i++) {
		fill(ints[i], expected);
		MUST(block[i].result == SLABKV_HIT || (evicts && block[i].result == SLABKV_MISS),
		     "block %u of a finished session: %d", i, block[i].result);
		MUST(block[i].result != SLABKV_HIT || memcmp(bytes[i], expected, BLOCK) == 0,
		     "wrong bytes");
	}
	MUST(slabkv_delete(kv, instance, &keys, NULL, &err) == SLABKV_OK, "%s", err.message);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void check_leaks(struct slabkv *kv)
{
	uint64_t quarantined = 0, used = 0, sessions = 0, blocks = 0;
	bool ended = false;

	for (int i = 0; i < 1500 && !ended; i++) { /* longest deadline and grace: 8.3 s */
		quarantined = manager_number(kv, SLABKV_STORAGE, "default", "quarantined_bytes");
		used = manager_number(kv, SLABKV_STORAGE, "default", "used_bytes");
		sessions = manager_number(kv, SLABKV_INSTANCE, instance, "open_sessions");
		blocks = manager_number(kv, SLABKV_INSTANCE, instance, "blocks");
		/* Blocks on their way out are used until their removal is on the disk. */
		ended = quarantined == 0 && sessions == 0 && used == blocks * BLOCK;
		if (!ended)
			poll(NULL, 0, 20);
	}
	MUST(ended,
	     "%llu bytes still quarantined, %llu sessions open, %llu bytes in use by %llu blocks",
	     (unsigned long long)quarantined, (unsigned long long)sessions,
	     (unsigned long long)used, (unsigned long long)blocks);
}

static void report(const struct load *l, unsigned kills, uint64_t found)
{
	printf("%s: %u kills, %u sessions finished after one, %llu blocks put, %llu deleted, %llu "
	       "read and verified (%llu MB), %llu of the acknowledged read again at the end, %llu "
	       "calls refused, 0 lost, 0 wrong\n",
	       l->evicts ? "with eviction" : "with room", kills, kills, (unsigned long long)l->puts,
	       (unsigned long long)l->deletes, (unsigned long long)l->hits,
	       (unsigned long long)(l->bytes >> 20), (unsigned long long)found,
	       (unsigned long long)l->refused);
	fflush(stdout);
}

static void phase(const char *program, const char *durability, unsigned kills, bool evicts)
{
	struct slabkv_spec spec = { "kv", BLOCK };
	struct slabkv_instance model = { .size = sizeof model,
					 .id = instance,
					 .group = "default",
					 .specs = &spec,
					 .spec_size = sizeof spec,
					 .n_specs = 1 };
	struct slabkv_error err;
	struct manager m;
	struct load l;
	struct slabkv *kv;
	struct survivor v;
	unsigned seed = 20261121;
	uint64_t found;

	/* Room is room for what was deleted as well: its slots stay quarantined until the leases
	 * and sessions that each kill leaves behind have ended, many seconds later. */
	manager_init(&m, program, durability, evicts ? "8M" : "16G");
	manager_start(&m);
	kv = manager_connect(&m);
	MUST(slabkv_instance_put(kv, &model, &err) == SLABKV_OK, "%s", err.message);
	load_start(&l, kv, evicts);
	for (unsigned i = 0; i < kills; i++) {
		poll(NULL, 0, 20 + rand_r(&seed) % 150); /* the random moment */
		open_session(kv, &v, (100ull << 32) + (uint64_t)i * CHAIN);
		poll(NULL, 0, rand_r(&seed) % 20);
		manager_kill(&m);
		manager_fsck(&m);
		manager_start(&m);
		finish_session(kv, &m, &v);
		check_and_delete(kv, &v, evicts);
	}
	load_stop(&l);
	found = load_check_all(&l);
	check_leaks(kv);
	slabkv_close(kv);
	manager_stop(&m);
	manager_fsck(&m);
	manager_remove(&m);
	report(&l, kills, found);
}

int main(int argc, char **argv)
{
	unsigned kills;

	if (argc != 4) {
		fprintf(stderr, "usage: kill9 SLABKVD full|normal KILLS\n");
		return 2;
	}
	kills = (unsigned)strtoul(argv[3], NULL, 10);
	phase(argv[1], argv[2], kills, false);
	phase(argv[1], argv[2], kills, true);
	return 0;
}
