/*
 * identity.h - properties of every document that the codec takes (target api_identity).
 */
#ifndef TESTS_API_IDENTITY_H
#define TESTS_API_IDENTITY_H

#include "messages.h"

/* Reads text,n as messages[m]. When that goes well, the protobuf that is written of it is read and
 * written the same; else nothing was written, and the error names a status. Aborts, telling the
 * document, when it is not so. Returns the status; of an answer, which nobody reads in JSON,
 * SKV_E_UNSUPPORTED. */
int check_identity(size_t m, const char *text, size_t n);

#endif
