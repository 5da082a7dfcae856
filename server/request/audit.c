/*
 * audit.c - writes the audit log. See audit.h.
 *
 * A line is one write(2) to a descriptor that never changes, by the thread that answers; it is not
 * synced. The lock is held for counting only. A line that cannot be written is counted, and the
 * first one in a row is logged: no call fails because of it.
 */
#include <skv/audit.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/request.h>

static int open_file(const struct skv_audit *a, int *fd, struct skv_error *err)
{
	*fd = open(a->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (*fd >= 0)
		return SKV_OK;
	return skv_fail(err, SKV_E_IO, "audit_file", "cannot open the audit log %s: %s", a->path,
			strerror(errno));
}

int skv_audit_open(struct skv_audit *a, const char *path, struct skv_error *err)
{
	int rc;

	memset(a, 0, sizeof *a);
	a->fd = -1;
	skv_mutex_init(&a->lock);
	if (!path || !*path)
		return SKV_OK;
	a->path = skv_strdup(path);
	rc = a->path ? open_file(a, &a->fd, err)
		     : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc != SKV_OK)
		skv_audit_close(a);
	return rc;
}

void skv_audit_close(struct skv_audit *a)
{
	if (a->fd >= 0)
		close(a->fd);
	skv_free(a->path);
	skv_mutex_destroy(&a->lock);
}

int skv_audit_reopen(struct skv_audit *a, struct skv_error *err)
{
	int fresh, rc;

	if (!a->path)
		return SKV_OK;
	assert(a->fd >= 0);
	rc = open_file(a, &fresh, err);
	if (rc != SKV_OK)
		return rc;
	dup3(fresh, a->fd, O_CLOEXEC);
	close(fresh);
	return SKV_OK;
}

/* Returns true if the line could be written. */
static bool put(struct skv_audit *a, const struct skv_log_field *fields, size_t n)
{
	struct skv_buf line = { 0 };
	bool ok;

	assert(a->fd >= 0);
	skv_log_json(&line, fields, n);
	ok = !line.failed && write(a->fd, line.data, line.len) == (ssize_t)line.len;
	skv_buf_destroy(&line);
	if (ok)
		atomic_store(&a->failing, false);
	else if (!atomic_exchange(&a->failing, true))
		skv_log(SKV_LOG_ERROR, "audit", "cannot write the audit log %s: %s", a->path,
			strerror(errno));
	return ok;
}

static bool is_refused(int status, const struct skv_request *c)
{
	return status == SKV_E_UNAUTHENTICATED || status == SKV_E_FORBIDDEN || c->guarded;
}

bool skv_audit_wants(const struct skv_request *c, int status)
{
	const struct skv_route *r = c->route;

	if (!c->s->audit.path)
		return false;
	if (is_refused(status, c) || c->alone) /* the calling manager audits the act itself */
		return is_refused(status, c);
	if (c->created)
		return true;
	return r && r->role == ROLE_ADMIN && !(r->method && strcmp(r->method, "GET") == 0);
}

/* Of refused calls, is this one too many? Else *skipped is how many were, since the last line. */
static bool skip(struct skv_audit *a, bool refused, uint64_t *skipped)
{
	const uint64_t now = skv_now_ms(&skv_clock_system) / 1000;
	bool too_many;

	skv_mutex_lock(&a->lock);
	if (a->second != now)
		a->refused = 0;
	a->second = now;
	too_many = refused && a->refused >= SKV_AUDIT_REFUSED;
	a->refused += refused && !too_many;
	*skipped = too_many ? 0 : a->skipped;
	a->skipped = too_many ? a->skipped + 1 : 0;
	assert(a->refused <= SKV_AUDIT_REFUSED);
	skv_mutex_unlock(&a->lock);
	return too_many;
}

void skv_audit_call(struct skv_request *c, int status, const char *from)
{
	const bool failed = status != SKV_OK;
	uint64_t skipped;

	assert(c->s->audit.path);
	if (skip(&c->s->audit, is_refused(status, c), &skipped))
		return;

	struct skv_trace_ids ids;
	struct skv_log_field fields[12 + SKV_TRACE_FIELDS] = {
		SKV_TEXT("who", *c->caller.name ? c->caller.name : "-"),
		SKV_TEXT("tenant", c->caller.tenant),
		SKV_TEXT("role", skv_role_name(c->caller.role)),
		SKV_TEXT("from", from),
		SKV_TEXT("api", c->api ? c->api->name : ""),
		SKV_TEXT("what", c->route ? c->route->name : ""),
		SKV_TEXT("on", *c->param[0].value ? c->param[0].value : c->path ? c->path : ""),
		SKV_TEXT("result", failed ? skv_status_name(status) : "ok"),
		SKV_TEXT("id", c->id),
	};
	size_t n = 9;

	if (failed)
		fields[n++] = (struct skv_log_field)SKV_TEXT("cause", c->err.message);
	if (skipped)
		fields[n++] = (struct skv_log_field)SKV_NUMBER("skipped", skipped);
	n += skv_trace_fields(c->trace, &ids, fields + n);
	assert(n <= sizeof fields / sizeof fields[0]);
	if (!put(&c->s->audit, fields, n))
		skv_metrics_add(&c->s->metrics, METRIC_audit_failures, 1);
}

void skv_audit_act(struct skv_audit *a, const char *what, const char *on, const char *result)
{
	const struct skv_log_field fields[] = {
		SKV_TEXT("who", "slabkvd"),
		SKV_TEXT("what", what),
		SKV_TEXT("on", on),
		SKV_TEXT("result", result),
	};

	if (a->path)
		put(a, fields, sizeof fields / sizeof fields[0]);
}
