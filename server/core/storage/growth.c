/*
 * growth.c - may a space be used, and may it grow: what its device and its capacity say.
 */
#include <storage/growth.h>

#include <model/device.h>
#include <model/partition.h>
#include <model/space.h>
#include <storage/device.h>

bool space_usable(const struct space *s)
{
	return s->enabled && device_healthy(s->dev);
}

bool space_takes(const struct space *s) { return space_usable(s) && !s->draining; }

/* A rest that header and trailer would fill is no room: no file can be made of it. */
bool space_has_room(const struct space *s)
{
	uint64_t rest = s->capacity > s->file_bytes ? s->capacity - s->file_bytes : 0;

	rest -= rest % s->dev->unit;
	return rest > 2 * s->dev->edge && !s->dev->ops->counted && !s->draining;
}

bool space_can_grow(const struct partition *p, const struct space *s)
{
	ASSERT_SHARED(p);
	return space_has_room(s) && skv_now_ms(p->core->clock) >= s->grow_again_at;
}

void space_ask_growth(struct partition *p, struct space *s)
{
	ASSERT_EXCLUSIVE(p);
	if (s->growing)
		return;
	s->growing = true;
	s->growing_since = skv_now_ms(p->core->clock);
	device_ask(s->dev);
}
