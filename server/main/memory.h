/* memory.h - how much memory the manager may use, and how much it does. */
#ifndef SKV_MAIN_MEMORY_H
#define SKV_MAIN_MEMORY_H

#include <stdint.h>

#include <skv/params.h>

/* memory_max in bytes, or the least limit of the process's control groups; 0: there is none. Reads
 * files of the kernel. */
uint64_t memory_max(const struct skv_params *p);
/* Notes (skv_mem_note) what is resident now, and logs when that passes a level. One thread. */
void memory_look(uint64_t most);

#endif
