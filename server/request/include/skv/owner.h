/* owner.h - tells clients that route directly which manager owns the partition of their call. */
#ifndef SKV_OWNER_H
#define SKV_OWNER_H

#include <stdbool.h>

#include <skv/owner_note.h>

struct skv_request;

/* The value of the header Slabkv-Owner of the answer, after skv_request_finish. False: the client
 * did not ask (Slabkv-Route: direct), the call is for no partition, or its owner is not known. Any
 * thread; never blocks. */
bool skv_owner_tell(struct skv_request *c, char out[SKV_NOTE_MAX]);

#endif
