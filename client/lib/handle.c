/*
 * handle.c - entry checks of every public function, and disabling of broken handles.
 *
 * This file defines the library's skv_check_failed: a broken invariant never ends the process of
 * the engine that has loaded the library (docs/decisions/0030). A failed check breaks the handle
 * that this thread works for, or, if that is unknown (pools have no handle), all handles.
 *
 * State: a thread's handle, the trace of its caller, its time limit, and the end of its operation;
 * whether all handles are broken. Any thread, whatever locks it holds.
 */
#include "client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/trace_context.h>

static _Thread_local struct slabkv *current;
static _Thread_local char trace[SKV_TRACE_SIZE];
static _Thread_local uint32_t try_for_ms;
static _Thread_local uint64_t ends_us; /* 0: never */
static atomic_bool all_broken;

void (*skv_check_hook)(const char *expr, const char *file, int line);

int slabkv_trace(const char *traceparent)
{
	char given[SKV_TRACE_SIZE] = "";

	if (traceparent && !skv_trace_take(traceparent, strlen(traceparent), given))
		return SLABKV_E_INVALID;
	memcpy(trace, given, sizeof trace);
	return SLABKV_OK;
}

const char *skv_trace_of_thread(void) { return trace; }

void slabkv_try_for(uint32_t ms) { try_for_ms = ms; }

uint32_t skv_take_try_for(void)
{
	const uint32_t ms = try_for_ms;

	try_for_ms = 0;
	return ms;
}

void skv_deadline_of_thread(uint32_t ms) { ends_us = ms ? skv_now_us() + ms * 1000ull : 0; }

uint64_t skv_thread_ends_us(void) { return ends_us ? ends_us : UINT64_MAX; }

uint64_t skv_share_ends_ms(const struct slabkv *kv, uint32_t share)
{
	const uint64_t now = skv_now_us(), ends = skv_thread_ends_us();

	SKV_CHECK(share > 0);
	if (ends == UINT64_MAX)
		return UINT64_MAX;
	return skv_now_ms(kv->clock) + (ends > now ? (ends - now) / 1000 / share : 0);
}

void skv_handle_of_thread(struct slabkv *kv) { current = kv; }

bool skv_check_failed(const char *expr, const char *file, int line)
{
	if (skv_check_hook)
		skv_check_hook(expr, file, line);
	if (current)
		atomic_store(&current->broken, true);
	else
		atomic_store(&all_broken, true);
	skv_log(SKV_LOG_ERROR, "client", "%s:%d: assertion failed: %s; %s", file, line, expr,
		current ? "the handle is out of use"
			: "all handles of this process are out of use");
	return false;
}

bool skv_is_broken(const struct slabkv *kv, struct skv_error *err)
{
	if (!atomic_load_explicit(&kv->broken, memory_order_relaxed) &&
	    !atomic_load_explicit(&all_broken, memory_order_relaxed))
		return false;
	skv_fail(
		err, SKV_E_INTERNAL, "handle",
		"libslabkv found an internal error (see the log): close this handle "
		"and open another");
	return true;
}

bool skv_is_foreign(pid_t pid, struct skv_error *err)
{
	if (pid == getpid())
		return false;
	skv_fail(err, SKV_E_INVALID, "handle",
		 "belongs to process %d, not to this one, its child: open one after the fork",
		 (int)pid);
	return true;
}

int skv_size_refuse(struct skv_error *err, const char *what)
{
	return skv_fail(err, SKV_E_INVALID, "size",
			"the struct's `size` is too small: set it to sizeof, or begin with %s",
			what);
}

void skv_handle_keep(struct slabkv *kv) { SKV_CHECK(atomic_fetch_add(&kv->users, 1) > 0); }

void skv_handle_drop(struct slabkv *kv)
{
	if (atomic_fetch_sub(&kv->users, 1) == 1)
		kv->destroy(kv);
}

int skv_enter(struct slabkv *kv, struct skv_error *err)
{
	if (!kv)
		return skv_fail(err, SKV_E_INVALID, "handle", "there is none");
	if (skv_is_foreign(kv->pid, err))
		return SKV_E_INVALID;
	skv_handle_of_thread(kv);
	SKV_CHECK(!atomic_load_explicit(&kv->closing, memory_order_relaxed) ||
		  kv->async); /* slabkv_close is the last use */
	return skv_is_broken(kv, err) ? SKV_E_INTERNAL : SKV_OK;
}
