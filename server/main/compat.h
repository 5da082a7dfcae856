/*
 * compat.h - the peer's mode of the program: its four ports, its first objects, where the manager is to be found.
 *
 * Made and driven by serve.c. Without `compat = kvcm` there are no ports and no objects, only what the operations
 * of the peer's API need to know in any case.
 */
#ifndef KVB_COMPAT_H
#define KVB_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/limits.h>
#include <kvb/params.h>

struct kvb_api;
struct kvb_core;
struct kvb_service;
struct kvb_compat;

/* Reads the start-up file, if there is one to be read. Messages name the parameter. */
int kvb_compat_create(const struct kvb_params *p, struct kvb_compat **out, struct kvb_error *err);
/* The peer's API, for the service and all fronts; as long as `c` lives. */
struct kvb_api *kvb_compat_api(const struct kvb_compat *c);
/* Binds the ports: who connects waits from now on. http_port, grpc_port: kvblockd's own, 0 = none. */
int kvb_compat_bind(struct kvb_compat *c, struct kvb_service *s, uint16_t http_port, uint16_t grpc_port,
		    struct kvb_error *err);
/* Begins to answer there, and tells the ports in kvcm_ports_file. */
int kvb_compat_start(struct kvb_compat *c, struct kvb_error *err);
/* True when this mode has first objects of its own, instead of those of defaults.c. */
bool kvb_compat_has_objects(const struct kvb_compat *c);
/* Where a storage of main's own goes: `root`, or beside it when the store ends with the process; what dead processes left
 * there is removed. KVB_E_IO, KVB_E_INVALID (too long). */
int kvb_compat_place(const struct kvb_compat *c, char root[KVB_MAX_ROOT + 1], struct kvb_error *err);
/* Makes them where they are absent. Blocks; errors as kvb_defaults_make. */
int kvb_compat_make(struct kvb_compat *c, struct kvb_core *core, struct kvb_error *err);
/* Tells the other managers where this one is. Blocks; when it fails it may be tried again. */
int kvb_compat_publish(struct kvb_compat *c, struct kvb_core *core, struct kvb_error *err);
/* The end, as the fronts have it: drain, then quiet, then destroy. `core`: NULL = there was none. */
void kvb_compat_retire(struct kvb_compat *c, struct kvb_core *core);
uint32_t kvb_compat_drain(struct kvb_compat *c, uint32_t timeout_ms);
bool kvb_compat_quiet(struct kvb_compat *c, uint32_t timeout_ms);
/* Closes the ports; the directories of a store in memory go when the core is gone (kvb_compat_destroy). */
void kvb_compat_close(struct kvb_compat *c);
void kvb_compat_destroy(struct kvb_compat *c);

#endif
