/* session.h - write sessions, from start to finish, and the memory of ended ones. */
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
	uint32_t specs; /* bit per spec that this session writes; 0 = ended */
};

struct session {
	struct skv_key id;
	struct skv_key tenant;  /* hash of its name: only this tenant may finish or abort */
	struct skv_key request; /* hash of tenant, instance, request id; {0,0} = none */
	struct skv_key body;    /* hash of the request body */
	struct session *id_next;      /* chain in partition->session_by_id */
	struct session *request_next; /* chain in partition->session_by_request */
	struct session *queue_next;   /* ended sessions, oldest first */
	uint32_t number;              /* index in partition->session */
	uint32_t due;                 /* position in partition->deadlines, 0 = none */
	struct instance *inst; /* NULL once ended */
	struct session *open_next, *open_before; /* of the same instance, while open */
	uint32_t instance;     /* durable number of the instance */
	enum skv_session_state state;
	struct change *pending; /* start, finish, abort or expiry in flight to the journal */
	uint32_t ending;     /* writes that are ENDING: no expiry meanwhile */
	bool starting;
	bool anonymous; /* ends write by write (partial.c), or expires; forgotten then */
	bool relaxed;   /* as its start asked; lost by a reload */
	bool restored;  /* by a reload: its deadline does not tell when it was started */
	bool independent; /* the keys are not a chain */
	uint64_t deadline_at; /* boot time ms */
	uint32_t deadline_ms; /* full duration */
	uint32_t grace_ms;    /* grace after the deadline, if longer than the manager's */
	uint64_t created_ms;  /* birth clock (birth.h) */
	/* Of the first written block; the other blocks have the following generations. */
	uint64_t generation;
	uint64_t forget_at;
	uint32_t specs; /* requested */
	uint32_t n_keys;
	uint32_t n_write;
	uint32_t n_left; /* of them: not ended */
	uint64_t bytes;  /* of these */
	uint8_t *outcome;            /* [n_keys]; once ended: [n_write] deleted ones, or NULL */
	struct skv_key *keys;        /* [n_keys], until ended */
	bool has_parent;
	struct skv_key parent;
	struct session_write *write; /* [n_write] */
	uint32_t committed;
	uint32_t failed;
	uint32_t n_deleted; /* writes given up because their blocks were deleted; not anonymous */
	uint64_t finished_as; /* hash of its finish's results; 0 = not finished */
};

struct session *session_find(const struct partition *p, struct skv_key id);
struct session *session_by_request(const struct partition *p, struct skv_key request);
uint32_t *session_due_place(void *ctx, uint32_t number); /* of partition->deadlines */
int session_add(struct partition *p, struct session *s); /* takes ownership on success */
void session_destroy(struct partition *p, struct session *s); /* forgets it completely */
/* Ends it: frees the arrays, keeps id and outcome until forget_at, or longer while a change queued
 * before a drop of its instance still refers to it. */
void session_end(struct partition *p, struct session *s, enum skv_session_state state);
/* Schedules an open session's next check at `at`. */
void session_set_due(struct partition *p, struct session *s, uint64_t at);
void session_drop_due(struct partition *p, struct session *s); /* cancels the check */
/* Returns a session whose check is due by now, or NULL. */
struct session *session_first_due(struct partition *p, uint64_t now);
/* Returns true if a change still refers to the session. */
bool session_is_named(const struct session *s);
void session_forget_due(struct partition *p, uint64_t now);
/* Returns true if the block of the session's i-th write was deleted while it was written. Not of an
 * anonymous session. */
bool session_deleted(const struct session *s, uint32_t i);
/* Returns true if the session's i-th write is the last one of a chain. */
bool session_is_last(const struct session *s, uint32_t i);
/* When writers of its uncommitted slots must have stopped. */
uint64_t session_grace_end(const struct partition *p, const struct session *s);
/* Ends the i-th write by itself, committed or given up; an anonymous session ends with its last one
 * and is destroyed. */
void session_partial(struct partition *p, struct session *s, uint32_t i, bool success,
		     uint64_t use);
/* Gives up the slots of the i-th written block; they are free after hold_until. */
void session_release(struct partition *p, struct session *s, uint32_t i, uint64_t hold_until);
struct session *session_make(uint32_t n_keys, uint32_t n_write);
void session_free(struct session *s);
void sessions_free(struct partition *p); /* with the partition */
void session_id_text(struct skv_key id, char out[SKV_SESSION_ID_HEX + 1]);
struct skv_key tenant_hash(const char *tenant);
/* Random, but for its first byte: the partition. */
struct skv_key session_new_id(uint32_t partition);
bool session_id_parse(const char *hex, struct skv_key *out);

#endif
