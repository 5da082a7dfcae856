/*
 * compat.h - the program in KVCM's mode: its four ports, its first objects, its published address.
 *
 * Created and driven by serve.c. Without `compat = kvcm` there are no ports and no objects, only
 * the state that the operations of KVCM's API always need.
 */
#ifndef SKV_COMPAT_H
#define SKV_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>
#include <skv/params.h>

struct skv_api;
struct skv_cluster;
struct skv_service;
struct skv_compat;

/* Reads the start-up file, if any. Messages name the parameter. */
int skv_compat_create(const struct skv_params *p, struct skv_compat **out, struct skv_error *err);
/* KVCM's API, for the service and all transports; lives as long as `c`. */
struct skv_api *skv_compat_api(const struct skv_compat *c);
/* Binds the ports: clients can connect from now on and wait. http_port, grpc_port: slabkvd's own, 0
 * = none. */
int skv_compat_bind(struct skv_compat *c, struct skv_service *s, uint16_t http_port,
		    uint16_t grpc_port, struct skv_error *err);
/* Starts answering there, and writes the port numbers beside port_file. */
int skv_compat_start(struct skv_compat *c, struct skv_error *err);
/* Returns true if this mode creates first objects of its own, instead of those of defaults.c. */
bool skv_compat_has_objects(const struct skv_compat *c);
/* The root of a storage that main creates: `root`, or beside it when the store ends with the
 * process; leftovers of dead processes there are removed. SKV_E_IO, SKV_E_INVALID (too long). */
int skv_compat_place(const struct skv_compat *c, char root[SKV_MAX_ROOT + 1],
		     struct skv_error *err);
/* Creates the missing ones. Blocks; errors as skv_defaults_make. */
int skv_compat_make(struct skv_compat *c, struct skv_cluster *cluster, struct skv_error *err);
/* Publishes this manager's address for the others. Blocks; may be retried. */
int skv_compat_publish(struct skv_compat *c, struct skv_cluster *cluster, struct skv_error *err);
/* Shutdown, in the transports' steps: drain, quiet, destroy. `core`: NULL = there was none. */
void skv_compat_retire(struct skv_compat *c, struct skv_cluster *cluster);
uint32_t skv_compat_drain(struct skv_compat *c, uint32_t timeout_ms);
bool skv_compat_quiet(struct skv_compat *c, uint32_t timeout_ms);
/* Closes the ports; directories of a store in memory are removed after the core
 * (skv_compat_destroy). */
void skv_compat_close(struct skv_compat *c);
void skv_compat_destroy(struct skv_compat *c);

#endif
