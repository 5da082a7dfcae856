/*
 * native_api.h - the native API, v1: every operation of the manager as its own clients call it.
 */
#ifndef KVB_NATIVE_API_H
#define KVB_NATIVE_API_H

#include <kvb/api.h>

/* Numbered by the service that it is given to; there is one of it in a process. */
extern struct kvb_api kvb_native_api;

#endif
