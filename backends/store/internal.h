/* internal.h - shared by all backends of the metadata store. */
#ifndef SKV_STORE_INTERNAL_H
#define SKV_STORE_INTERNAL_H

#include <skv/lock.h>
#include <skv/store.h>

struct call;

struct skv_store {
	const struct skv_store_ops *ops;
	void *self;
	enum skv_durability durability;
	_Atomic uint64_t calls;
	_Atomic uint64_t errors;
	_Atomic uint64_t appends;
	_Atomic uint64_t append_bytes;
	_Atomic uint64_t append_us;
	_Atomic uint64_t append_max_us;
	struct skv_mutex lock; /* protects the following members */
	struct call *oldest, *newest;
};

/* Puts the wrapper around an opened backend. On failure `self` stays the caller's. */
int store_wrap(const struct skv_store_ops *ops, void *self, enum skv_durability durability,
	       struct skv_store **out, struct skv_error *err);

/* Length of the host name at the begin of an owner's text; 0 when it is no such text. */
size_t owner_host(const char *owner);

/* A registry listing: collected under the backend's lock, delivered without it. */
void listing_add(struct skv_buf *b, const char *key, const void *bytes, size_t n, uint64_t version);
/* Destroys `b`. */
int listing_deliver(struct skv_buf *b, skv_registry_fn fn, void *ctx, struct skv_error *err);

#endif
