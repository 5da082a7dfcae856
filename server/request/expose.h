/* expose.h - a part of /metrics. */
#ifndef SKV_EXPOSE_H
#define SKV_EXPOSE_H

#include <skv/bytes.h>

/* process_*: CPU time, memory, descriptors. Any thread. */
void skv_process_write(struct skv_buf *out);

#endif
