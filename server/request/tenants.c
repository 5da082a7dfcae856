/*
 * tenants.c - the tenants' documents, and what they allow. See tenants.h.
 *
 * Owns the table, which is replaced as a whole: readers hold the lock for a look-up. Documents
 * are read and written by one thread at a time, which holds no lock meanwhile but has the turn
 * (`busy`), so that no two tenants become owners of one object. Only the owner of the partitions
 * can write.
 *
 * A document is the JSON of a PUT (api/v1).
 */
#include <skv/tenants.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/core.h>
#include <skv/documents.h>
#include <skv/log.h>
#include <skv/mem.h>

#define PREFIX "tenant/"

void skv_tenants_init(struct skv_tenants *t)
{
	*t = (struct skv_tenants){ .on = false };
	skv_rwlock_init(&t->lock);
	skv_arena_init(&t->arena);
	skv_mutex_init(&t->turn_lock);
	skv_cond_init(&t->turn_over);
}

void skv_tenants_destroy(struct skv_tenants *t)
{
	assert(!t->busy);
	for (struct skv_meter *m = t->meters, *next; m; m = next) {
		next = m->next;
		skv_free(m);
	}
	skv_cond_destroy(&t->turn_over);
	skv_mutex_destroy(&t->turn_lock);
	skv_arena_destroy(&t->arena);
	skv_rwlock_destroy(&t->lock);
}

void skv_tenants_use_store(struct skv_tenants *t, struct skv_cluster *cluster)
{
	assert(cluster && !t->on);
	t->cluster = cluster;
	t->on = true;
}

void skv_tenants_enter(struct skv_tenants *t)
{
	skv_mutex_lock(&t->turn_lock);
	while (t->busy)
		skv_cond_wait(&t->turn_over, &t->turn_lock);
	t->busy = true;
	skv_mutex_unlock(&t->turn_lock);
}

int skv_tenants_leave(struct skv_tenants *t, int rc)
{
	skv_mutex_lock(&t->turn_lock);
	assert(t->busy);
	t->busy = false;
	skv_cond_signal(&t->turn_over);
	skv_mutex_unlock(&t->turn_lock);
	return rc;
}

/* ---- documents ------------------------------------------------------------------------------- */

static const char *document_name(struct skv_arena *a, const char *tenant)
{
	const size_t n = sizeof PREFIX + strlen(tenant);
	char *out = skv_arena_alloc(a, n);

	if (out)
		snprintf(out, n, PREFIX "%s", tenant);
	return out;
}

/* Fills in limits that were not set. The operator's tenant has none. */
static struct skv_tenant_spec with_defaults(const char *name, struct skv_tenant_spec s)
{
	const bool operator = strcmp(name, SKV_OPERATOR) == 0;

	if (!s.max_instances && !operator)
		s.max_instances = SKV_TENANT_INSTANCES;
	if (!s.max_spaces && !operator)
		s.max_spaces = SKV_TENANT_SPACES;
	return s;
}

static void add_view(struct skv_tenant_view *v, uint32_t *n, const char *name,
		     const struct skv_tenant_spec *said)
{
	snprintf(v[*n].name, sizeof v[*n].name, "%s", name);
	v[(*n)++].spec = with_defaults(name, *said);
}

/* The core reckons some of it. */
static int tell_core(const struct skv_tenants *t, const struct skv_tenant *v, uint32_t n,
		     struct skv_error *err)
{
	static const struct skv_tenant_spec nothing;
	const struct skv_tenant_spec others = with_defaults("", nothing);
	struct skv_tenant_view *views = skv_calloc(n + (size_t)1, sizeof *views);
	int rc = views ? SKV_OK : SKV_E_NOMEM;
	uint32_t k = 0;

	assert(t->busy);
	if (rc == SKV_OK) /* the operator's own entry comes later, and counts */
		add_view(views, &k, SKV_OPERATOR, &nothing);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		if (v[i].meter)
			add_view(views, &k, v[i].name, &v[i].spec);
	if (rc == SKV_OK)
		rc = skv_cluster_tenants_set(t->cluster, views, k, &others);
	skv_free(views);
	return rc == SKV_OK ? rc : skv_fail(err, rc, NULL, "out of memory");
}

/* In the turn: the tenant's, which stays; NULL: out of memory. */
static struct skv_meter *meter_of(struct skv_tenants *t, const char *name)
{
	struct skv_meter *m = t->meters;

	assert(t->busy && strlen(name) < sizeof m->name);
	while (m && strcmp(m->name, name) != 0)
		m = m->next;
	if (!m && (m = skv_calloc(1, sizeof *m)) != NULL) {
		snprintf(m->name, sizeof m->name, "%s", name);
		m->next = t->meters;
		t->meters = m;
	}
	return m;
}

int skv_tenants_reread(struct skv_tenants *t, struct skv_error *err)
{
	struct skv_tenant *v;
	struct skv_arena a, old;
	struct skv_doc *docs;
	uint32_t n = 0;
	int rc;

	assert(t->busy);
	skv_arena_init(&a);
	rc = skv_cluster_doc_list(t->cluster, PREFIX, &a, &docs, &n, err);
	v = rc == SKV_OK ? skv_arena_calloc(&a, n + 1, sizeof *v) : NULL;
	if (rc == SKV_OK && !v)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		v[i].name = docs[i].name + strlen(PREFIX);
		if (strlen(v[i].name) > SKV_MAX_NAME)
			continue; /* the name belongs to no tenant */
		v[i].text = docs[i].text;
		v[i].meter = meter_of(t, v[i].name);
		rc = v[i].meter ? skv_document_read_tenant(&a, v[i].text, &v[i].spec, err)
				: skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	if (rc == SKV_OK)
		rc = tell_core(t, v, n, err);
	if (rc != SKV_OK) {
		skv_arena_destroy(&a);
		return rc;
	}
	skv_rwlock_write(&t->lock);
	old = t->arena;
	t->arena = a;
	t->v = v;
	t->n = n;
	skv_rwlock_write_unlock(&t->lock);
	atomic_store(&t->read, true);
	skv_arena_destroy(&old);
	return SKV_OK;
}

int skv_tenants_read(struct skv_tenants *t, struct skv_error *err)
{
	skv_tenants_enter(t);
	return skv_tenants_leave(t, skv_tenants_reread(t, err));
}

/* ---- rights of tenants ----------------------------------------------------------------------- */

static bool has(const char *const *names, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool owns(const struct skv_tenant_spec *s, enum skv_owned kind, const char *name)
{
	return kind == SKV_OWNED_GROUP ? has(s->own_groups, s->n_own_groups, name)
				       : has(s->own_storages, s->n_own_storages, name);
}

static bool names(const struct skv_tenant_spec *s, enum skv_owned kind, const char *name)
{
	return owns(s, kind, name) || (kind == SKV_OWNED_GROUP
					       ? has(s->groups, s->n_groups, name)
					       : has(s->storages, s->n_storages, name));
}

static const struct skv_tenant *find_locked(const struct skv_tenants *t, const char *name)
	SKV_REQUIRES_SHARED(t->lock)
{
	assert(skv_rwlock_held(&t->lock));
	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].name, name) == 0)
			return &t->v[i];
	return NULL;
}

bool skv_tenants_may_use(struct skv_tenants *t, const char *tenant, enum skv_owned kind,
			 const char *name)
{
	const struct skv_tenant *own;
	bool may, named = false;

	skv_rwlock_read(&t->lock);
	own = find_locked(t, tenant);
	may = own && names(&own->spec, kind, name);
	for (uint32_t i = 0; !may && !named && i < t->n; i++)
		named = names(&t->v[i].spec, kind, name);
	skv_rwlock_read_unlock(&t->lock);
	return may || !named;
}

int skv_hidden_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds those names that `own`, which may be NULL, does not have. */
static bool hide(struct skv_hidden *h, enum skv_owned kind, const struct skv_tenant *own,
		 const char *const *list, uint32_t n, struct skv_arena *a)
{
	for (uint32_t i = 0; i < n; i++) {
		if (own && names(&own->spec, kind, list[i]))
			continue;
		h->name[kind][h->n[kind]] = skv_arena_strndup(a, list[i], strlen(list[i]));
		if (!h->name[kind][h->n[kind]++])
			return false;
	}
	return true;
}

static bool hide_all(const struct skv_tenants *t, struct skv_hidden *h, const char *tenant,
		     struct skv_arena *a) SKV_REQUIRES_SHARED(t->lock)
{
	const struct skv_tenant *own = find_locked(t, tenant);
	size_t groups = 1, storages = 1;
	bool good;

	for (uint32_t i = 0; i < t->n; i++) {
		groups += t->v[i].spec.n_groups + t->v[i].spec.n_own_groups;
		storages += t->v[i].spec.n_storages + t->v[i].spec.n_own_storages;
	}
	h->name[SKV_OWNED_GROUP] = skv_arena_alloc(a, groups * sizeof(char *));
	h->name[SKV_OWNED_STORAGE] = skv_arena_alloc(a, storages * sizeof(char *));
	good = h->name[SKV_OWNED_GROUP] && h->name[SKV_OWNED_STORAGE];
	for (uint32_t i = 0; good && i < t->n; i++) {
		const struct skv_tenant_spec *s = &t->v[i].spec;

		good = &t->v[i] == own ||
		       (hide(h, SKV_OWNED_GROUP, own, s->groups, s->n_groups, a) &&
			hide(h, SKV_OWNED_GROUP, own, s->own_groups, s->n_own_groups, a) &&
			hide(h, SKV_OWNED_STORAGE, own, s->storages, s->n_storages, a) &&
			hide(h, SKV_OWNED_STORAGE, own, s->own_storages, s->n_own_storages, a));
	}
	return good;
}

struct skv_hidden *skv_tenants_hidden(struct skv_tenants *t, const char *tenant,
				      struct skv_arena *a)
{
	struct skv_hidden *h = skv_arena_calloc(a, 1, sizeof *h);
	bool good = false;

	skv_rwlock_read(&t->lock);
	if (h)
		good = hide_all(t, h, tenant, a);
	skv_rwlock_read_unlock(&t->lock);
	for (int kind = 0; good && kind < 2; kind++)
		qsort(h->name[kind], h->n[kind], sizeof(char *), skv_hidden_order);
	return good ? h : NULL;
}

static const char *owner_locked(const struct skv_tenants *t, enum skv_owned kind, const char *name)
	SKV_REQUIRES_SHARED(t->lock)
{
	assert(skv_rwlock_held(&t->lock));
	for (uint32_t i = 0; i < t->n; i++)
		if (owns(&t->v[i].spec, kind, name))
			return t->v[i].name;
	return NULL;
}

bool skv_tenants_owns(struct skv_tenants *t, const char *tenant, enum skv_owned kind,
		      const char *name)
{
	const char *owner;
	bool own;

	skv_rwlock_read(&t->lock);
	owner = owner_locked(t, kind, name);
	own = owner && strcmp(owner, tenant) == 0;
	skv_rwlock_read_unlock(&t->lock);
	return own;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* An object has one owner, and is not a page space's. */
static int check_owners(struct skv_tenants *t, const char *tenant, enum skv_owned kind,
			const char *const *list, uint32_t n, struct skv_error *err)
{
	const char *field = kind == SKV_OWNED_GROUP ? "own_groups" : "own_storages";
	int rc = SKV_OK;

	skv_rwlock_read(&t->lock);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		const char *owner = owner_locked(t, kind, list[i]);

		if (owner && strcmp(owner, tenant) != 0)
			rc = skv_fail(err, SKV_E_CONFLICT, field, "'%s' belongs to tenant '%s'",
				      list[i], owner);
		else if (strncmp(list[i], SKV_SPACES, strlen(SKV_SPACES)) == 0)
			rc = skv_fail(err, SKV_E_INVALID, field, "'%s' belongs to a page space",
				      list[i]);
	}
	skv_rwlock_read_unlock(&t->lock);
	return rc;
}

int skv_tenants_write(struct skv_tenants *t, const char *name, const struct skv_tenant_spec *spec,
		      struct skv_error *err)
{
	struct skv_tenant_spec again;
	struct skv_buf text = { 0 };
	const char *document;
	struct skv_arena a;
	int rc = SKV_OK;

	assert(t->busy);
	skv_arena_init(&a);
	document = document_name(&a, name);
	skv_document_write_tenant(&text, spec);
	if (!document || text.failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK) /* names that were added may be too many for a document */
		rc = skv_document_read_tenant(&a, (char *)text.data, &again, err);
	if (rc == SKV_OK)
		rc = skv_cluster_doc_put(t->cluster, document, SKV_PUT_ANY, (char *)text.data,
					 err);
	skv_buf_destroy(&text);
	skv_arena_destroy(&a);
	return rc == SKV_OK ? skv_tenants_reread(t, err) : rc;
}

static int check_on(const struct skv_tenants *t, struct skv_error *err)
{
	if (t->on)
		return SKV_OK;
	return skv_fail(err, SKV_E_CONFLICT, NULL,
			"without a tokens_file everybody is of tenant 'default': start the manager "
			"with one ('slabkv token new')");
}

static bool is_known(struct skv_tenants *t, const char *name, uint32_t *n)
{
	bool known;

	skv_rwlock_read(&t->lock);
	known = find_locked(t, name) != NULL;
	*n = t->n;
	skv_rwlock_read_unlock(&t->lock);
	return known;
}

int skv_tenants_put(struct skv_tenants *t, const char *name, const struct skv_tenant_spec *spec,
		    bool *created, struct skv_error *err)
{
	uint32_t n;
	int rc = check_on(t, err);

	if (rc != SKV_OK)
		return rc;
	skv_tenants_enter(t);
	rc = skv_tenants_reread(t, err);
	if (rc == SKV_OK)
		rc = check_owners(t, name, SKV_OWNED_GROUP, spec->own_groups, spec->n_own_groups,
				  err);
	if (rc == SKV_OK)
		rc = check_owners(t, name, SKV_OWNED_STORAGE, spec->own_storages,
				  spec->n_own_storages, err);
	*created = rc == SKV_OK && !is_known(t, name, &n);
	if (*created && n >= SKV_TENANTS_MAX)
		rc = skv_fail(err, SKV_E_TOO_MANY, NULL, "there are %d tenants, the most",
			      SKV_TENANTS_MAX);
	if (rc == SKV_OK)
		rc = skv_tenants_write(t, name, spec, err);
	return skv_tenants_leave(t, rc);
}

int skv_tenants_delete(struct skv_tenants *t, const char *name, struct skv_error *err)
{
	const char *document;
	struct skv_arena a;
	int rc = check_on(t, err);

	if (rc != SKV_OK)
		return rc;
	skv_arena_init(&a);
	document = document_name(&a, name);
	skv_tenants_enter(t);
	rc = document ? skv_cluster_doc_delete(t->cluster, document, err)
		      : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_E_NOT_FOUND)
		rc = skv_fail(err, rc, NULL, "nothing is said of a tenant '%s'", name);
	else if (rc == SKV_OK)
		rc = skv_tenants_reread(t, err);
	skv_arena_destroy(&a);
	return skv_tenants_leave(t, rc);
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* The time until which the requests so far would last at that rate, at most a second ahead. */
static bool meter_pass(struct skv_meter *m, uint32_t per_s, uint64_t now_us)
{
	const uint64_t each = 1000000 / per_s, most = now_us + 1000000;
	uint64_t was = atomic_load_explicit(&m->until_us, memory_order_relaxed), until;

	do {
		until = (was > now_us ? was : now_us) + each;
		if (until > most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&m->until_us, &was, until,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool skv_tenants_pass(struct skv_tenants *t, const char *name, uint64_t now_us)
{
	const struct skv_tenant *own;
	bool pass = true;

	skv_rwlock_read(&t->lock);
	own = find_locked(t, name);
	if (own && own->spec.requests_per_s)
		pass = meter_pass(own->meter, own->spec.requests_per_s, now_us);
	skv_rwlock_read_unlock(&t->lock);
	return pass;
}

uint64_t skv_tenants_max_held(struct skv_tenants *t, const char *name)
{
	const struct skv_tenant *own;
	uint64_t most = 0;

	if (!t->on)
		return 0;
	skv_rwlock_read(&t->lock);
	own = find_locked(t, name);
	if (own)
		most = own->spec.max_held_bytes;
	skv_rwlock_read_unlock(&t->lock);
	return most;
}

/* Returns true if the page is full, but not at its end. */
static bool is_full(const struct skv_page *page, uint32_t n, size_t bytes)
{
	return page && (n == page->limit || bytes > page->bytes);
}

int skv_tenants_list(struct skv_tenants *t, const char *name, const struct skv_page *page,
		     struct skv_arena *a, struct skv_tenant_view **out, uint32_t *n,
		     const char **next, struct skv_error *err)
{
	const char *after = page && page->after ? page->after : "";
	size_t held;
	int rc = SKV_OK;

	assert(name || (page && next));
	*n = 0;
	skv_rwlock_read(&t->lock);
	*out = skv_arena_calloc(a, (page && page->limit < t->n ? page->limit : t->n) + (size_t)1,
				sizeof **out);
	held = a->total;
	for (uint32_t i = 0; *out && rc == SKV_OK && i < t->n; i++) {
		struct skv_tenant_view *v = &(*out)[*n];

		if (name ? strcmp(name, t->v[i].name) != 0 : strcmp(t->v[i].name, after) <= 0)
			continue;
		if (is_full(page, *n, a->total - held)) {
			*next = v[-1].name;
			break;
		}
		snprintf(v->name, sizeof v->name, "%s", t->v[i].name);
		rc = skv_document_read_tenant(a, t->v[i].text, &v->spec, err);
		++*n;
	}
	skv_rwlock_read_unlock(&t->lock);
	if (!*out)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc != SKV_OK)
		return rc;
	if (name && *n == 0)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "nothing is said of a tenant '%s'",
				name);
	return SKV_OK;
}
