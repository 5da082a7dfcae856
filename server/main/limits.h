/* limits.h - what parameters allow the clients of all ports. */
#ifndef SKV_LIMITS_OF_PORTS_H
#define SKV_LIMITS_OF_PORTS_H

#include <skv/httpd.h>
#include <skv/grpc.h>
#include <skv/params.h>
#include <skv/service.h>

/* Bounds of bodies and answers, and what is logged; the rest of *o stays. */
void limit_service(const struct skv_params *p, struct skv_service_options *o);
/* Threads, connections and time of an HTTP port. */
void limit_httpd(const struct skv_params *p, struct skv_httpd_options *o);
/* The same of a gRPC port, and its streams. */
void limit_grpc(const struct skv_params *p, struct skv_grpc_options *o);

#endif
