/* etcd_upkeep.c - see etcd_upkeep.h. Stateless; any thread. */
#include "etcd_upkeep.h"

#include <internal.h>

static void get_status(void *ctx, const struct pb_field *f)
{
	struct skv_etcd_status *out = ctx;

	if (f->number == 2 && f->wire == PB_BYTES)
		etcd_get_text(f, out->version, sizeof out->version);
	if (f->wire != PB_VARINT)
		return;
	switch (f->number) {
	case 3: out->db_bytes = f->v; break;
	case 4: out->leader = f->v; break;
	case 7: out->raft_applied = f->v; break;
	case 9: out->db_bytes_used = f->v; break;
	}
}

int skv_etcd_status_get(struct skv_etcd *c, struct skv_etcd_status *out, struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.Maintenance/Status",
					      .local = true };
	struct skv_etcd_status got = { 0 };
	struct etcd_exchange x = { .method = &m, .get = get_status, .out = &got };
	int rc = etcd_exchange(c, c->timeout_ms, &x, err);

	got.member_id = x.header.member_id;
	if (rc == SKV_OK)
		*out = got;
	return rc;
}

struct alarms {
	uint64_t member[64], alarm[64];
	size_t n;
};

/* AlarmMember: member 1, alarm 2. */
static void get_alarm(void *ctx, const struct pb_field *f)
{
	struct skv_rd r = skv_rd_make(f->p, f->n);
	struct alarms *all = ctx;
	struct pb_field inner;

	if (f->number != 2 || f->wire != PB_BYTES || all->n == 64)
		return;
	while (pb_next(&r, &inner)) {
		if (inner.number == 1 && inner.wire == PB_VARINT)
			all->member[all->n] = inner.v;
		else if (inner.number == 2 && inner.wire == PB_VARINT)
			all->alarm[all->n] = inner.v;
	}
	all->n++;
}

/* AlarmRequest: action 1 (2 = lower), member 2, alarm 3. */
static void put_disarm(struct skv_buf *b, const void *alarms)
{
	const struct alarms *one = alarms;

	etcd_pb_number(b, 1, 2);
	etcd_pb_number(b, 2, one->member[0]);
	etcd_pb_number(b, 3, one->alarm[0]);
}

int skv_etcd_alarms(struct skv_etcd *c, unsigned disarm, unsigned *raised, struct skv_error *err)
{
	static const struct etcd_method get = { .path = "/etcdserverpb.Maintenance/Alarm" };
	static const struct etcd_method set = { .path = "/etcdserverpb.Maintenance/Alarm",
						.writes = true };
	struct alarms all = { .n = 0 };
	struct etcd_exchange list = { .method = &get, .get = get_alarm, .out = &all };
	int rc = etcd_exchange(c, c->timeout_ms, &list, err);
	unsigned left = 0;

	for (size_t i = 0; rc == SKV_OK && i < all.n; i++) {
		const struct alarms one = { { all.member[i] }, { all.alarm[i] }, 1 };
		struct etcd_exchange x = { .method = &set, .put = put_disarm, .ctx = &one };
		const unsigned bit = all.alarm[i] < 32 ? 1u << all.alarm[i] : 0;

		if (disarm & bit)
			rc = etcd_exchange(c, c->timeout_ms, &x, err);
		else
			left |= bit;
	}
	if (rc == SKV_OK)
		*raised = left;
	return rc;
}

int skv_etcd_defragment(struct skv_etcd *c, uint32_t timeout_ms, struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.Maintenance/Defragment",
					      .writes = true, .local = true };
	struct etcd_exchange x = { .method = &m };

	return etcd_exchange(c, timeout_ms, &x, err);
}
