/*
 * match_split.h - a match over instances that several managers own.
 */
#ifndef SKV_V1_MATCH_SPLIT_H
#define SKV_V1_MATCH_SPLIT_H

#include "v1.h"

/* The match of this request failed here with `rc`: SKV_PENDING if it is asked for one instance at a
 * time, and will end by r->done; else `rc`. */
int match_split(struct skv_request *r, int rc);

#endif
