/*
 * device.h - a storage as a device, with the state of its threads (storage/).
 */
#ifndef SKV_CORE_MODEL_DEVICE_H
#define SKV_CORE_MODEL_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>

#include <skv/lock.h>
#include <skv/status.h>
#include <skv/storage.h>

struct skv_core;
struct skv_storage;

/* One storage as a device: outlives reloads of the partition. Has a thread of its own, because its
 * file system may hang. */
struct device {
	struct skv_core *core;
	char *name;
	char *type;
	char *root;
	/* As the registry has them now; changed under core->lock. */
	char *client_root;
	char *client_mount;
	char *extra;
	char **masters; /* URLs of fs-masters; none: the manager works in `root` itself */
	uint32_t n_masters;
	uint8_t uuid[16];
	uint32_t id;
	uint64_t unit;
	uint64_t file_size;
	uint64_t chunk; /* 0 = it has none, or is of before there were any */
	uint64_t edge;  /* header and trailer of a slab file, each */
	bool any_mount;
	bool fresh; /* its chunk size, if it was not told, is what the directory says: of one that is being made */
	const struct skv_storage_ops *ops;

	struct skv_mutex lock; /* below core->lock: protects the rest */
	struct skv_cond wake;
	pthread_t thread;
	bool running;
	_Atomic bool ended; /* the thread has nothing more to do */
	bool stop;
	bool asked; /* to look at once */
	struct skv_storage *storage; /* NULL until it could be opened; set by the thread only */
	/* The second thread (device_hand.c): */
	pthread_t hand;
	bool has_hand;     /* to be joined; by the first thread only */
	bool hand_busy;
	bool used_by_hand; /* the storage: it must not be closed */
	bool files_checked;          /* since the last open */
	uint32_t next_check;         /* of the files, while running: none below; by the thread only */
	uint32_t next_bad;           /* the same of the bad ones */
	uint32_t stuck_file;         /* + 1: told in the log that it could not be removed; by who removes only */
	struct skv_storage_owner claim; /* its owner file of the reign claim_fence; incarnation 0 = none (claim.c) */
	uint64_t claim_fence;
	_Atomic uint64_t looked_at; /* boot time ms: when the newest look at owner files began that was well */
	_Atomic bool refused;       /* another copy of the store goes on there */
	_Atomic bool unheard; /* no fs-master answered: nobody knows whether its bytes are there; those who use them will see */
	_Atomic bool reopen; /* its masters have changed since it was opened */
	_Atomic bool healthy;
	_Atomic bool probed; /* since the partition was loaded */
	_Atomic uint64_t busy_since; /* boot time ms of a running call into the file system, 0 = none */
	_Atomic uint64_t fs_free;
	char problem[SKV_MESSAGE_MAX];
};

#endif
