/*
 * tenants.h - the rights of each tenant: which groups and storages it uses and owns.
 *
 * Operations that name an object check a tenant's rights here and nowhere else. Each configured
 * tenant has a document "tenant/NAME" in the store. All managers reload the documents with the
 * tokens (tokens.h); the manager that changes a document reloads at once. A group or storage that a
 * tenant names belongs to the tenants that name it; a group or storage that no tenant names is open
 * to all.
 *
 * Tenant "default" is the operator's: its callers see every tenant's objects, and its
 * administrators may change all of them. An administrator of another tenant calls only routes of
 * ROUTE_TENANT. Without a tokens file everybody is an administrator of "default". A page space
 * (skv/hf3fs_api.h) belongs to the tenant whose name is in the space's name.
 */
#ifndef SKV_TENANTS_H
#define SKV_TENANTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/lock.h>
#include <skv/ops.h>
#include <skv/status.h>

#define SKV_TENANTS_MAX 4096 /* documents */
#define SKV_TENANT_GROUPS 256u /* own ones of one tenant, and tokens that its administrators add */
#define SKV_OPERATOR "default"
/* Default limits of each tenant but the operator's. */
#define SKV_TENANT_INSTANCES 1000u
#define SKV_TENANT_SPACES 1000u

struct skv_cluster;
struct skv_request;

enum skv_owned { SKV_OWNED_GROUP, SKV_OWNED_STORAGE };

/* A tenant's recent requests. */
struct skv_meter {
	struct skv_meter *next;
	char name[SKV_MAX_NAME + 1];
	/* Time at which the recent requests would be paid for, at the tenant's rate. */
	atomic_uint_fast64_t until_us;
};

struct skv_tenant {
	const char *name;
	const char *text; /* document of the tenant */
	struct skv_tenant_spec spec;
	struct skv_meter *meter;
};

struct skv_tenants {
	struct skv_cluster *cluster;
	bool on;          /* set once: tokens and a store exist */
	atomic_bool read; /* `v` is the store's answer */
	struct skv_rwlock lock;
	struct skv_arena arena;  /* protected by lock, as the next two: what `v` refers to */
	struct skv_tenant *v;
	uint32_t n;
	struct skv_mutex turn_lock; /* protects `busy`: one reads or changes them at a time */
	struct skv_cond turn_over;
	bool busy;
	struct skv_meter *meters; /* of the thread in turn: all meters ever made */
};

void skv_tenants_init(struct skv_tenants *t);
void skv_tenants_destroy(struct skv_tenants *t);
/* Makes the documents of the store count from now on. Called before the first call. */
void skv_tenants_use_store(struct skv_tenants *t, struct skv_cluster *cluster);
/* Reads the documents again; blocks on the store. An invalid document is skipped. On failure the
 * known ones stay. */
int skv_tenants_read(struct skv_tenants *t, struct skv_error *err);

/* Replaces a tenant's document. Durable on return. Blocks. SKV_E_CONFLICT: no tokens file exists,
 * or another tenant owns one of the objects. SKV_E_TOO_MANY. */
int skv_tenants_put(struct skv_tenants *t, const char *name, const struct skv_tenant_spec *spec,
		    bool *created, struct skv_error *err);
/* SKV_E_NOT_FOUND. */
int skv_tenants_delete(struct skv_tenants *t, const char *name, struct skv_error *err);
/* Lists copies in `a`, in order of names; `name` NULL: a page of all, with *next for the following
 * page; else that tenant only, ignoring the page. SKV_E_NOT_FOUND. */
int skv_tenants_list(struct skv_tenants *t, const char *name, const struct skv_page *page,
		     struct skv_arena *a, struct skv_tenant_view **out, uint32_t *n,
		     const char **next, struct skv_error *err);

/* Returns true if the tenant names the object, or no tenant does. Any thread. */
bool skv_tenants_may_use(struct skv_tenants *t, const char *tenant, enum skv_owned kind,
			 const char *name);
/* Groups and storages that others name and the tenant does not, each kind in order: what its lists
 * leave out. In `a`, as they are now; NULL: out of memory. Any thread. */
struct skv_hidden {
	const char **name[2]; /* by enum skv_owned */
	uint32_t n[2];
};
struct skv_hidden *skv_tenants_hidden(struct skv_tenants *t, const char *tenant,
				      struct skv_arena *a);
/* The order of qsort and bsearch over such names. */
int skv_hidden_order(const void *a, const void *b);
bool skv_tenants_owns(struct skv_tenants *t, const char *tenant, enum skv_owned kind,
		      const char *name);
/* The turn of who reads and changes documents; waits for it. Leaving returns rc. */
void skv_tenants_enter(struct skv_tenants *t);
int skv_tenants_leave(struct skv_tenants *t, int rc);
/* In the turn: reads all; writes one, which the table as it is in the store must allow, and reads
 * all. */
int skv_tenants_reread(struct skv_tenants *t, struct skv_error *err);
int skv_tenants_write(struct skv_tenants *t, const char *name, const struct skv_tenant_spec *spec,
		      struct skv_error *err);

/* Counts another request of the tenant, at `now_us` of any clock that only grows: false if it is
 * over its requests_per_s. Any thread. */
bool skv_tenants_pass(struct skv_tenants *t, const char *name, uint64_t now_us);
/* Returns the tenant's max_held_bytes; 0 = no limit of its own. Any thread. */
uint64_t skv_tenants_max_held(struct skv_tenants *t, const char *name);

/* ---- of a caller (rights.c) ------------------------------------------------------------------ */

/* Returns true if the caller is of the operator's tenant, also one that needed no token. */
bool skv_tenant_is_operator(const struct skv_request *c);
/* Checks whether an administrator may call this route, and the tenant is within its requests_per_s.
 * SKV_E_FORBIDDEN, SKV_E_TOO_MANY, SKV_E_NOT_READY: nothing has been read yet. */
int skv_tenant_check_route(struct skv_request *c);
/* Returns true if the caller sees this object in lists. */
bool skv_tenant_sees(struct skv_request *c, enum skv_owned kind, const char *name);
/* Checks whether the caller may name the object in an object of its own. SKV_E_NOT_FOUND, field
 * "group" or "storages", as if it did not exist; SKV_E_FORBIDDEN for a caller that sees it all the
 * same. */
int skv_tenant_use(struct skv_request *c, enum skv_owned kind, const char *name);
/* Checks whether the caller, an administrator, may change the object. Errors as above. */
int skv_tenant_change(struct skv_request *c, enum skv_owned kind, const char *name);
/* Checks whether the caller may make an object of this name in a namespace that all tenants share.
 * A tenant's names begin with its own name and a colon, so no tenant learns the names of others.
 * SKV_E_FORBIDDEN, field "name". */
int skv_tenant_names(struct skv_request *c, const char *name);
/* Makes a group that does not exist the caller's own, before it is made; *claimed: it was not
 * before. Nothing for an operator. SKV_E_FORBIDDEN: skv_tenant_names, or it is there, and somebody
 * else's. Blocks. */
int skv_tenant_claim(struct skv_request *c, const char *group, bool *claimed);
/* Takes that back: it was not made, or is gone. Blocks. */
void skv_tenant_disclaim(struct skv_request *c, const char *group);
/* Fills in the tenant's current usage. */
void skv_tenant_look(struct skv_request *c, struct skv_tenant_view *t);
/* Limits a page to the objects that the caller may see; valid as long as the call. Another manager
 * that asks on behalf of a tenant sees that tenant's objects. */
void skv_tenant_page(struct skv_request *c, struct skv_page *page);
/* Returns true if the caller, an administrator, may see and change tokens of this tenant. */
bool skv_tenant_is_own(const struct skv_request *c, const char *tenant);

#endif
