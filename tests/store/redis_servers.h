/*
 * redis_servers.h - real Redis servers for tests: a primary and its replicas, or a cluster, on
 * ports of their own, in a temporary directory. They end with the process that started them.
 */
#ifndef REDIS_SERVERS_H
#define REDIS_SERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVERS_MAX 8

struct servers {
	char dir[64];
	int n;
	pid_t pid[SERVERS_MAX];
	uint16_t port[SERVERS_MAX];
	uint16_t bus[SERVERS_MAX]; /* of a cluster */
	uint16_t tls[SERVERS_MAX]; /* TLS ports, beside the plain ones; 0: none */
};

/* False, with a sentence printed: there is no Redis on this machine (Debian: redis-tools). */
bool servers_available(void);
/* Servers that are started from now on have TLS ports too, speak TLS among themselves, and ask
 * clients for certificates; servers_url names these ports, and files of `dir`: ca.pem, client.pem,
 * client.key, and other.pem of a CA that signed nothing here. Their certificate is for 127.0.0.1
 * and redis.example. */
void servers_use_tls(bool yes);
/* Server 0 is the primary, the others are its replicas, up to date. Fails the test if it cannot.
 * `more`: further words of the command line, NULL-terminated, or NULL. */
void servers_start(struct servers *s, int replicas, const char *const *more);
/* Three masters (0..2) with a replica each (3..5), every slot covered. A master that is silent for
 * node_timeout_ms is replaced. */
void servers_start_cluster(struct servers *s, unsigned int node_timeout_ms);
/* Starts server i again, on its port and with what it saved. */
void servers_again(struct servers *s, int i, const char *const *more);
void servers_stop(struct servers *s);
/* SIGKILL waits for its end. */
void servers_signal(struct servers *s, int i, int number);
/* "redis://127.0.0.1:PORT,.../prefix" of all, or rediss:// with files. */
void servers_url(const struct servers *s, const char *prefix, char *out, size_t size);
/* A command to server i; its answer as text, valid until the next call: an integer in decimal, an
 * array's elements joined by spaces, an error with "-" before it. */
const char *servers_ask(const struct servers *s, int i, const char *command, ...)
	__attribute__((format(printf, 3, 4)));
/* The server that says it is a primary (of a cluster: the first that has this
 * key's slot); -1: none does. */
int servers_primary(const struct servers *s, const char *key);

#endif
