/*
 * replay.h - records that only a checkpoint has, and those of a reign, decoded and applied.
 */
#ifndef SKV_CORE_RECOVERY_REPLAY_H
#define SKV_CORE_RECOVERY_REPLAY_H

#include <model/partition.h>
#include <journal/change.h>

extern const struct record_ops ended_record, hold_record, reign_record, leases_record, counters_record, eras_record;

#endif
