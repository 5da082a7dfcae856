/*
 * op.c - common to all operations of KVCM's API: order of checks, codes, messages, headers.
 *
 * KVCM's order: the instance exists, this node leads, no fault is injected, required fields, the
 * work. The work itself finds out whether the instance exists; it is only checked separately when
 * something else has failed, because it determines the error. Leading is checked first here,
 * because a standby knows no instance. No state.
 */
#include "op.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct kvcm *kvcm_of(const struct kvcm_request *k) { return k->c->api->ctx; }

struct skv_core *kvcm_core(const struct kvcm_request *k) { return skv_request_core(k->c); }

struct skv_cluster *kvcm_cluster(const struct kvcm_request *k) { return skv_request_cluster(k->c); }

/* ---- results --------------------------------------------------------------------------------- */

char *kvcm_text(struct kvcm_request *k, const char *fmt, ...)
{
	static char none[] = "";
	char small[512], *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	text = n < 0 ? NULL : skv_arena_alloc(&k->c->arena, (size_t)n + 1);
	if (!text)
		return none;
	if ((size_t)n < sizeof small)
		return memcpy(text, small, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}

int kvcm_missing(struct kvcm_request *k, const char *field)
{
	k->message = kvcm_text(k, "missing or invalid fields: {%s: {%s}}", k->op->name, field);
	return skv_fail(&k->c->err, SKV_E_INVALID, field, "%s is missing or invalid", field);
}

int kvcm_nomem(struct kvcm_request *k)
{
	return skv_fail(&k->c->err, SKV_E_NOMEM, NULL, "out of memory");
}

int kvcm_with_code(struct kvcm_request *k, int rc, int code)
{
	assert(rc != SKV_OK && code != KVCM_META__ERROR_CODE__OK);
	k->code = code;
	return rc;
}

int kvcm_code(int status)
{
	assert(status != SKV_PENDING);
	switch (status) {
	case SKV_OK:
		return KVCM_META__ERROR_CODE__OK;
	case SKV_E_INVALID:
	case SKV_E_TOO_LARGE:
		return KVCM_META__ERROR_CODE__INVALID_ARGUMENT;
	case SKV_E_UNSUPPORTED:
		return KVCM_META__ERROR_CODE__UNSUPPORTED;
	case SKV_E_CONFLICT:
		return KVCM_META__ERROR_CODE__DUPLICATE_ENTITY;
	case SKV_E_NOT_FOUND:
		return KVCM_META__ERROR_CODE__INSTANCE_NOT_EXIST;
	case SKV_E_TOO_MANY:
		return KVCM_META__ERROR_CODE__REACH_MAX_ENTITY_CAPACITY;
	case SKV_E_NOT_OWNER:
	case SKV_E_NOT_READY:
	case SKV_E_FENCED:
		return KVCM_META__ERROR_CODE__SERVER_NOT_LEADER;
	case SKV_E_IO:
	case SKV_E_STORE_IO:
		return KVCM_META__ERROR_CODE__IO_ERROR;
	default:
		return KVCM_META__ERROR_CODE__INTERNAL_ERROR;
	}
}

/* ---- running --------------------------------------------------------------------------------- */

const char *kvcm_field(const struct kvcm_request *k, const char *name)
{
	const ProtobufCFieldDescriptor *f =
		k->req ? protobuf_c_message_descriptor_get_field_by_name(k->op->request, name)
		       : NULL;
	const char *text = NULL;

	if (f && f->type == PROTOBUF_C_TYPE_STRING && f->label != PROTOBUF_C_LABEL_REPEATED)
		memcpy(&text, (const char *)k->req + f->offset, sizeof text);
	return text ? text : "";
}

int kvcm_op_run(struct kvcm_request *k)
{
	const char *instance = kvcm_field(k, "instance_id");
	int rc = k->op->flags & KVCM_LEADER ? skv_request_check_core(k->c) : SKV_OK;

	assert(k->op == k->c->route->own &&
	       (!(k->op->flags & KVCM_WORKER) || k->c->route->flags & ROUTE_BLOCKS));
	if (*instance && (rc == SKV_OK || k->op->flags & KVCM_INSTANCE))
		skv_request_find(k->c, SKV_TARGET_INSTANCE, NULL, instance);
	if (rc != SKV_OK)
		return rc;
	if (k->op->flags & KVCM_FAULTS &&
	    kvcm_faults_hit(&kvcm_of(k)->faults, k->op->name, k->trace_id)) {
		k->message = kvcm_text(k, "%s fail due to fault injection", k->op->name);
		return skv_fail(&k->c->err, SKV_E_INTERNAL, NULL, "fault injection");
	}
	/* the message holds the default there, which the client did not send */
	if (k->notes && *k->notes->value)
		return kvcm_missing(k, k->notes->value);
	return k->op->run(k);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool is_registered(const struct kvcm_request *k)
{
	const char *id = kvcm_field(k, "instance_id");
	struct skv_instance_view *v;
	struct skv_error ignored;

	return *id && skv_cluster_instance(kvcm_cluster(k), k->c->caller.tenant, id, &k->c->arena,
					   &v, &ignored) != SKV_E_NOT_FOUND;
}

int kvcm_answer_code(const struct kvcm_request *k, int status)
{
	int code = k->code && status != SKV_OK ? k->code : kvcm_code(status);

	if (!(k->op->flags & KVCM_INSTANCE) || code == KVCM_META__ERROR_CODE__OK ||
	    code == KVCM_META__ERROR_CODE__SERVER_NOT_LEADER)
		return code;
	if (!is_registered(k))
		return KVCM_META__ERROR_CODE__INSTANCE_NOT_EXIST;
	/* Something of it was not found. */
	return code == KVCM_META__ERROR_CODE__INSTANCE_NOT_EXIST
		       ? KVCM_META__ERROR_CODE__INTERNAL_ERROR
		       : code;
}

const char *kvcm_answer_message(struct kvcm_request *k, int status)
{
	const char *done = k->message ? k->message : k->op->done ? k->op->done : "";

	if (status == SKV_OK && k->notes && *k->notes->fields)
		return kvcm_text(k, "%s; ignored, for they are not known here: %s", done,
				 k->notes->fields);
	if (status == SKV_OK || k->message)
		return done;
	return kvcm_text(k, "%s%s", k->op->failed ? k->op->failed : "", kvcm_words(k, status));
}

/* Puts a new message into the field of `m`; NULL: no such field, or no memory. */
static ProtobufCMessage *make_in(ProtobufCMessage *m, const char *name, struct skv_arena *a)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);
	ProtobufCMessage *made = f ? skv_proto_make(f->descriptor, a) : NULL;

	if (made)
		memcpy((char *)m + f->offset, &made, sizeof made);
	return made;
}

static void set(ProtobufCMessage *m, const char *name, const void *value, size_t n)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);

	if (f)
		memcpy((char *)m + f->offset, value, n);
}

/* The headers of the three services have the same fields, except a few that only one of them
 * has. */
bool kvcm_put_header(struct kvcm_request *k, int code, const char *message)
{
	ProtobufCMessage *header = make_in(k->res, "header", &k->c->arena);
	ProtobufCMessage *status = header ? make_in(header, "status", &k->c->arena) : NULL;
	bool known = code != KVCM_META__ERROR_CODE__INSTANCE_NOT_EXIST ||
		     !(k->op->flags & KVCM_INSTANCE);
	struct timespec now;
	const char *id;

	if (!status)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	if (code == KVCM_META__ERROR_CODE__SERVER_NOT_LEADER)
		message = "Server is not leader";
	if (!known)
		message = kvcm_text(k, "get %s metrics collector failed", k->op->name);
	id = known ? kvcm_text(k, "%s_%lld%06ld", k->trace_id, (long long)now.tv_sec,
			       now.tv_nsec / 1000)
		   : "";
	set(status, "code", &code, sizeof code);
	set(status, "message", &message, sizeof message);
	set(header, "request_id", &id, sizeof id);
	return true;
}
