/* protosets.h - descriptors of KVCM's services, generated from the .proto files at build time. */
#ifndef KVCM_PROTOSETS_H
#define KVCM_PROTOSETS_H

#include <stddef.h>
#include <stdint.h>

/* A FileDescriptorSet. */
const uint8_t *kvcm_protoset(size_t *n);

#endif
