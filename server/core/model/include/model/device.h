/* device.h - a storage as a device, and the state of its threads (storage/). */
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

/* Why a slab directory refuses this copy of the store (claim.c). */
enum refusal {
	REFUSED_NOT,
	REFUSED_COPY,    /* another copy has run there */
	REFUSED_DAMAGED, /* an owner file there is damaged: it may be another copy's */
	REFUSED_BACK,    /* the directory has seen later batches than the store knows */
};

/* One storage as a device; outlives reloads of the partition. Has its own thread, because its file
 * system may hang. */
struct device {
	struct skv_core *core;
	char *name;
	char *type;
	char *root;
	/* As registered; changed under core->lock. */
	char *client_root;
	char *client_mount;
	char *extra;
	char **masters; /* URLs of fs-masters; none: the manager works in `root` itself */
	uint32_t n_masters;
	uint8_t uuid[16];
	uint32_t id;
	uint64_t unit;
	uint64_t file_size;
	uint64_t chunk; /* 0 = no chunks, or registered before chunk sizes were recorded */
	uint64_t edge;  /* header and trailer of a slab file, each */
	bool any_mount;
	bool fresh; /* being created; a chunk size that was not given is read from the directory */
	const struct skv_storage_ops *ops;

	struct skv_mutex lock; /* taken after core->lock; protects what follows */
	struct skv_cond wake;
	pthread_t thread;
	bool running;
	_Atomic bool ended; /* the thread has finished */
	bool stop;
	bool asked; /* act at once */
	struct skv_storage *storage; /* NULL until first opened; set by the thread only */
	/* The second thread (device_hand.c): */
	pthread_t hand;
	bool has_hand;     /* to be joined; first thread only */
	bool hand_busy;
	bool used_by_hand; /* the second thread uses the storage: do not close it */
	bool files_checked;          /* since the last open */
	uint32_t next_check;         /* file to check next while running: none below; thread only */
	uint32_t next_bad;           /* the same for bad files */
	uint32_t stuck_file;         /* + 1: a failed removal was logged already; used by the
				      * remover only */
	struct skv_storage_owner claim; /* its owner file under the fence claim_fence; incarnation 0
					 * = none (claim.c) */
	uint64_t claim_least; /* the lowest incarnation whose file may still be there */
	uint64_t claim_fence;
	_Atomic uint64_t noted; /* number of the horizon in our owner file */
	_Atomic uint64_t seen_generation; /* of others, in an adopted directory */
	_Atomic uint64_t looked_at; /* boot time ms: start of the newest successful check of owner
				     * files */
	_Atomic enum refusal refused; /* by the directory */
	_Atomic bool unheard; /* no fs-master answered, so it is unknown whether its bytes are
			       * there; clients find out */
	_Atomic bool reopen; /* its fs-masters have changed since it was opened */
	_Atomic bool healthy;
	_Atomic uint64_t probed; /* fence of the partition that it was probed for; 0: of none */
	_Atomic uint64_t busy_since; /* boot time ms at which the running file system call began, 0
				      * = none */
	_Atomic uint64_t fs_free;
	_Atomic uint64_t reach; /* bytes of its files and of what the file system has for more;
				 * UINT64_MAX: unbounded or unknown */
	uint64_t longest;       /* bytes of a file that is made now: less after one did not fit;
				 * second thread only */
	/* Of forgetful types: no write that began before this boot time ms is open; 0: unknown. */
	_Atomic uint64_t quiet;
	_Atomic uint64_t writing_ms; /* age of the oldest open write, 0 = none */
	uint64_t epoch[8];           /* of its memory node, the newest first; thread only */
	char problem[SKV_MESSAGE_MAX];
};

#endif
