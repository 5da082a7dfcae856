/*
 * owners.h - the manager that owns the object of a call, as reported by the owners themselves.
 *
 * A cache, never the truth: a wrong entry costs one try. An entry is the URL that the owner has
 * answered at, so it can be reached and no manager can put another one there.
 */
#ifndef SKV_CLIENT_OWNERS_H
#define SKV_CLIENT_OWNERS_H

#include <stdbool.h>

#include <skv/owner_note.h>

struct skv_owners;

/* NULL: out of memory. */
struct skv_owners *skv_owners_create(void);
void skv_owners_destroy(struct skv_owners *o); /* NULL is fine */
/* Returns in `url` the owner of the object that `path` ("/v1/instances/...", "/v1/sessions/ID...")
 * names. Returns false if the owner is not known, or the path belongs to no partition. Any thread;
 * the same applies to the following functions. */
bool skv_owners_find(struct skv_owners *o, const char *path, char url[SKV_NOTE_URL]);
/* The answer of `url` to a call on `path` had this note. */
void skv_owners_learn(struct skv_owners *o, const char *path, const struct skv_owner_note *note,
		      const char *url);
/* `url` does not own what `path` is about; path NULL: it is not to be reached, and owns nothing. */
void skv_owners_forget(struct skv_owners *o, const char *path, const char *url);

#endif
