/*
 * etcd_proxy.h - for tests: a TCP proxy before an etcd server that loses answers or requests, or
 * holds what clients say. A thread of its own; the rest may be called from any thread.
 */
#ifndef SKV_TESTS_ETCD_PROXY_H
#define SKV_TESTS_ETCD_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum etcd_proxy_rule {
	ETCD_PROXY_PASS,
	ETCD_PROXY_LOSE_ANSWER,  /* a request with the text is delivered; its answer is not */
	ETCD_PROXY_LOSE_REQUEST, /* the request is not delivered, and the connection ends */
	ETCD_PROXY_HOLD,         /* nothing that clients say is delivered until the rule changes */
};

struct etcd_proxy {
	int listener;
	uint16_t port, to;
	_Atomic int rule;   /* enum etcd_proxy_rule */
	_Atomic int times;  /* of the two that lose; then it passes */
	_Atomic(const char *) text;
	_Atomic uint64_t asked; /* bytes that clients have said */
	_Atomic uint64_t cuts;  /* connections that a rule has ended */
	_Atomic bool held;      /* something waits for the end of a hold */
	_Atomic bool stop;
	pthread_t thread;
};

void etcd_proxy_start(struct etcd_proxy *p, uint16_t to);
void etcd_proxy_lose(struct etcd_proxy *p, enum etcd_proxy_rule rule, const char *text, int times);
void etcd_proxy_stop(struct etcd_proxy *p);

#endif
