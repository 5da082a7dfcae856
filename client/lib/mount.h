/*
 * mount.h - maps storages to directories of this machine.
 *
 * A storage of files is recognised only by the marker file in its root (skv/superblock.h): hosts
 * mount the same storage at different places, and a path proves nothing. Any thread; one mutex
 * inside, never held across file I/O.
 */
#ifndef SKV_CLIENT_MOUNT_H
#define SKV_CLIENT_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/status.h>

struct skv_mounts;

struct skv_node;
struct skv_node_at;

/* A verified directory, or the memory node of a storage of that type; reference-counted. */
struct skv_mount {
	uint8_t uuid[16];
	int dirfd; /* -1: a node */
	char *path; /* of a node: the text of skv_node_describe */
	struct skv_node *node; /* NULL: a directory */
	uint32_t refs;   /* skv_mounts.lock */
	bool forgotten;  /* skv_mounts.lock: removed from the list */
	struct skv_mount *next;
};

/* `dirs` (may be empty) is copied. */
int skv_mounts_create(const char *const *dirs, uint32_t n, struct skv_mounts **out,
		      struct skv_error *err);
void skv_mounts_destroy(struct skv_mounts *m); /* no mount may be in use */
/* Returns true if the caller named directories: then nothing else is tried. */
bool skv_mounts_named(const struct skv_mounts *m);

/* The mount of storage `uuid`: a known one, else one of the named directories, else `root` if not
 * NULL. Release with skv_mount_release. SKV_E_UNAVAILABLE: there is none; SKV_E_FOREIGN: `root` is
 * another storage's or not ours; messages list the directories tried. */
int skv_mount_acquire(struct skv_mounts *m, const uint8_t uuid[16], const char *root,
		      struct skv_mount **out, struct skv_error *err);
/* The same for a storage of type memory. Errors as of skv_node_open. */
int skv_mount_acquire_node(struct skv_mounts *m, const uint8_t uuid[16],
			   const struct skv_node_at *at, struct skv_mount **out,
			   struct skv_error *err);
void skv_mount_release(struct skv_mounts *m, struct skv_mount *mount);
/* Where a storage lay when its directory was opened last. */
enum skv_mount_place {
	SKV_MOUNT_UNKNOWN, /* the directory was never opened */
	SKV_MOUNT_LOCAL,   /* on a local file system; or a memory node, whose calls end */
	SKV_MOUNT_NETWORK, /* 3FS, FUSE, NFS, ...: its calls may hang */
};
enum skv_mount_place skv_mounts_place(struct skv_mounts *m, const uint8_t uuid[16]);
/* After a failure there (unmounted, moved): verify the directory again at the next acquire. */
void skv_mount_forget(struct skv_mounts *m, struct skv_mount *mount);

#endif
