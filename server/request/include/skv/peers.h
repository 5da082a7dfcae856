/* peers.h - limits connections per address. */
#ifndef SKV_PEERS_H
#define SKV_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hold.h>
#include <skv/lock.h>

#define SKV_PEERS_LISTS 256

struct skv_peers {
	uint32_t most; /* of one address; 0 = no bound */
	struct skv_mutex lock;
	struct skv_peer *lists[SKV_PEERS_LISTS]; /* protected by lock */
};

void skv_peers_init(struct skv_peers *p, uint32_t most);
/* All connections must have ended. */
void skv_peers_destroy(struct skv_peers *p);
/* Counts a new connection of an address (by skv_hold_address). False, and nothing counted: at its
 * limit, or out of memory. Any thread. */
bool skv_peers_enter(struct skv_peers *p, const uint8_t address[SKV_ADDRESS_BYTES]);
/* Uncounts it when closed. Any thread. */
void skv_peers_leave(struct skv_peers *p, const uint8_t address[SKV_ADDRESS_BYTES]);

#endif
