/* replay_blocks.h - decodes and applies a checkpoint's blocks. */
#ifndef SKV_CORE_RECOVERY_REPLAY_BLOCKS_H
#define SKV_CORE_RECOVERY_REPLAY_BLOCKS_H

#include <journal/change.h>

extern const struct record_ops blocks_record, named_blocks_record;

#endif
