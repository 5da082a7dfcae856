/* start_replay.h - decodes and applies the record of a start. */
#ifndef SKV_CORE_OPS_START_REPLAY_H
#define SKV_CORE_OPS_START_REPLAY_H

struct replay;
struct skv_error;
struct skv_rd;

int replay_start(struct replay *r, struct skv_rd *in, struct skv_error *err);

#endif
