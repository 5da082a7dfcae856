/*
 * ports.h - KVCM's four ports, and one more for older debug clients: which services each has.
 *
 * Meta and admin have different ports, unless the admin port is off or has the same number. Owned
 * by compat.c.
 */
#ifndef SKV_PORTS_H
#define SKV_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/params.h>

struct skv_api;
struct skv_httpd;
struct skv_grpc;
struct skv_service;

enum skv_port {
	PORT_META_RPC,
	PORT_META_HTTP,
	PORT_ADMIN_RPC,
	PORT_ADMIN_HTTP,
	PORT_DEBUG_HTTP,
	PORT_COUNT
};

struct skv_ports {
	struct skv_httpd *http[PORT_COUNT]; /* NULL: not open, or gRPC */
	struct skv_grpc *grpc[PORT_COUNT];
};

/* Binds the ports of the parameters; after a failure skv_ports_close closes the bound ones. */
int skv_ports_bind(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		   const struct skv_api *api, struct skv_error *err);
int skv_ports_start(struct skv_ports *ports, const struct skv_params *p, struct skv_error *err);
/* The port number that clients of that service use; 0 = none. */
uint16_t skv_ports_number(const struct skv_ports *ports, enum skv_port which);
uint32_t skv_ports_drain(struct skv_ports *ports, const struct skv_params *p, uint32_t timeout_ms);
bool skv_ports_quiet(struct skv_ports *ports, uint32_t timeout_ms);
void skv_ports_close(struct skv_ports *ports);

#endif
