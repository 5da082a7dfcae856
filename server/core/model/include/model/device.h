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

/* Calls into a storage's file system, judged apart (storage/health.c). */
enum call_kind {
	CALL_ROOT,  /* opening it, its marker, who owns it: the storage's own thread */
	CALL_WRITE, /* small writes that try whether it can be written to */
	CALL_READ,  /* checks of slab files */
	CALL_KINDS
};
struct call_state {
	_Atomic bool failed;    /* the newest one */
	/* Boot time ms: none has answered since, and one is waited for; 0 = none is. */
	_Atomic uint64_t since;
	char problem[SKV_MESSAGE_MAX]; /* why it failed; under the device's lock */
};

/* Why blocks cannot be written or read. */
enum storage_fault {
	STORAGE_WELL,
	STORAGE_FAILED,  /* the file system reported an error, or belongs to another storage */
	STORAGE_HANGS,   /* the file system does not answer */
	STORAGE_OVERDUE, /* the owner files were not checked for too long */
	STORAGE_UNKNOWN, /* never judged */
};

/* An errand: a call that a file system may keep for long, on a thread of its own
 * (storage/errand.c). */
enum errand_slot {
	ERRAND_FILES, /* makes and removes slab files */
	ERRAND_WRITE,
	ERRAND_READ, /* the first of the errands that check slab files */
	ERRAND_SMALL = ERRAND_READ + 3, /* the errand that reads small files */
	ERRANDS = ERRAND_SMALL + 3
};
struct errand {
	bool busy;  /* under the device's lock, */
	bool again; /* and requested meanwhile */
};

/* A storage as a device; outlives reloads of the partition and has its own thread, because its file
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

	struct skv_mutex lock; /* taken after core->lock; protects the following members */
	struct skv_cond wake;
	pthread_t thread;
	bool running;
	_Atomic bool ended; /* the thread has finished */
	bool stop;
	bool asked; /* act at once */
	/* NULL until first opened; set by the thread only; errands share it. */
	struct skv_storage *storage;
	struct errand errand[ERRANDS];
	uint32_t returned; /* errands and checks of files that have ended */
	uint32_t reading;  /* checks of files that have not */
	/* Checks of files (bad_files.c), each the least number that may be next: */
	_Atomic uint32_t next_first; /* since the last open */
	_Atomic uint32_t next_check;
	_Atomic uint32_t next_bad;
	_Atomic uint32_t witness;    /* the file that was read last */
	_Atomic bool files_checked;  /* next_first is past the last one */
	/* + 1: a failed removal was logged already; used by the remover only. */
	uint32_t stuck_file;
	/* Contents of the owner file under the fence claim_fence; incarnation 0 = none
	 * (claim.c). */
	struct skv_storage_owner claim;
	uint64_t claim_least; /* the lowest incarnation whose file may still be there */
	uint64_t claim_fence;
	_Atomic uint64_t noted; /* number of the horizon in our owner file */
	_Atomic uint64_t seen_generation; /* of others, in an adopted directory */
	/* Boot time ms: start of the newest successful check of owner files. */
	_Atomic uint64_t looked_at;
	_Atomic enum refusal refused; /* by the directory */
	/* No fs-master answered, so it is unknown whether its bytes are there; clients find out. */
	_Atomic bool unheard;
	_Atomic bool remote; /* opened through fs-masters */
	_Atomic bool reopen; /* the fs-masters have changed since the storage was opened */
	_Atomic uint64_t probed; /* fence of the partition that it was probed for; 0: of none */
	_Atomic uint64_t fs_free;
	/* Bytes of its files and of what the file system has for more; UINT64_MAX: unbounded or
	 * unknown. */
	_Atomic uint64_t reach;
	/* Bytes of a file that is made now: less after one did not fit; that errand only. */
	uint64_t longest;
	/* Of forgetful types: no write that began before this boot time ms is open; 0: unknown. */
	_Atomic uint64_t quiet;
	_Atomic uint64_t writing_ms; /* age of the oldest open write, 0 = none */
	uint64_t epoch[8];           /* of its memory node, the newest first; thread only */
	struct call_state call[CALL_KINDS];
	uint64_t go_on_at; /* ticker only */
	/* As logged last; under `lock`: */
	enum storage_fault shown_fault;
	bool shown_reads;
	char shown[SKV_MESSAGE_MAX];
};

#endif
