/*
 * written.h - looks whether what clients wrote arrived (written.c).
 */
#ifndef SKV_CORE_STORAGE_WRITTEN_H
#define SKV_CORE_STORAGE_WRITTEN_H

struct written;

struct written *written_create(void); /* NULL: no memory */
void written_destroy(struct written *w);

#endif
