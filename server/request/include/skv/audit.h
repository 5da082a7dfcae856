/*
 * audit.h - the audit log: one JSON line for each administrative act and each refused access.
 *
 * Acts are calls that need the role admin and change something, instances that a call made, and
 * what the program itself does (start, reload, end). Refused are calls without a valid token, with
 * too low a role, or of an address that tried too many tokens; of these at most SKV_AUDIT_REFUSED a
 * second are written, and the next line has the number of omitted ones ("skipped").
 *
 * Fields: time, who (name of the token, "-" without one), tenant, role, from (address),
 * api, what (operation), on (its object or path), result ("ok" or an error code), id (of the
 * request), cause (of an error).
 */
#ifndef SKV_AUDIT_H
#define SKV_AUDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/lock.h>
#include <skv/status.h>

#define SKV_AUDIT_REFUSED 50u

struct skv_request;

struct skv_audit {
	char *path; /* NULL: none is written */
	int fd;     /* for ever the same: reopening replaces the file behind it */
	atomic_bool failing;
	struct skv_mutex lock;
	uint64_t second;  /* protected by lock, as the next two */
	uint32_t refused; /* lines in it */
	uint64_t skipped; /* since the last one */
};

/* `path` "" or NULL: none. Appends to the file, made with mode 0600. SKV_E_IO. */
int skv_audit_open(struct skv_audit *a, const char *path, struct skv_error *err);
void skv_audit_close(struct skv_audit *a);
/* Opens the file of that name anew, after a rotation; on failure the old one goes on. One thread
 * at a time. */
int skv_audit_reopen(struct skv_audit *a, struct skv_error *err);

/* Returns true if this answered call must be written. Any thread; so the next two. */
bool skv_audit_wants(const struct skv_request *c, int status);
/* `from`: the client's address as text. */
void skv_audit_call(struct skv_request *c, int status, const char *from);
/* An act of the program itself: "start", ... */
void skv_audit_act(struct skv_audit *a, const char *what, const char *on, const char *result);

#endif
