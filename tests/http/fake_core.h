/*
 * fake_core.h - stands in for skv_core when the transport is tested alone: same symbols, turned by
 * hand.
 */
#ifndef TESTS_FRONT_FAKE_CORE_H
#define TESTS_FRONT_FAKE_CORE_H

#include <skv/core.h>

#define FAKE_EPOCH 7 /* of each partition that is its own */

enum fake_mode {
	FAKE_NOW,    /* results at once */
	FAKE_THREAD, /* SKV_PENDING, completed by another thread as soon as it can */
	FAKE_HOLD,   /* SKV_PENDING, completed when fake_core_release is called */
};

struct skv_cluster *fake_core_create(void);
void fake_core_destroy(struct skv_cluster *c);

void fake_core_state(struct skv_cluster *c, enum skv_core_state state);
/* Has it a storage? Not at first. */
void fake_core_storages(struct skv_cluster *c, bool has);
void fake_core_may_answer(struct skv_cluster *c, int rc);
/* Does another manager own the partition for sure? */
void fake_core_elsewhere(struct skv_cluster *c, bool is);
/* The next so many looks at it still find it owned. */
void fake_core_loses_ownership_after(struct skv_cluster *c, int looks);
void fake_core_mode(struct skv_cluster *c, enum fake_mode mode);
/* Block operations and puts end with this status and message from now on; SKV_OK = succeed. */
void fake_core_fail(struct skv_cluster *c, int status, const char *message);
#define FAKE_PARTITIONS 3u
/* Block operations are for a partition that may be elsewhere; once its owner has refused them, for
 * `truth`. Instances whose names begin with "own" are here, and with "1" in
 * partition 1. */
void fake_core_is_elsewhere(struct skv_cluster *c, uint32_t partition, uint32_t truth);
/* Another manager has that one. Before it starts; both texts are borrowed. */
void fake_core_owner(struct skv_cluster *c, uint32_t number, const char *name, const char *peer);
/* Sets the token that managers show to the owner of that partition; borrowed. */
void fake_core_token(struct skv_cluster *c, uint32_t number, const char *token);
/* Groups are other managers', too: listing them is for a thread that may wait. */
void fake_core_asks(struct skv_cluster *c);
/* As a core asks another manager, by skv_cluster_ask_by. */
struct skv_peer_call;
int fake_core_ask(struct skv_cluster *c, struct skv_peer_call *q, struct skv_error *err);
/* The partition, plus 1, that the newest call was for alone. 0: none. */
uint32_t fake_core_alone(const struct skv_cluster *c);
/* How the newest put of a group was asked for, and which version of it (0: any). */
enum skv_put fake_core_put(const struct skv_cluster *c);
uint64_t fake_core_version(const struct skv_cluster *c);
/* Waits until `n` calls are held, then completes them all. */
void fake_core_await_held(struct skv_cluster *c, unsigned n);
void fake_core_release(struct skv_cluster *c);
/* Administration puts hang while `on`. */
void fake_core_hang(struct skv_cluster *c, bool on);
/* Waits until `n` administration calls hang. */
void fake_core_await_hanging(struct skv_cluster *c, unsigned n);

/* How many calls have come, and what the last one brought. */
unsigned fake_core_calls(const struct skv_cluster *c);
const char *fake_core_tenant(const struct skv_cluster *c);
const char *fake_core_name(const struct skv_cluster *c); /* instance, object or session */
/* The request id of the newest start. */
void fake_core_start_id(struct skv_cluster *c, char id[SKV_MAX_REQUEST_ID + 1]);
struct skv_key fake_core_key(const struct skv_cluster *c);

#endif
