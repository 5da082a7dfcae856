/*
 * tenants.c - the tenants' documents, and what they allow. See tenants.h.
 *
 * Owns the table, which is replaced as a whole: readers hold the lock for a look-up. Documents
 * are read and written by one thread at a time, which holds no lock meanwhile but has the turn
 * (`busy`), so that no two tenants become owners of one object. Only the owner of the partitions
 * can write.
 *
 * A document has a line for each field that is told: its name, then names of objects. Lines of
 * other fields are passed over: a newer version wrote them.
 */
#include <skv/tenants.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/core.h>
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

void skv_tenants_use_store(struct skv_tenants *t, struct skv_core *core)
{
	assert(core && !t->on);
	t->core = core;
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

#define NUMBER SIZE_MAX
#define LARGE (SIZE_MAX - 1)

static const struct field {
	const char *name;
	size_t at, count_at; /* a list of names, and how many; NUMBER: a uint32_t, LARGE: a
				 * uint64_t */
} fields[] = {
#define NAMES(member)                                                                              \
	{ #member, offsetof(struct skv_tenant_spec, member),                                       \
	  offsetof(struct skv_tenant_spec, n_##member) }
#define COUNT(member)                                                                              \
	{ #member, offsetof(struct skv_tenant_spec, member),                                       \
	  sizeof ((struct skv_tenant_spec *)0)->member == sizeof(uint64_t) ? LARGE : NUMBER }
	NAMES(groups), NAMES(storages), NAMES(own_groups), NAMES(own_storages),
	COUNT(max_instances), COUNT(max_spaces), COUNT(requests_per_s),
	COUNT(max_bytes), COUNT(max_blocks), COUNT(max_sessions), COUNT(max_pins),
	COUNT(blocks_per_s), COUNT(max_held_bytes), COUNT(weight),
#undef NAMES
#undef COUNT
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

static bool is_number(const struct field *f)
{
	return f->count_at == NUMBER || f->count_at == LARGE;
}

static uint64_t number_in(const struct field *f, const struct skv_tenant_spec *s)
{
	const void *at = (const char *)s + f->at;

	assert(is_number(f));
	return f->count_at == LARGE ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void set_number(const struct field *f, struct skv_tenant_spec *s, uint64_t n)
{
	void *at = (char *)s + f->at;

	assert(is_number(f));
	if (f->count_at == LARGE)
		*(uint64_t *)at = n;
	else
		*(uint32_t *)at = (uint32_t)n;
}

static const char *const *names_in(const struct field *f, const struct skv_tenant_spec *s,
				   uint32_t *n)
{
	assert(f >= fields && f < fields + N_FIELDS && !is_number(f));
	*n = *(const uint32_t *)(const void *)((const char *)s + f->count_at);
	return *(const char *const *const *)(const void *)((const char *)s + f->at);
}

static void set_names(const struct field *f, struct skv_tenant_spec *s, const char *const *v,
		      uint32_t n)
{
	*(uint32_t *)(void *)((char *)s + f->count_at) = n;
	*(const char *const **)(void *)((char *)s + f->at) = v;
}

static void write_spec(const struct skv_tenant_spec *s, struct skv_buf *out)
{
	for (const struct field *f = fields; f < fields + N_FIELDS; f++) {
		const char *const *v;
		uint32_t n;

		if (is_number(f)) {
			if (number_in(f, s))
				skv_buf_printf(out, "%s %" PRIu64 "\n", f->name, number_in(f, s));
			continue;
		}
		v = names_in(f, s, &n);
		if (n == 0)
			continue;
		skv_buf_printf(out, "%s", f->name);
		for (uint32_t i = 0; i < n; i++)
			skv_buf_printf(out, " %s", v[i]);
		skv_buf_printf(out, "\n");
	}
	skv_put_u8(out, '\0');
}

/* False: out of memory. */
static bool read_names(const struct field *f, char *line, struct skv_arena *a,
		       struct skv_tenant_spec *s)
{
	const char **v = skv_arena_calloc(a, strlen(line) / 2 + 1, sizeof *v);
	char *rest = NULL;
	uint32_t n = 0;

	for (char *word = strtok_r(line, " ", &rest); v && word; word = strtok_r(NULL, " ", &rest))
		v[n++] = word;
	set_names(f, s, v, v ? n : 0);
	return v != NULL;
}

static bool read_spec(const char *text, struct skv_arena *a, struct skv_tenant_spec *s)
{
	char *copy = skv_arena_strndup(a, text, strlen(text)), *rest = NULL;
	bool good = copy != NULL;

	for (char *line = good ? strtok_r(copy, "\n", &rest) : NULL; line && good;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *value = line + strcspn(line, " ");

		value += *value == ' ' ? (*value = '\0', 1) : 0;
		for (const struct field *f = fields; good && f < fields + N_FIELDS; f++)
			if (strcmp(f->name, line) == 0 && is_number(f))
				set_number(f, s, strtoull(value, NULL, 10));
			else if (strcmp(f->name, line) == 0)
				good = read_names(f, value, a, s);
	}
	return good;
}

/* The core reckons some of it. */
static int tell_core(const struct skv_tenants *t, const struct skv_tenant *v, uint32_t n,
		     struct skv_error *err)
{
	struct skv_tenant_view *views = skv_calloc(n + 1, sizeof *views);
	int rc = views ? SKV_OK : SKV_E_NOMEM;
	uint32_t k = 0;

	assert(t->busy);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		if (!v[i].meter)
			continue;
		snprintf(views[k].name, sizeof views[k].name, "%s", v[i].name);
		views[k++].spec = v[i].spec;
	}
	if (rc == SKV_OK)
		rc = skv_core_tenants_set(t->core, views, k);
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
	rc = skv_core_doc_list(t->core, PREFIX, &a, &docs, &n, err);
	v = rc == SKV_OK ? skv_arena_calloc(&a, n + 1, sizeof *v) : NULL;
	if (rc == SKV_OK && !v)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		v[i].name = docs[i].name + strlen(PREFIX);
		if (strlen(v[i].name) > SKV_MAX_NAME)
			continue; /* it is nobody's */
		v[i].meter = meter_of(t, v[i].name);
		if (!v[i].meter || !read_spec(docs[i].text, &a, &v[i].spec))
			rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
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

/* ---- who has what ---------------------------------------------------------------------------- */

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

static const char *owner_locked(const struct skv_tenants *t, enum skv_owned kind, const char *name)
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
	struct skv_buf text = { 0 };
	const char *document;
	struct skv_arena a;
	uint64_t version;
	int rc = SKV_OK;

	assert(t->busy);
	skv_arena_init(&a);
	document = document_name(&a, name);
	write_spec(spec, &text);
	if (!document || text.failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = skv_core_doc_put(t->core, document, SKV_DOC_ANY, (char *)text.data, &version,
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
	rc = document ? skv_core_doc_delete(t->core, document, err)
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

uint32_t skv_tenants_limit(struct skv_tenants *t, const char *name, bool spaces)
{
	const struct skv_tenant *own;
	uint32_t most = 0;

	skv_rwlock_read(&t->lock);
	own = find_locked(t, name);
	if (own)
		most = spaces ? own->spec.max_spaces : own->spec.max_instances;
	skv_rwlock_read_unlock(&t->lock);
	return most;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool copy_names(const struct field *f, struct skv_tenant_spec *s, struct skv_arena *a)
{
	uint32_t n;
	const char *const *from = names_in(f, s, &n);
	const char **v = skv_arena_calloc(a, n + 1, sizeof *v);
	bool copied = v != NULL;

	for (uint32_t i = 0; copied && i < n; i++) {
		v[i] = skv_arena_strndup(a, from[i], strlen(from[i]));
		copied = v[i] != NULL;
	}
	set_names(f, s, v, n);
	return copied;
}

static bool copy_spec(struct skv_tenant_spec *s, struct skv_arena *a)
{
	bool copied = true;

	for (const struct field *f = fields; copied && f < fields + N_FIELDS; f++)
		copied = is_number(f) || copy_names(f, s, a);
	return copied;
}

int skv_tenants_list(struct skv_tenants *t, const char *name, struct skv_arena *a,
		     struct skv_tenant_view **out, uint32_t *n, struct skv_error *err)
{
	bool copied = true;

	*n = 0;
	skv_rwlock_read(&t->lock);
	*out = skv_arena_calloc(a, t->n + 1, sizeof **out);
	for (uint32_t i = 0; *out && copied && i < t->n; i++) {
		struct skv_tenant_view *v = &(*out)[*n];

		if (name && strcmp(name, t->v[i].name) != 0)
			continue;
		v->spec = t->v[i].spec;
		snprintf(v->name, sizeof v->name, "%s", t->v[i].name);
		copied = copy_spec(&v->spec, a);
		++*n;
	}
	skv_rwlock_read_unlock(&t->lock);
	if (!*out || !copied)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (name && *n == 0)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "nothing is said of a tenant '%s'",
				name);
	return SKV_OK;
}
