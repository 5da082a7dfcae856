/*
 * op_pins.c - the lists of pins and of keys, in portions. They are asked for by query, over gRPC
 * by a message of their own.
 */
#include "v1.h"

#include <errno.h>
#include <stdlib.h>

#include <skv/pb.h>

#define AT_A_TIME 1024u

static int take_number(struct skv_request *r, const char *field, const char *text, uint64_t *out)
{
	char *end = NULL;

	if (!text)
		return SKV_OK;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return skv_fail(&r->err, SKV_E_INVALID, field, "a decimal number is expected");
	return SKV_OK;
}

static int take_query(struct skv_request *r, uint64_t *cursor, uint64_t *max)
{
	int rc = take_number(r, "cursor", v1_of(r)->cursor, cursor);

	return rc == SKV_OK ? take_number(r, "max", v1_of(r)->max, max) : rc;
}

static void take_message(struct skv_request *r, uint64_t *cursor, uint64_t *max)
{
	struct skv_rd message = skv_rd_make(r->body, r->n_body);
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.number == 1 && f.wire == 0)
			*cursor = f.v;
		if (f.number == 2 && f.wire == 0 && f.v)
			*max = f.v;
	}
}

/* Which portion. */
static int take_portion(struct skv_request *r, uint64_t *cursor, uint32_t *most)
{
	uint64_t max = AT_A_TIME;
	int rc = SKV_OK;

	if (r->wire == WIRE_GRPC)
		take_message(r, cursor, &max);
	else
		rc = take_query(r, cursor, &max);
	*most = max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
	return rc;
}

int skv_op_pins_run(struct skv_request *r)
{
	struct skv_pins_req req = { .tenant = r->caller.tenant, .instance = r->param[0].value };
	int rc = take_portion(r, &req.cursor, &req.max);

	if (rc != SKV_OK)
		return rc;
	return skv_core_pins(skv_request_core(r), &req, &v1_of(r)->u.pins, &r->arena, &r->err);
}

void skv_op_pins_write(struct skv_request *r)
{
	v1_of(r)->codec->write_pins_res(&r->out, &v1_of(r)->u.pins);
}

int skv_op_keys_run(struct skv_request *r)
{
	struct skv_export_req req = { .tenant = r->caller.tenant, .instance = r->param[0].value,
				      .keys_only = true };
	struct skv_export_res res;
	int rc = take_portion(r, &req.cursor, &req.max);

	if (rc == SKV_OK)
		rc = skv_core_export(skv_request_core(r), &req, &res, &r->arena, &r->err);
	if (rc == SKV_OK)
		v1_of(r)->u.keys = (struct skv_keys_res){ .n = res.n, .key = res.key,
							  .next = res.next };
	return rc;
}

void skv_op_keys_write(struct skv_request *r)
{
	v1_of(r)->codec->write_keys_res(&r->out, &v1_of(r)->u.keys);
}
