/*
 * reflect.c - grpc.reflection.v1alpha.ServerReflection: lists the services and their descriptors.
 *
 * So that grpcurl and its like need no .proto file. The descriptors are those that protoc made at
 * build time; they are small, so each question walks them. No state; any thread.
 */
#include "internal.h"

#include <string.h>

#include <skv/pb.h>

enum { /* fields of descriptor.proto */
       SET_FILE = 1,
       FILE_NAME = 1,
       FILE_PACKAGE = 2,
       FILE_MESSAGE = 4,
       FILE_ENUM = 5,
       FILE_SERVICE = 6,
       MESSAGE_NESTED = 3,
       MESSAGE_ENUM = 4,
       SERVICE_METHOD = 2,
       ANY_NAME = 1,
};
enum { /* fields of reflection.proto */
       ASK_HOST = 1,
       ASK_FILE = 3,
       ASK_SYMBOL = 4,
       ASK_EXTENSION = 5,
       ASK_NUMBERS = 6,
       ASK_SERVICES = 7,
       TELL_HOST = 1,
       TELL_REQUEST = 2,
       TELL_FILES = 4,
       TELL_SERVICES = 6,
       TELL_ERROR = 7,
};

/* The last field `number` of a message; n 0 if there is none. */
static struct pb_field get(const uint8_t *p, size_t n, uint32_t number)
{
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f, found = { 0 };

	while (pb_next(&r, &f))
		if (f.number == number && f.wire == 2)
			found = f;
	return found;
}

/* Returns the part of `name` after `at` and a dot, or NULL if `name` does not begin so; *n becomes
 * its length. An empty `at` (a file without package) is the beginning of everything. */
static const char *below(const char *name, size_t *n, const struct pb_field *at)
{
	if (at->n == 0)
		return name;
	if (*n <= at->n || memcmp(name, at->p, at->n) != 0 || name[at->n] != '.')
		return NULL;
	*n -= at->n + 1;
	return name + at->n + 1;
}

static bool equal(const char *name, size_t n, const struct pb_field *at)
{
	return n == at->n && memcmp(name, at->p, n) == 0;
}

/* Returns true if the message (or service, enum) declares the symbol. Nested ones are searched as
 * deep as the name goes. */
static bool declares(const struct pb_field *thing, uint32_t nested, uint32_t other,
		     const char *name, size_t n)
{
	struct pb_field own = get(thing->p, thing->n, ANY_NAME), f;
	struct skv_rd r = skv_rd_make(thing->p, thing->n);
	const char *rest;

	if (equal(name, n, &own))
		return true;
	rest = below(name, &n, &own);
	while (rest && pb_next(&r, &f))
		if (f.wire == 2 && ((nested && f.number == nested &&
				     declares(&f, MESSAGE_NESTED, MESSAGE_ENUM, rest, n)) ||
				    (f.number == other && declares(&f, 0, 0, rest, n))))
			return true;
	return false;
}

static bool file_declares(const struct pb_field *file, const char *name, size_t n)
{
	struct pb_field package = get(file->p, file->n, FILE_PACKAGE), f;
	struct skv_rd r = skv_rd_make(file->p, file->n);
	const char *rest = below(name, &n, &package);

	while (rest && pb_next(&r, &f)) {
		if (f.wire != 2)
			continue;
		if (f.number == FILE_MESSAGE && declares(&f, MESSAGE_NESTED, MESSAGE_ENUM, rest, n))
			return true;
		if (f.number == FILE_ENUM && declares(&f, 0, 0, rest, n))
			return true;
		if (f.number == FILE_SERVICE && declares(&f, 0, SERVICE_METHOD, rest, n))
			return true;
	}
	return false;
}

/* All files of a port, one after the other: the transport's own, then those of the APIs. */
struct walk {
	const struct skv_apis *apis;
	size_t set; /* 0: the transport's */
	struct skv_rd files;
};

static void walk_begin(struct walk *w, const struct skv_apis *apis)
{
	size_t n;
	const uint8_t *own = skv_grpc_protoset(&n);

	*w = (struct walk){ .apis = apis, .files = skv_rd_make(own, n) };
}

static bool walk_next(struct walk *w, struct pb_field *file)
{
	while (!pb_next(&w->files, file)) {
		const uint8_t *set;
		size_t n = 0;

		if (w->set == w->apis->n)
			return false;
		set = w->apis->v[w->set]->descriptors ? w->apis->v[w->set]->descriptors(&n) : NULL;
		w->files = skv_rd_make(set, n);
		w->set++;
	}
	return true;
}

/* Returns true if this port serves the method's service. The planes may leave out an API's
 * services. */
static bool is_served(const struct walk *w, const char *service, size_t n)
{
	const struct skv_api *api = w->set > 0 ? w->apis->v[w->set - 1] : NULL;

	for (size_t i = 0; api && i < api->n_routes; i++) {
		const char *path = api->routes[i].grpc;

		if (path && api->routes[i].planes & w->apis->planes &&
		    strncmp(path + 1, service, n) == 0 && path[1 + n] == '/')
			return true;
	}
	return !api;
}

/* Calls say() with each service's full name, put together in `name`; ends when it returns true. */
static bool each_service(const struct skv_apis *apis,
			 bool (*say)(void *ctx, const char *name, size_t n), void *ctx)
{
	struct pb_field file, f;
	struct walk w;

	walk_begin(&w, apis);
	while (walk_next(&w, &file)) {
		struct pb_field package = get(file.p, file.n, FILE_PACKAGE);
		struct skv_rd r = skv_rd_make(file.p, file.n);

		while (pb_next(&r, &f)) {
			struct pb_field own = f.number == FILE_SERVICE ? get(f.p, f.n, ANY_NAME)
									: (struct pb_field){ 0 };
			char name[256];

			if (own.n == 0 || package.n + own.n + 2 > sizeof name)
				continue;
			memcpy(name, package.p, package.n);
			name[package.n] = '.';
			memcpy(name + package.n + 1, own.p, own.n);
			if (is_served(&w, name, package.n + 1 + own.n) &&
			    say(ctx, name, package.n + 1 + own.n))
				return true;
		}
	}
	return false;
}

struct wanted {
	const char *name;
	size_t n;
};

static bool is_wanted(void *ctx, const char *name, size_t n)
{
	const struct wanted *w = ctx;

	return w->n == n && memcmp(w->name, name, n) == 0;
}

bool skv_grpc_service_known(const struct skv_apis *apis, const char *name, size_t n)
{
	struct wanted w = { name, n };

	return each_service(apis, is_wanted, &w);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool list_one(void *ctx, const char *name, size_t n)
{
	struct skv_buf one;

	skv_buf_init(&one);
	pb_put_bytes(&one, 1, name, n);
	pb_put_bytes(ctx, 1, one.data, one.len);
	skv_buf_destroy(&one);
	return false;
}

static void tell_services(const struct skv_apis *apis, struct skv_buf *out)
{
	struct skv_buf list;

	skv_buf_init(&list);
	each_service(apis, list_one, &list);
	pb_put_bytes(out, TELL_SERVICES, list.data, list.len);
	skv_buf_destroy(&list);
}

static void tell_error(struct skv_buf *out, enum grpc_code code, const char *message)
{
	struct skv_buf e;

	skv_buf_init(&e);
	pb_put_number(&e, 1, code);
	pb_put_bytes(&e, 2, message, strlen(message));
	pb_put_bytes(out, TELL_ERROR, e.data, e.len);
	skv_buf_destroy(&e);
}

/* Writes a file's descriptor; the client asks for its imports next. */
static void tell_file(const struct skv_apis *apis, struct skv_buf *out,
		      const struct pb_field *asked)
{
	struct pb_field file;
	struct skv_buf answer;
	struct walk w;

	walk_begin(&w, apis);
	while (walk_next(&w, &file)) {
		struct pb_field name = get(file.p, file.n, FILE_NAME);

		if (asked->number == ASK_FILE
			    ? !equal((const char *)asked->p, asked->n, &name)
			    : !file_declares(&file, (const char *)asked->p, asked->n))
			continue;
		skv_buf_init(&answer);
		pb_put_bytes(&answer, 1, file.p, file.n);
		pb_put_bytes(out, TELL_FILES, answer.data, answer.len);
		skv_buf_destroy(&answer);
		return;
	}
	tell_error(out, GRPC_NOT_FOUND,
		   asked->number == ASK_FILE ? "no such file" : "no such symbol");
}

static void on_message(struct grpc_stream *st, const uint8_t *p, size_t n)
{
	const struct skv_apis *apis = &st->loop->g->o.apis;
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f, asked = { 0 }, host = get(p, n, ASK_HOST);
	struct skv_buf out;

	while (pb_next(&r, &f))
		if (f.number >= ASK_FILE && f.number <= ASK_SERVICES && f.wire == 2)
			asked = f;
	if (r.failed) {
		skv_grpc_fail(st, GRPC_INVALID_ARGUMENT, SKV_E_INVALID,
			      "the message is not valid protobuf");
		return;
	}
	skv_buf_init(&out);
	pb_put_bytes(&out, TELL_HOST, host.p ? (const void *)host.p : "", host.n);
	pb_put_bytes(&out, TELL_REQUEST, p ? (const void *)p : "", n);
	if (asked.number == ASK_SERVICES)
		tell_services(apis, &out);
	else if (asked.number == ASK_FILE || asked.number == ASK_SYMBOL)
		tell_file(apis, &out, &asked);
	else
		tell_error(&out, asked.number ? GRPC_NOT_FOUND : GRPC_INVALID_ARGUMENT,
			   asked.number ? "there are no extensions" : "nothing is asked for");
	if (out.failed)
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_NOMEM, "out of memory");
	else
		skv_grpc_send(st, out.data, out.len);
	skv_buf_destroy(&out);
}

const struct grpc_method skv_grpc_reflect_method = {
	.path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	.message = on_message,
	.half_closed = skv_grpc_end,
};
