/*
 * peers.c - counts connections by address. See peers.h.
 *
 * Short lists under one lock, taken once when a connection opens and once when it closes.
 */
#include <skv/peers.h>

#include <assert.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/mem.h>

struct skv_peer {
	struct skv_peer *next;
	uint32_t n; /* connections of the peer, > 0 */
	uint8_t address[SKV_ADDRESS_BYTES];
};

void skv_peers_init(struct skv_peers *p, uint32_t most)
{
	memset(p, 0, sizeof *p);
	p->most = most;
	skv_mutex_init(&p->lock);
}

void skv_peers_destroy(struct skv_peers *p)
{
	for (unsigned i = 0; i < SKV_PEERS_LISTS; i++)
		assert(!p->lists[i]);
	skv_mutex_destroy(&p->lock);
}

/* Where the pointer to it is, or would be. */
static struct skv_peer **find_locked(struct skv_peers *p, const uint8_t *address)
	SKV_REQUIRES(p->lock)
{
	struct skv_peer **at =
		&p->lists[skv_checksum(address, SKV_ADDRESS_BYTES) % SKV_PEERS_LISTS];

	assert(skv_mutex_held(&p->lock));
	while (*at && memcmp((*at)->address, address, SKV_ADDRESS_BYTES) != 0)
		at = &(*at)->next;
	return at;
}

static bool enter_locked(struct skv_peers *p, const uint8_t *address) SKV_REQUIRES(p->lock)
{
	struct skv_peer **at = find_locked(p, address);

	if (!*at) {
		*at = skv_calloc(1, sizeof **at);
		if (!*at)
			return false;
		memcpy((*at)->address, address, SKV_ADDRESS_BYTES);
	} else if ((*at)->n >= p->most) {
		return false;
	}
	(*at)->n++;
	assert((*at)->n <= p->most);
	return true;
}

bool skv_peers_enter(struct skv_peers *p, const uint8_t address[SKV_ADDRESS_BYTES])
{
	bool entered;

	if (p->most == 0)
		return true;
	skv_mutex_lock(&p->lock);
	entered = enter_locked(p, address);
	skv_mutex_unlock(&p->lock);
	return entered;
}

void skv_peers_leave(struct skv_peers *p, const uint8_t address[SKV_ADDRESS_BYTES])
{
	struct skv_peer **at, *gone = NULL;

	if (p->most == 0)
		return;
	skv_mutex_lock(&p->lock);
	at = find_locked(p, address);
	assert(*at && (*at)->n > 0);
	if (--(*at)->n == 0) {
		gone = *at;
		*at = gone->next;
	}
	skv_mutex_unlock(&p->lock);
	skv_free(gone);
}
