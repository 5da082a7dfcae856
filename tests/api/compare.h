/*
 * compare.h - one document through the codec and through the reference (target api_reference).
 */
#ifndef TESTS_API_COMPARE_H
#define TESTS_API_COMPARE_H

#include "messages.h"

/* Reads (and writes) text,n as messages[m] both ways; aborts, telling the document, when status, field,
 * message or the written form differ. Returns the status. */
int compare_codecs(size_t m, const char *text, size_t n);

#endif
