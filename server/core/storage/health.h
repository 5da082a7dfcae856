/* health.h - where a storage's threads note how its file system answers their calls. */
#ifndef SKV_CORE_STORAGE_HEALTH_H
#define SKV_CORE_STORAGE_HEALTH_H

#include <stdbool.h>

#include <skv/log.h>
#include <model/device.h>

/* A call begins. Of calls that run side by side the oldest counts. */
void health_begin(struct device *d, enum call_kind kind);
/* Ends a call that has returned. answers: the file system did what was asked; waits: other calls of
 * this kind have not returned. */
void health_end(struct device *d, enum call_kind kind, bool answers, bool waits);
/* Sets the health known from now on. `problem` is for the log: "" = the status' text, NULL =
 * none. */
void health_note(struct device *d, enum call_kind kind, int rc, const char *problem);

struct health_news {
	enum skv_log_level level;
	char text[2 * SKV_MESSAGE_MAX];
};
/* Counts what has changed since the last call. True: it is to be logged. */
bool health_watch(struct device *d, struct health_news *n);

#endif
