/* shell.h - for tests: runs a shell command and waits for it. */
#ifndef SKV_TESTS_SHELL_H
#define SKV_TESTS_SHELL_H

/* /bin/sh -c command. Returns the status of waitpid(2), or -1. */
int test_shell(const char *command);

#endif
