/*
 * documents.h - objects as stored: with the fields that the tables of api/v1 define for clients, so
 * that a new field needs no change here. Storages, groups and instances are in protobuf, without
 * their names; tenants, whose documents are texts, in JSON.
 *
 * read_*: texts are in `a`; *out changes on success only. Values are not validated again, except
 * those of tenants. SKV_E_NOMEM; any other error: the document is not of this type. No state; any
 * thread.
 */
#ifndef SKV_DOCUMENTS_H
#define SKV_DOCUMENTS_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/ops.h>
#include <skv/status.h>

/* Appends the document of a storage, and reads it. */
void skv_document_write_storage(struct skv_buf *out, const struct skv_storage_spec *v);
int skv_document_read_storage(struct skv_arena *a, const void *bytes, size_t n,
			      struct skv_storage_spec *out);
/* The same of a group, */
void skv_document_write_group(struct skv_buf *out, const struct skv_group_spec *v);
int skv_document_read_group(struct skv_arena *a, const void *bytes, size_t n,
			    struct skv_group_spec *out);
/* of an instance, whose tenant is not in it, */
void skv_document_write_instance(struct skv_buf *out, const struct skv_instance_spec *v);
int skv_document_read_instance(struct skv_arena *a, const void *bytes, size_t n,
			       struct skv_instance_spec *out);
/* and of a tenant: a text with its NUL. */
void skv_document_write_tenant(struct skv_buf *out, const struct skv_tenant_spec *v);
int skv_document_read_tenant(struct skv_arena *a, const char *text, struct skv_tenant_spec *out,
			     struct skv_error *err);

#endif
