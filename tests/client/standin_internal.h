/* standin_internal.h - between the two files of the stand-in. */
#ifndef KVB_TEST_STANDIN_INTERNAL_H
#define KVB_TEST_STANDIN_INTERNAL_H

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/status.h>
#include <kvb/v1_codec.h>

#include "standin.h"

/* One request while it is answered. */
struct exchange {
	struct kvb_buf in, out;
	struct kvb_arena arena;
	struct kvb_error err;
	const struct kvb_v1_codec *codec; /* of body and answer */
};

/* Does what `method` and `url` ask; the answer is in x->out, or the error in x->err. The caller
 * holds s->lock. */
int standin_dispatch(struct standin *s, struct exchange *x, const char *method, const char *url);

#endif
