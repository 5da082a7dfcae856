/*
 * records.h - the types of records that a checkpoint alone has, and that of a reign, for the core's table of records.
 */
#ifndef SKV_CORE_RECORDS_H
#define SKV_CORE_RECORDS_H

#include "change.h"

extern const struct record_ops blocks_record, named_blocks_record, ended_record, hold_record, reign_record, leases_record,
	counters_record, eras_record;

#endif
