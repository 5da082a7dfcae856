/*
 * ports.h - the peer's four ports, and one more for older debug clients: which services each has.
 *
 * Meta and admin are apart, unless the admin port is off or the same number: then it is the meta port. Owned by
 * compat.c.
 */
#ifndef KVB_PORTS_H
#define KVB_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/params.h>

struct kvb_api;
struct kvb_front;
struct kvb_grpc;
struct kvb_service;

enum kvb_port { PORT_META_RPC, PORT_META_HTTP, PORT_ADMIN_RPC, PORT_ADMIN_HTTP, PORT_DEBUG_HTTP, PORT_COUNT };

struct kvb_ports {
	struct kvb_front *http[PORT_COUNT]; /* NULL: not open, or gRPC */
	struct kvb_grpc *grpc[PORT_COUNT];
	bool has_file;
};

/* Binds what the parameters ask for; on failure what was bound stays for kvb_ports_close. */
int kvb_ports_bind(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_service *s,
		   const struct kvb_api *api, struct kvb_error *err);
int kvb_ports_start(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_error *err);
/* Number that clients of that service use; 0 = none. */
uint16_t kvb_ports_number(const struct kvb_ports *ports, enum kvb_port which);
uint32_t kvb_ports_drain(struct kvb_ports *ports, const struct kvb_params *p, uint32_t timeout_ms);
bool kvb_ports_quiet(struct kvb_ports *ports, uint32_t timeout_ms);
void kvb_ports_close(struct kvb_ports *ports);

#endif
