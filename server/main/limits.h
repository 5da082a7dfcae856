/* limits.h - limits on clients of all ports, from the parameters. */
#ifndef SKV_LIMITS_OF_PORTS_H
#define SKV_LIMITS_OF_PORTS_H

#include <skv/core.h>
#include <skv/params.h>
#include <skv/port.h>
#include <skv/service.h>

/* Connections of all ports together that RLIMIT_NOFILE allows, beside the descriptors of store and
 * storages; 0 = any number. */
uint32_t limit_connections(void);
/* Limits of bodies and answers, and what is logged; other members of *o stay. */
void limit_service(const struct skv_params *p, struct skv_service_options *o);
/* Certificates, threads, connections and time limits of a port. */
void limit_port(const struct skv_params *p, struct skv_port_options *o);

/* Fills in those options of the core that may change while it runs (skv_cluster_change). */
void limit_core(const struct skv_params *p, struct skv_core_options *o);

#endif
