/* model_internal.h - shared by the files of the model. */
#ifndef KVCM_MODEL_INTERNAL_H
#define KVCM_MODEL_INTERNAL_H

#include "model.h"

/* The message as JSON text in the arena; NULL: out of memory. */
const char *kvcm_model_text(const ProtobufCMessage *m, struct skv_arena *a);
/* A message from `extra`; NULL when it is empty or of somebody else. */
ProtobufCMessage *kvcm_model_message(const ProtobufCMessageDescriptor *d, const char *extra,
				     struct skv_arena *a);
/* The same fields in another message type. NULL: out of memory. */
ProtobufCMessage *kvcm_model_convert(const ProtobufCMessage *m, const ProtobufCMessageDescriptor *d,
				     struct skv_arena *a);
int kvcm_model_nomem(struct skv_error *err);
/* SKV_OK, or SKV_E_INVALID for a text that is no name of ours. */
int kvcm_model_name(const char *name, const char *field, struct skv_error *err);
/* An instance_id: may be a model's name with a slash. */
int kvcm_model_id(const char *id, struct skv_error *err);

#endif
