/*
 * mount.h - which directory of this machine is which storage.
 *
 * A storage is recognised only by the marker file in its root (kvb/superblock.h): hosts mount the
 * same storage at different places, and a path proves nothing. Any thread; one mutex inside, never
 * held across file I/O.
 */
#ifndef KVB_CLIENT_MOUNT_H
#define KVB_CLIENT_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/status.h>

struct kvb_mounts;

/* A proven directory; counted. */
struct kvb_mount {
	uint8_t uuid[16];
	int dirfd;
	char *path;
	uint32_t refs;   /* kvb_mounts.lock */
	bool forgotten;  /* kvb_mounts.lock: not in the list any more */
	struct kvb_mount *next;
};

/* `dirs` (may be none) is copied. */
int kvb_mounts_create(const char *const *dirs, uint32_t n, struct kvb_mounts **out,
		      struct kvb_error *err);
void kvb_mounts_destroy(struct kvb_mounts *m); /* no mount may be in use */
/* True when the caller named directories: then no other place is tried. */
bool kvb_mounts_named(const struct kvb_mounts *m);

/* The mount of storage `uuid`: one that is known, else one of the named directories, else `root`
 * when not NULL. Release with kvb_mount_release. KVB_E_UNAVAILABLE: none is there; KVB_E_FOREIGN:
 * `root` is another storage or not ours; messages say which directories were looked at. */
int kvb_mount_acquire(struct kvb_mounts *m, const uint8_t uuid[16], const char *root,
		      struct kvb_mount **out, struct kvb_error *err);
void kvb_mount_release(struct kvb_mounts *m, struct kvb_mount *mount);
/* Something went wrong there (unmounted, moved): prove the directory anew at the next acquire. */
void kvb_mount_forget(struct kvb_mounts *m, struct kvb_mount *mount);

#endif
