/*
 * session.h - two-phase writes while they are open, and what is remembered of them afterwards.
 */
#ifndef SKV_CORE_MODEL_SESSION_H
#define SKV_CORE_MODEL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>
#include <skv/limits.h>
#include <skv/ops.h>

struct change;
struct instance;
struct partition;

#define REMEMBER_MS 600000u /* request ids of ended sessions live this long past their deadline */

struct session_write {
	uint32_t block;
	uint32_t specs; /* bit per spec that this session writes; 0 = settled */
};

struct session {
	struct skv_key id;
	struct skv_key tenant;  /* hash of its name: only it may finish or abort */
	struct skv_key request; /* hash of tenant, instance, request id; {0,0} = none */
	struct skv_key body;    /* hash of what was asked */
	struct session *id_next;      /* chain in partition->session_by_id */
	struct session *request_next; /* chain in partition->session_by_request */
	struct session *queue_next;   /* ended ones, oldest first */
	uint32_t number;              /* index in partition->session */
	uint32_t due;                 /* place in partition->deadlines, 0 = not in it */
	struct instance *inst; /* NULL once ended */
	struct session *open_next, *open_before; /* of the same instance, while open */
	uint32_t instance;     /* its durable number, kept; 0 = not known: ended, by an older version */
	enum skv_session_state state;
	struct change *pending; /* start, finish, abort or expiry on its way to the journal */
	uint32_t settling;   /* writes that are SETTLING: no expiry meanwhile */
	bool starting;
	bool anonymous; /* ends write by write (partial.c), or expires; forgotten then */
	bool relaxed;   /* its start was; not after a reload */
	bool independent; /* its keys are no chain */
	uint64_t deadline_at; /* boot time ms */
	uint32_t deadline_ms; /* full duration */
	uint32_t grace_ms;    /* after it, if longer than the manager's */
	uint64_t created_ms;  /* wall */
	uint64_t generation;  /* of the first written block; the others follow */
	uint64_t forget_at;
	uint32_t specs; /* asked for */
	uint32_t n_keys;
	uint32_t n_write;
	uint32_t n_left; /* of them: not settled */
	uint64_t bytes;  /* of these */
	uint8_t *outcome;            /* [n_keys] */
	struct skv_key *keys;        /* [n_keys], until ended */
	bool has_parent;
	struct skv_key parent;
	struct session_write *write; /* [n_write] */
	uint32_t committed;
	uint32_t failed;
	uint64_t finished_as; /* hash of what its finish said of each block; 0 = not finished, or by an older version */
};

struct session *session_find(const struct partition *p, struct skv_key id);
struct session *session_by_request(const struct partition *p, struct skv_key request);
uint32_t *session_due_place(void *ctx, uint32_t number); /* of partition->deadlines */
int session_add(struct partition *p, struct session *s); /* takes ownership on success */
void session_destroy(struct partition *p, struct session *s); /* forgets it altogether */
/* Ends it: releases the lists, keeps id and outcome until forget_at (longer while a change still
 * names it: one that was queued before its instance was dropped). */
void session_end(struct partition *p, struct session *s, enum skv_session_state state);
/* Looks at it again at `at`, an open one. */
void session_set_due(struct partition *p, struct session *s, uint64_t at);
/* Does a change still name it? */
bool session_is_named(const struct session *s);
void session_forget_due(struct partition *p, uint64_t now);
/* How the block of its i-th write is born: SKV_BORN_*. */
uint32_t session_birth(const struct session *s, uint32_t i);
/* When the writers of what it does not commit are through. */
uint64_t session_grace_end(const struct partition *p, const struct session *s);
/* The i-th write is committed or given up, apart from the others; with the last one an anonymous session ends, and is
 * destroyed. */
void session_partial(struct partition *p, struct session *s, uint32_t i, bool success, uint64_t use);
/* The i-th written block's slots of this session are given up; free when hold_until has passed. */
void session_release(struct partition *p, struct session *s, uint32_t i, uint64_t hold_until);
struct session *session_make(uint32_t n_keys, uint32_t n_write);
void session_free(struct session *s);
void session_id_text(struct skv_key id, char out[SKV_SESSION_ID_HEX + 1]);
struct skv_key tenant_hash(const char *tenant);
bool session_id_parse(const char *hex, struct skv_key *out);

#endif
