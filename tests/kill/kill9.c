/*
 * kill9.c - kills the manager again and again under load; nothing that was acknowledged may be lost,
 * no byte wrong, nothing leaked.
 *
 * usage: kill9 KVBLOCKD full|normal KILLS
 *
 * Two phases of KILLS kills each, at random moments: one with room for everything (what was acknowledged
 * must be found), one in a storage that is too small (what is found must be right). Before each kill a
 * session is opened; after the restart its slots are written and it is finished by its client. After each
 * kill `kvblockd fsck --files` must find nothing. At the end: no session, no quarantine, no byte in use
 * beyond the blocks.
 */
#include "kill9.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const char *const instance = "kill9";

/* ---- a session that is open when the manager dies ------------------------------------------------- */

struct survivor {
	const struct kvblock_session *s;
	uint64_t first;
};

static void open_session(struct kvblock *kv, struct survivor *v, uint64_t first)
{
	uint64_t ints[CHAIN];
	struct kvblock_keys keys;
	struct kvblock_error err;
	int rc = KVBLOCK_E_NO_SPACE;

	for (uint32_t i = 0; i < CHAIN; i++)
		ints[i] = first + i;
	keys = kvblock_keys_ints(ints, CHAIN);
	v->first = first;
	v->s = NULL;
	/* Just after a restart every block may still be leased: then there is room when that is over. */
	for (int i = 0; i < 500 && rc == KVBLOCK_E_NO_SPACE; i++) {
		rc = kvblock_start(kv, instance, &keys, &(struct kvblock_put_options){ .deadline_ms = 8000 }, NULL,
				   &v->s, &err);
		if (rc == KVBLOCK_E_NO_SPACE)
			poll(NULL, 0, 10);
	}
	MUST(rc == KVBLOCK_OK, "%s", err.message);
	MUST(v->s->n_write == CHAIN, "%u blocks to write", v->s->n_write);
}

/* Writes by itself where the dead manager told it to, and finishes at the new one. */
static void finish_session(struct kvblock *kv, const struct manager *m, struct survivor *v)
{
	uint8_t bytes[BLOCK];
	uint64_t sums[CHAIN];
	struct kvblock_finished done;
	struct kvblock_error err;

	for (uint32_t i = 0; i < CHAIN; i++) {
		const struct kvblock_location *loc = &v->s->loc[i];
		char path[256];
		int fd;

		fill(v->first + i, bytes);
		sums[i] = kvblock_checksum(bytes, sizeof bytes);
		snprintf(path, sizeof path, "%s/kvblock-data/%s", m->dir, v->s->files[loc->file].path);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		MUST(fd >= 0, "%s", path);
		MUST(pwrite(fd, bytes, BLOCK, (off_t)loc->offset) == BLOCK && fdatasync(fd) == 0, "%s", path);
		close(fd);
	}
	MUST(kvblock_finish(kv, v->s->id,
			    &(struct kvblock_finish_options){ .checksums = sums, .n_checksums = CHAIN, .quiesced = true },
			    &done, &err) == KVBLOCK_OK, "%s", err.message);
	MUST(done.committed == CHAIN, "%u committed", done.committed);
	kvblock_free(v->s);
}

static void check_and_delete(struct kvblock *kv, const struct survivor *v, bool evicts)
{
	static uint8_t bytes[CHAIN][BLOCK];
	uint8_t expected[BLOCK];
	uint64_t ints[CHAIN];
	struct kvblock_buf buf[CHAIN];
	struct kvblock_block block[CHAIN];
	struct kvblock_keys keys = kvblock_keys_ints(ints, CHAIN);
	struct kvblock_error err;

	for (uint32_t i = 0; i < CHAIN; i++) {
		ints[i] = v->first + i;
		buf[i] = (struct kvblock_buf){ bytes[i], BLOCK };
		block[i] = (struct kvblock_block){ .bufs = &buf[i], .n_bufs = 1 };
	}
	MUST(kvblock_get(kv, instance, &keys, NULL, block, NULL, &err) == KVBLOCK_OK, "%s", err.message);
	for (uint32_t i = 0; i < CHAIN; i++) {
		fill(ints[i], expected);
		MUST(block[i].result == KVBLOCK_HIT || (evicts && block[i].result == KVBLOCK_MISS),
		     "block %u of a finished session: %d", i, block[i].result);
		MUST(block[i].result != KVBLOCK_HIT || memcmp(bytes[i], expected, BLOCK) == 0, "wrong bytes");
	}
	MUST(kvblock_delete(kv, instance, &keys, NULL, &err) == KVBLOCK_OK, "%s", err.message);
}

/* ---- the end ------------------------------------------------------------------------------------------ */

static void check_leaks(struct kvblock *kv)
{
	const struct kvblock_storage_info *st = NULL;
	const struct kvblock_instance_info *in = NULL;
	struct kvblock_error err;
	bool settled = false;

	for (int i = 0; i < 1500 && !settled; i++) { /* longest deadline and grace: 8.3 s */
		kvblock_free(st);
		kvblock_free(in);
		MUST(kvblock_storage_get(kv, "default", &st, &err) == KVBLOCK_OK, "%s", err.message);
		MUST(kvblock_instance_get(kv, instance, &in, &err) == KVBLOCK_OK, "%s", err.message);
		/* Blocks on their way out are used until their removal is on the disk. */
		settled = st->quarantined_bytes == 0 && in->open_sessions == 0 &&
			  st->used_bytes == in->blocks * BLOCK;
		if (!settled)
			poll(NULL, 0, 20);
	}
	MUST(settled, "%llu bytes still quarantined, %llu sessions open, %llu bytes in use by %llu blocks",
	     (unsigned long long)st->quarantined_bytes, (unsigned long long)in->open_sessions,
	     (unsigned long long)st->used_bytes, (unsigned long long)in->blocks);
	kvblock_free(st);
	kvblock_free(in);
}

static void report(const struct load *l, unsigned kills, uint64_t found)
{
	printf("%s: %u kills, %u sessions finished after one, %llu blocks put, %llu deleted, %llu read and verified "
	       "(%llu MB), %llu of the acknowledged read again at the end, %llu calls refused, 0 lost, 0 wrong\n",
	       l->evicts ? "with eviction" : "with room", kills, kills, (unsigned long long)l->puts,
	       (unsigned long long)l->deletes, (unsigned long long)l->hits, (unsigned long long)(l->bytes >> 20),
	       (unsigned long long)found, (unsigned long long)l->refused);
	fflush(stdout);
}

static void phase(const char *program, const char *durability, unsigned kills, bool evicts)
{
	struct kvblock_spec spec = { "kv", BLOCK };
	struct kvblock_instance model = { instance, "default", 0, &spec, 1, NULL };
	struct kvblock_error err;
	struct manager m;
	struct load l;
	struct kvblock *kv;
	struct survivor v;
	unsigned seed = 20261121;
	uint64_t found;

	manager_init(&m, program, durability, evicts ? "8M" : "256M");
	manager_start(&m);
	kv = manager_connect(&m);
	MUST(kvblock_instance_put(kv, &model, &err) == KVBLOCK_OK, "%s", err.message);
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
	kvblock_close(kv);
	manager_stop(&m);
	manager_fsck(&m);
	manager_remove(&m);
	report(&l, kills, found);
}

int main(int argc, char **argv)
{
	unsigned kills;

	if (argc != 4) {
		fprintf(stderr, "usage: kill9 KVBLOCKD full|normal KILLS\n");
		return 2;
	}
	kills = (unsigned)strtoul(argv[3], NULL, 10);
	phase(argv[1], argv[2], kills, false);
	phase(argv[1], argv[2], kills, true);
	return 0;
}
