/*
 * calls.h - the hf3fs API's operations as calls, without a transport, over a core in manual mode.
 *
 * Jobs of workers run by hand, within the call that waits for them. One thread, one call at a time.
 */
#ifndef SKV_TESTS_PAGES_CALLS_H
#define SKV_TESTS_PAGES_CALLS_H

#include "core_env.h"
#include "hf3fs.h"

extern struct env env;
extern struct skv_api *api;
extern struct skv_service *service;
extern struct skv_request call;
extern unsigned status; /* of the newest answer */
extern const char *tokens;        /* file, "" = none; when the API is opened */
extern const char *authorization; /* header of calls, or NULL */

struct skv_hf3fs_api_options options(void); /* of open_all */
/* Setup and teardown of a test: core, API and service. */
int open_all(void **state);
int close_all(void **state);
void open_api(const struct skv_hf3fs_api_options *o);
void close_api(void);
/* The API is opened anew. */
void change(const struct skv_hf3fs_api_options *o);
void go_strict(void);

/* Runs the oldest job of the workers. */
bool run_job(void);
/* A POST (without a body: a GET), run to its answer. The text is valid until the next one. */
const char *ask_n(const char *path, const char *body, size_t n);
const char *ask(const char *path, const char *body);
/* The answer is this; has this in it. */
void expect(const char *path, const char *body, unsigned code, const char *answer);
void expect_in(const char *path, const char *body, unsigned code, const char *part);
uint64_t counted(enum hf3fs_counter which);

#endif
