/*
 * replay_chunk.h - blocks of a checkpoint, chunk by chunk, decoded and applied.
 */
#ifndef SKV_CORE_RECOVERY_REPLAY_CHUNK_H
#define SKV_CORE_RECOVERY_REPLAY_CHUNK_H

#include <journal/change.h>

extern const struct record_ops chunk_record;

#endif
