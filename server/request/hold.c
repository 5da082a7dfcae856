/*
 * hold.c - counts the memory held by calls, in total and by tenant and address. See hold.h.
 *
 * Small calls cost one atomic addition and subtraction; only large ones take the lock, and a check
 * does so if the total exceeds the limit of one tenant or address. A holder exists as long as it
 * has a large call. The lock is held for a look-up only.
 */
#include <skv/hold.h>

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/limits.h>
#include <skv/mem.h>

#define KEY_MAX (SKV_MAX_NAME + 1) /* 't' and a name, or 'a' and an address */

struct skv_holder {
	struct skv_holder *next;
	uint64_t bytes; /* of its large calls */
	uint32_t calls; /* how many */
	uint32_t n_key;
	char key[KEY_MAX];
};

struct key {
	size_t n; /* 0: no caller */
	char s[KEY_MAX];
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t part(const struct skv_hold_options *o, unsigned percent)
{
	return most(o->total * percent / 100, least(o->one, o->total));
}

void skv_holds_init(struct skv_holds *hs, const struct skv_hold_options *o)
{
	assert(o->reserve_percent <= 100 && o->tenant_percent <= 100 && o->address_percent <= 100);
	memset(hs, 0, sizeof *hs);
	skv_mutex_init(&hs->lock);
	hs->total = o->total;
	hs->one = least(o->one, o->total);
	hs->large = part(o, 100 - o->reserve_percent);
	hs->tenant = o->tenant_percent == 100 ? UINT64_MAX : part(o, o->tenant_percent);
	hs->address = o->address_percent == 100 ? UINT64_MAX : part(o, o->address_percent);
}

void skv_holds_destroy(struct skv_holds *hs)
{
	assert(atomic_load(&hs->bytes) == 0 && hs->large_bytes == 0);
	skv_mutex_destroy(&hs->lock);
}

void skv_hold_address(const struct sockaddr *from, uint8_t out[SKV_ADDRESS_BYTES])
{
	memset(out, 0, SKV_ADDRESS_BYTES);
	if (from && from->sa_family == AF_INET) {
		memset(out + 10, 0xff, 2);
		memcpy(out + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
	} else if (from && from->sa_family == AF_INET6) {
		const struct in6_addr *a =
			&((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;

		memcpy(out, a, IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_LOOPBACK(a) ? 16 : 8);
	}
}

/* ---- holders --------------------------------------------------------------------------------- */

static struct key tenant_key(const struct skv_hold *h)
{
	struct key k = { 0 };
	size_t n = h->tenant ? strlen(h->tenant) : 0;

	if (n == 0)
		return k;
	assert(n < KEY_MAX);
	k.s[0] = 't';
	memcpy(k.s + 1, h->tenant, n);
	k.n = n + 1;
	return k;
}

static struct key address_key(const struct skv_hold *h)
{
	struct key k = { .n = 1 + SKV_ADDRESS_BYTES, .s = "a" };

	memcpy(k.s + 1, h->address, SKV_ADDRESS_BYTES);
	return k;
}

static struct skv_holder **place_locked(struct skv_holds *hs, const struct key *k)
	SKV_REQUIRES(hs->lock)
{
	struct skv_holder **at = &hs->holders[skv_checksum(k->s, k->n) % SKV_HOLDERS];

	assert(skv_mutex_held(&hs->lock));
	while (*at && ((*at)->n_key != k->n || memcmp((*at)->key, k->s, k->n) != 0))
		at = &(*at)->next;
	return at;
}

/* Counts one more large call of this caller. NULL: no caller, or out of memory. */
static struct skv_holder *join_locked(struct skv_holds *hs, const struct key *k)
	SKV_REQUIRES(hs->lock)
{
	struct skv_holder **at;

	if (k->n == 0)
		return NULL;
	assert(k->n <= KEY_MAX);
	at = place_locked(hs, k);
	if (!*at) {
		*at = skv_calloc(1, sizeof **at);
		if (!*at)
			return NULL;
		(*at)->n_key = (uint32_t)k->n;
		memcpy((*at)->key, k->s, k->n);
	}
	(*at)->calls++;
	return *at;
}

static void leave_locked(struct skv_holds *hs, struct skv_holder *who) SKV_REQUIRES(hs->lock)
{
	struct key k;
	struct skv_holder **at;

	assert(skv_mutex_held(&hs->lock));
	if (!who || --who->calls > 0)
		return;
	assert(who->bytes == 0);
	k.n = who->n_key;
	memcpy(k.s, who->key, k.n);
	at = place_locked(hs, &k);
	assert(*at == who);
	*at = who->next;
	skv_free(who);
}

/* ---- large calls ----------------------------------------------------------------------------- */

static void become_large_locked(struct skv_holds *hs, struct skv_hold *h) SKV_REQUIRES(hs->lock)
{
	const struct key tenant = tenant_key(h), address = address_key(h);

	assert(skv_mutex_held(&hs->lock) && !h->large);
	h->of_tenant = join_locked(hs, &tenant);
	h->of_address = join_locked(hs, &address);
	h->large = true;
}

static void move_locked(struct skv_holds *hs, struct skv_hold *h, uint64_t n, bool more)
	SKV_REQUIRES(hs->lock)
{
	const uint64_t change = more ? n : 0 - n;

	assert(skv_mutex_held(&hs->lock));
	assert(more || hs->large_bytes >= n);
	assert(more || !h->of_tenant || h->of_tenant->bytes >= n);
	assert(more || !h->of_address || h->of_address->bytes >= n);
	hs->large_bytes += change;
	if (h->of_tenant)
		h->of_tenant->bytes += change;
	if (h->of_address)
		h->of_address->bytes += change;
}

static void become_small_locked(struct skv_holds *hs, struct skv_hold *h) SKV_REQUIRES(hs->lock)
{
	assert(skv_mutex_held(&hs->lock) && h->large);
	leave_locked(hs, h->of_tenant);
	leave_locked(hs, h->of_address);
	h->of_tenant = h->of_address = NULL;
	h->large = false;
}

/* Returns the bound of the call's tenant: at least the bound of one call, even if the tenant's own
 * limit is lower. */
static uint64_t bound_of(const struct skv_holds *hs, const struct skv_hold *h)
{
	return h->tenant_max ? least(hs->tenant, most(h->tenant_max, hs->one)) : hs->tenant;
}

static const char *over_locked(const struct skv_holds *hs, const struct skv_hold *h,
			       const struct skv_holder *tenant, const struct skv_holder *address,
			       uint64_t more) SKV_REQUIRES(hs->lock)
{
	assert(skv_mutex_held(&hs->lock));
	if (tenant && tenant->bytes + more > bound_of(hs, h))
		return "too many large bodies and answers of this tenant at a time";
	if (address && address->bytes + more > hs->address)
		return "too many large bodies and answers of this address at a time";
	return NULL;
}

/* Counts `n` more bytes of a call that is or becomes large. */
static const char *charge(struct skv_holds *hs, struct skv_hold *h, uint64_t n, bool force)
{
	const bool before = h->large;
	const uint64_t more = before ? n : h->bytes + n;
	const char *why = NULL;

	skv_mutex_lock(&hs->lock);
	if (!before)
		become_large_locked(hs, h);
	if (!force && hs->large_bytes + more > hs->large)
		why = "too many large bodies and answers at a time";
	else if (!force)
		why = over_locked(hs, h, h->of_tenant, h->of_address, more);
	if (!why)
		move_locked(hs, h, more, true);
	else if (!before)
		become_small_locked(hs, h);
	skv_mutex_unlock(&hs->lock);
	return why;
}

/* ---- calls ----------------------------------------------------------------------------------- */

const char *skv_hold_add(struct skv_holds *hs, struct skv_hold *h, uint64_t n)
{
	const char *why = NULL;

	if (n == 0)
		return NULL;
	if (atomic_fetch_add(&hs->bytes, n) + n > hs->total)
		why = "too many bodies and answers at a time";
	else if (h->bytes + n > SKV_HOLD_SMALL)
		why = charge(hs, h, n, false);
	if (why)
		atomic_fetch_sub(&hs->bytes, n);
	else
		h->bytes += n;
	return why;
}

void skv_hold_force(struct skv_holds *hs, struct skv_hold *h, uint64_t n)
{
	if (n == 0)
		return;
	atomic_fetch_add(&hs->bytes, n);
	if (h->bytes + n > SKV_HOLD_SMALL)
		charge(hs, h, n, true);
	h->bytes += n;
}

const char *skv_hold_check(struct skv_holds *hs, const struct skv_hold *h, bool essential)
{
	const uint64_t bytes = atomic_load_explicit(&hs->bytes, memory_order_relaxed);
	const char *why;
	struct key tenant, address;

	if (bytes > hs->total + (essential ? hs->total / 4 : 0))
		return "too many bodies and answers at a time";
	if (essential || bytes <= least(bound_of(hs, h), hs->address))
		return NULL;
	tenant = tenant_key(h);
	address = address_key(h);
	skv_mutex_lock(&hs->lock);
	why = over_locked(hs, h, tenant.n ? *place_locked(hs, &tenant) : NULL,
			  *place_locked(hs, &address), 0);
	skv_mutex_unlock(&hs->lock);
	return why;
}

uint64_t skv_hold_of_tenant(struct skv_holds *hs, const char *tenant)
{
	const struct key k = tenant_key(&(struct skv_hold){ .tenant = tenant });
	const struct skv_holder *who = NULL;
	uint64_t bytes;

	skv_mutex_lock(&hs->lock);
	if (k.n)
		who = *place_locked(hs, &k);
	bytes = who ? who->bytes : 0;
	skv_mutex_unlock(&hs->lock);
	return bytes;
}

void skv_hold_release(struct skv_holds *hs, struct skv_hold *h)
{
	uint64_t before;

	if (h->large) {
		skv_mutex_lock(&hs->lock);
		move_locked(hs, h, h->bytes, false);
		become_small_locked(hs, h);
		skv_mutex_unlock(&hs->lock);
	}
	before = h->bytes > 0 ? atomic_fetch_sub(&hs->bytes, h->bytes) : 0;
	assert(before >= h->bytes);
	h->bytes = 0;
}
