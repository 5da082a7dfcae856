/* daemon.h - a real slabkvd process for a test: started, killed, started again on the same
 * store. */
#ifndef SKV_TEST_DAEMON_H
#define SKV_TEST_DAEMON_H

#include <sys/types.h>

#include <slabkv.h>

struct daemon {
	char dir[64];  /* store, data and log; removed by daemon_remove */
	char url[64];  /* the same after a restart */
	char root[96]; /* of the storage "default" */
	pid_t pid;
};

/* Makes the directory and starts the manager; returns when it is ready. Fails the test
 * otherwise. */
void daemon_start(struct daemon *d);
/* kill -9, then wait for the process. */
void daemon_kill(struct daemon *d);
/* Starts it again on the same store and port; does not wait until it is ready. */
void daemon_again(struct daemon *d);
/* Waits until `kv` finds it ready. */
void daemon_wait(struct slabkv *kv);
/* Stops it (SIGTERM, expects exit status 0) and removes the directory. */
void daemon_remove(struct daemon *d);

#endif
