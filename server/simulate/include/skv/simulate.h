/*
 * simulate.h - `slabkvd simulate`: hit rates of policies and capacities for a trace of requests.
 *
 * Reads traces (skv/trace.h) or generates them; opens no store and no port.
 */
#ifndef SKV_SIMULATE_H
#define SKV_SIMULATE_H

/* argv[0] is "simulate". Writes to stdout and stderr. Exit status: 0 done; 1 a failure, or
 * interrupted; 2 an invalid argument or trace. Once per process: it takes SIGINT and SIGTERM. */
int skv_simulate_main(int argc, char **argv);

#endif
