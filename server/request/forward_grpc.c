/*
 * forward_grpc.c - forwards gRPC calls to the owner, inside HTTP. See skv/forward.h.
 *
 * Request and answer messages are forwarded unchanged. A failure is in headers, from which this
 * manager makes its trailers: code, message and field are the owner's. No state.
 */
#include "forward_grpc.h"

#include <stdio.h>
#include <string.h>

#include <skv/request.h>

enum { STATUS, CODE, MESSAGE, FIELD, WANTED };

bool forward_want(struct skv_request *c, struct skv_relay_call *call, const char *const *names,
		  unsigned n)
{
	call->want = skv_arena_calloc(&c->arena, n, sizeof *call->want);
	for (unsigned i = 0; call->want && i < n; i++)
		call->want[i].name = names[i];
	call->n_want = n;
	return call->want != NULL;
}

bool forward_grpc_make(struct skv_request *c, struct skv_relay_call *call)
{
	static const char *const names[WANTED] = {
		[STATUS] = SKV_STATUS,        [CODE] = SKV_GRPC_CODE,
		[MESSAGE] = SKV_GRPC_MESSAGE, [FIELD] = SKV_GRPC_FIELD,
	};

	call->method = "POST";
	call->body = c->forwarding.origin->message(c, &call->n_body);
	return forward_want(c, call, names, WANTED);
}

static int take_failure(struct skv_request *c, const struct skv_relay_header *want)
{
	const int status = skv_status_from_name(want[STATUS].value);
	char message[SKV_MESSAGE_MAX], field[SKV_FIELD_MAX];

	if (!skv_percent_decode(want[MESSAGE].value, strlen(want[MESSAGE].value), message,
				sizeof message))
		snprintf(message, sizeof message, "%s", skv_status_text(status));
	snprintf(field, sizeof field, "%.*s", (int)sizeof field - 1, want[FIELD].value);
	return skv_fail(&c->err, status, *field ? field : NULL, "%s", message);
}

bool forward_grpc_take(struct skv_request *c, struct skv_relay_call *call, int *status)
{
	const struct skv_relay_header *want = call->want;
	unsigned code;

	if (call->status != 200 || sscanf(want[CODE].value, "%2u", &code) != 1)
		return false;
	skv_buf_destroy(&c->out);
	c->out = call->answer;
	c->answer = code;
	c->failed = *want[STATUS].value != '\0'; /* the status may be inside the message */
	*status = code ? take_failure(c, want) : SKV_OK;
	return true;
}
