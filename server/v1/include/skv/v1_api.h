/* v1_api.h - the native API, v1: every operation of the manager, as its own clients call it. */
#ifndef SKV_V1_SERVER_API_H
#define SKV_V1_SERVER_API_H

#include <skv/api.h>

/* Numbered by the service that uses it; one per process. */
struct skv_cluster_asks;
struct skv_service;

/* How the core of `s` asks other managers of the store (skv_cluster_ask_by). *out is in use as long
 * as the core is; `s` must be started before and stay until the core is shut down. */
void skv_v1_asks(struct skv_service *s, struct skv_cluster_asks *out);

extern struct skv_api skv_v1_api;

#endif
