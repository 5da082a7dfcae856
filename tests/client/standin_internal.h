/* standin_internal.h - between the two files of the stand-in. */
#ifndef SKV_TEST_STANDIN_INTERNAL_H
#define SKV_TEST_STANDIN_INTERNAL_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/status.h>
#include <skv/v1_codec.h>

#include "standin.h"

/* A request while it is answered. */
struct exchange {
	struct skv_buf in, out;
	struct skv_arena arena;
	struct skv_error err;
	const struct skv_v1_codec *codec; /* of body and answer */
	bool direct;                      /* only the owner is to answer */
};

/* Does what `method` and `url` ask; the answer is in x->out, or the error in x->err. The caller
 * holds s->lock. */
int standin_dispatch(struct standin *s, struct exchange *x, const char *method, const char *url);

#endif
