/*
 * replay.h - decodes and applies records found only in checkpoints, and those of a change of
 * ownership.
 */
#ifndef SKV_CORE_RECOVERY_REPLAY_H
#define SKV_CORE_RECOVERY_REPLAY_H

#include <model/partition.h>
#include <journal/change.h>

extern const struct record_ops ended_record, hold_record, horizon_record, leases_record,
	eras_record, link_record;

#endif
