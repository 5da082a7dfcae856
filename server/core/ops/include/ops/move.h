/* move.h - moves of blocks, which movers carry out (move.c has skv/core.h's functions). */
#ifndef SKV_CORE_OPS_MOVE_H
#define SKV_CORE_OPS_MOVE_H

#include <journal/change.h>

/* Blocks lie in other slots. */
extern const struct change_ops moved_ops;

#endif
