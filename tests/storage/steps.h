/*
 * steps.h - counts the system calls that change or open something, and fails or kills at the n-th.
 * The linker puts these functions between the storage and the C library (--wrap). One thread.
 */
#ifndef STEPS_H
#define STEPS_H

/* The n-th step from now on fails with `error`; error 0: the process dies there, with status 99. */
void steps_fail_at(unsigned n, int error);
/* Every call of fallocate fails with this from now on; 0 = none. */
void steps_no_fallocate(int error);
/* Called right before the next rename, once: what another process does at that moment. */
void steps_before_rename(void (*fn)(void *ctx), void *ctx);
/* Steps since the last steps_fail_at, which is switched off. */
unsigned steps_stop(void);
/* The steps since the last steps_fail_at, a letter each: o openat, a fallocate, w pwrite, s fsync
 * of a file, d fsync of a directory, r renameat2, l flock. The newest 255. */
const char *steps_trace(void);

#endif
