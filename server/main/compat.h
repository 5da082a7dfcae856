/*
 * compat.h - the peer's mode of the program: its four ports, its first objects, where the manager is to be found.
 *
 * Made and driven by serve.c. Without `compat = kvcm` there are no ports and no objects, only what the operations
 * of the peer's API need to know in any case.
 */
#ifndef SKV_COMPAT_H
#define SKV_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>
#include <skv/params.h>

struct skv_api;
struct skv_core;
struct skv_service;
struct skv_compat;

/* Reads the start-up file, if there is one to be read. Messages name the parameter. */
int skv_compat_create(const struct skv_params *p, struct skv_compat **out, struct skv_error *err);
/* The peer's API, for the service and all transports; as long as `c` lives. */
struct skv_api *skv_compat_api(const struct skv_compat *c);
/* Binds the ports: who connects waits from now on. http_port, grpc_port: slabkvd's own, 0 = none. */
int skv_compat_bind(struct skv_compat *c, struct skv_service *s, uint16_t http_port, uint16_t grpc_port,
		    struct skv_error *err);
/* Begins to answer there, and tells the ports in kvcm_ports_file. */
int skv_compat_start(struct skv_compat *c, struct skv_error *err);
/* True when this mode has first objects of its own, instead of those of defaults.c. */
bool skv_compat_has_objects(const struct skv_compat *c);
/* Where a storage of main's own goes: `root`, or beside it when the store ends with the process; what dead processes left
 * there is removed. SKV_E_IO, SKV_E_INVALID (too long). */
int skv_compat_place(const struct skv_compat *c, char root[SKV_MAX_ROOT + 1], struct skv_error *err);
/* Makes them where they are absent. Blocks; errors as skv_defaults_make. */
int skv_compat_make(struct skv_compat *c, struct skv_core *core, struct skv_error *err);
/* Tells the other managers where this one is. Blocks; when it fails it may be tried again. */
int skv_compat_publish(struct skv_compat *c, struct skv_core *core, struct skv_error *err);
/* The end, as the transports have it: drain, then quiet, then destroy. `core`: NULL = there was none. */
void skv_compat_retire(struct skv_compat *c, struct skv_core *core);
uint32_t skv_compat_drain(struct skv_compat *c, uint32_t timeout_ms);
bool skv_compat_quiet(struct skv_compat *c, uint32_t timeout_ms);
/* Closes the ports; the directories of a store in memory go when the core is gone (skv_compat_destroy). */
void skv_compat_close(struct skv_compat *c);
void skv_compat_destroy(struct skv_compat *c);

#endif
