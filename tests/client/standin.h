/*
 * standin.h - a stand-in for slabkvd, in this process: just enough of the native API to test the
 * client library against, with knobs for answers that a real manager gives rarely or never.
 *
 * It allocates slots one after the other in real slab files below a temporary directory, keeps
 * blocks in a plain array, has no eviction, no durability, no time. It is not a model of the
 * manager: what the manager does is tested in tests/core and, with this library, in test_real.c.
 */
#ifndef SKV_TEST_STANDIN_H
#define SKV_TEST_STANDIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>
#include <skv/superblock.h>

#define STANDIN_BLOCKS 40000
#define STANDIN_SESSIONS 4096
#define STANDIN_FILES 2
#define STANDIN_HEADER 4096u
#define STANDIN_TRAILER 4096u

enum standin_state { STANDIN_FREE, STANDIN_WRITING, STANDIN_COMMITTED };

struct standin_block {
	enum standin_state state;
	char instance[32];
	struct skv_key key;
	uint32_t session;
	struct skv_location loc[4];
};

struct standin_session {
	bool open;
	char id[SKV_SESSION_ID_HEX + 1];
	char request_id[64];
	struct skv_finish_res res;
};

struct standin_instance {
	char id[32];
	char group[32];
	uint32_t n_specs;
	char names[4][16];
	struct skv_spec specs[4];
};

struct standin {
	struct MHD_Daemon *daemon;
	uint16_t port;
	char url[64];
	char root[64]; /* the storage "default"; removed by standin_stop */
	uint8_t uuid[16];
	uint64_t file_length;
	pthread_mutex_t lock; /* protects everything below */
	struct standin_instance instances[8];
	uint32_t n_instances;
	struct standin_block *blocks; /* [STANDIN_BLOCKS] */
	uint32_t n_blocks;
	struct standin_session *sessions; /* [STANDIN_SESSIONS] */
	uint32_t n_sessions;
	uint64_t next_offset;
	uint32_t next_file;
	/* knobs; change them only while no request runs */
	uint32_t lease_ms;
	uint32_t deadline_ms;
	uint64_t gap;         /* unused bytes after each slot */
	bool drop_checksums;  /* forget them at finish */
	bool hide_root;       /* GET storage tells another directory */
	const char *bad_path; /* instead of the file's own */
	uint64_t bad_offset;  /* instead of the slot's own, when not 0 */
	const char *bad_spec; /* instead of the first column's name */
	bool two_storages; /* file 1 is of "second", for starts that avoid "default" */
	bool forwards;    /* only calls that ask for the owner itself fail (Slabkv-Route: direct) */
	const char *note; /* Slabkv-Owner of every answer; NULL: none */
	const uint32_t *gone; /* [n_gone] rows of sessions, deleted while they are written */
	uint32_t n_gone;
	const char *fail_op;  /* "start", "lookup", ...: this operation fails */
	int fail_status;      /* with this; SKV_OK = does its work, then breaks the connection */
	uint32_t fail_count;  /* so many times */
	/* counters */
	uint32_t requests, starts, finishes, aborts, lookups, storage_gets;
	struct skv_finish_req last_finish; /* mask and checksums not kept */
	bool last_abort_quiesced;
};

/* Starts it with fresh slab files. Aborts the test when it cannot. */
void standin_start(struct standin *s);
/* A manager without files and blocks: answers everything with `status`. */
void standin_start_failing(struct standin *s, int status);
void standin_stop(struct standin *s);
/* Location of the committed block, for tests that damage it. NULL when absent. */
const struct skv_location *standin_find(struct standin *s, const char *instance, uint64_t key);
/* Path of slab file `file` of this storage. */
void standin_path(const struct standin *s, uint32_t file, char out[160]);

#endif
