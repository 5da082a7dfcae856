/* v1_api.h - the native API, v1: every operation of the manager, as its own clients call it. */
#ifndef SKV_V1_SERVER_API_H
#define SKV_V1_SERVER_API_H

#include <skv/api.h>

struct skv_service;

/* From now on the core of `s` asks other managers of the store by this API; `s` is started, and
 * stays until the core is shut down. */
void skv_v1_ask_others(struct skv_service *s);

/* Numbered by the service that uses it; one per process. */
extern struct skv_api skv_v1_api;

#endif
