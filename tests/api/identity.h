/*
 * identity.h - what holds for every document that the codec takes (target api_identity).
 */
#ifndef TESTS_API_IDENTITY_H
#define TESTS_API_IDENTITY_H

#include "messages.h"

/* Reads text,n as messages[m]. When that goes well, what is written of it is read again and written
 * the same, and is the same after a way through protobuf; else nothing was written, and the error
 * names a status. Aborts, telling the document, when it is not so. Returns the status. */
int check_identity(size_t m, const char *text, size_t n);

#endif
