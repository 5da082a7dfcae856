/* finish.h - sessions ended by their clients: finish (all or some blocks succeeded) and abort. */
#ifndef SKV_CORE_OPS_FINISH_H
#define SKV_CORE_OPS_FINISH_H

#include <journal/change.h>

extern const struct change_ops finish_ops;

#endif
