/*
 * simulate.h - `slabkvd simulate`: what policies and capacities would have made of a trace of requests.
 *
 * Reads traces (skv/trace.h), or generates some, and prints hit rates; opens no store and no port.
 */
#ifndef SKV_SIMULATE_H
#define SKV_SIMULATE_H

/* argv[0] is "simulate". Writes to stdout and stderr. Exit status: 0 done; 1 a failure, or interrupted; 2 an
 * argument or a trace that is not valid. Once in a process: it takes SIGINT and SIGTERM. */
int skv_simulate_main(int argc, char **argv);

#endif
