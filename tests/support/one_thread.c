/*
 * one_thread.c - takes the place of pthread_create in the tests that have the label one_thread,
 * which ThreadSanitizer does not run: there is no second thread, and this holds it. Stateless.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	(void)thread;
	(void)attr;
	(void)run;
	(void)arg;
	fprintf(stderr, "a test with the label one_thread makes a thread: take the label away, or "
			"ThreadSanitizer does not see it\n");
	abort();
}
