/* quota_share.h - an instance's share of its group's capacity. */
#ifndef SKV_CORE_MODEL_QUOTA_SHARE_H
#define SKV_CORE_MODEL_QUOTA_SHARE_H

#include <stdint.h>

struct group;
struct instance;
struct partition;
struct skv_instance_spec;

static inline uint64_t percent_of(uint64_t bytes, uint32_t percent)
{
	return bytes / 100 * percent + bytes % 100 * percent / 100;
}
uint64_t spec_block_bytes(const struct skv_instance_spec *i); /* all specs */
void group_join(struct group *g, struct instance *inst);
void group_leave(struct instance *inst);
/* `by` is a member of its group in place of `of`. */
void group_replace(struct instance *of, struct instance *by);
/* Takes over weight and capacity of `to`. */
void quota_share_change(struct instance *inst, const struct skv_instance_spec *to);
/* Bytes available to the group: its capacity, or its storages' if that is less. */
uint64_t group_room(const struct partition *p, const struct group *g);
/* Of all its storages, regardless of its own capacity. */
uint64_t group_storages_room(const struct partition *p, const struct group *g);
/* The instance's share of `room` bytes; all of them in a group without shares. */
uint64_t quota_share_of(const struct instance *inst, uint64_t room);

#endif
