/*
 * mount.h - which directory of this machine is which storage.
 *
 * A storage is recognised only by the marker file in its root (skv/superblock.h): hosts mount the
 * same storage at different places, and a path proves nothing. Any thread; one mutex inside, never
 * held across file I/O.
 */
#ifndef SKV_CLIENT_MOUNT_H
#define SKV_CLIENT_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/status.h>

struct skv_mounts;

/* A proven directory; counted. */
struct skv_mount {
	uint8_t uuid[16];
	int dirfd;
	char *path;
	uint32_t refs;   /* skv_mounts.lock */
	bool forgotten;  /* skv_mounts.lock: not in the list any more */
	struct skv_mount *next;
};

/* `dirs` (may be none) is copied. */
int skv_mounts_create(const char *const *dirs, uint32_t n, struct skv_mounts **out,
		      struct skv_error *err);
void skv_mounts_destroy(struct skv_mounts *m); /* no mount may be in use */
/* True when the caller named directories: then no other place is tried. */
bool skv_mounts_named(const struct skv_mounts *m);

/* The mount of storage `uuid`: one that is known, else one of the named directories, else `root`
 * when not NULL. Release with skv_mount_release. SKV_E_UNAVAILABLE: none is there; SKV_E_FOREIGN:
 * `root` is another storage or not ours; messages say which directories were looked at. */
int skv_mount_acquire(struct skv_mounts *m, const uint8_t uuid[16], const char *root,
		      struct skv_mount **out, struct skv_error *err);
void skv_mount_release(struct skv_mounts *m, struct skv_mount *mount);
/* Something went wrong there (unmounted, moved): prove the directory anew at the next acquire. */
void skv_mount_forget(struct skv_mounts *m, struct skv_mount *mount);

#endif
