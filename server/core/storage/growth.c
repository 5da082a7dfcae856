/* growth.c - decides whether a volume may be used, and may grow, by its device and its capacity. */
#include <storage/growth.h>

#include <model/device.h>
#include <model/partition.h>
#include <model/volume.h>
#include <storage/device.h>

bool volume_usable(const struct volume *s)
{
	return s->enabled && device_healthy(s->dev);
}

bool volume_takes(const struct volume *s) { return volume_usable(s) && !s->draining; }

/* Space that header and trailer would fill is too little: no file can be made of it. */
bool volume_has_room(const struct volume *s)
{
	uint64_t filled = s->file_bytes - s->vanished_bytes;
	uint64_t rest = s->capacity > filled ? s->capacity - filled : 0;

	rest -= rest % s->dev->unit;
	return rest > 2 * s->dev->edge && !s->dev->ops->counted && !s->draining;
}

bool volume_can_grow(const struct partition *p, const struct volume *s)
{
	ASSERT_SHARED(p);
	return volume_has_room(s) && skv_now_ms(p->core->clock) >= s->grow_again_at;
}

void volume_ask_growth(struct partition *p, struct volume *s)
{
	ASSERT_EXCLUSIVE(p);
	if (s->growing)
		return;
	s->growing = true;
	s->growing_since = skv_now_ms(p->core->clock);
	device_ask(s->dev);
}
