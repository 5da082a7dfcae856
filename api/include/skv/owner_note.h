/*
 * owner_note.h - the header Slabkv-Owner: the owner of the partition that a call was for. Managers
 * send it to clients that find the owner themselves (Slabkv-Route: direct).
 *
 *	Slabkv-Owner: N EPOCH    the owner itself, with its answer: this manager owns partition N,
 *	                         for the EPOCHth time that it has an owner; a greater one is newer
 *	Slabkv-Owner: N 0 URL    another manager, with not_owner: the owner's address, as far as it
 *	                         knows. It may be out of date
 */
#ifndef SKV_OWNER_NOTE_H
#define SKV_OWNER_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#define SKV_OWNER_NOTE "Slabkv-Owner"
#define SKV_NOTE_URL 300 /* bytes, NUL included */
#define SKV_NOTE_MAX 340 /* of a whole one, NUL included */
#define SKV_NOTE_PARTITIONS 256u /* numbers are below: a session's id has one byte for it */

struct skv_owner_note {
	uint32_t partition;
	uint64_t epoch;         /* 0: another manager reports the owner */
	char url[SKV_NOTE_URL]; /* "http[s]://host:port" then, else "" */
};

/* The header's value. */
void skv_owner_note_write(const struct skv_owner_note *n, char out[SKV_NOTE_MAX]);
/* Returns false, with *out undefined, for an invalid note. In an owner's note, text after the epoch
 * is skipped. */
bool skv_owner_note_read(const char *text, struct skv_owner_note *out);

#endif
