/*
 * written.h - checks whether bytes that clients wrote have arrived (written.c).
 */
#ifndef SKV_CORE_STORAGE_WRITTEN_H
#define SKV_CORE_STORAGE_WRITTEN_H

struct written;

struct written *written_create(void); /* NULL: no memory */
void written_destroy(struct written *w);

#endif
