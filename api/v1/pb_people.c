/*
 * pb_people.c - one block and the error answer in protobuf, through protobuf-c. No state; any thread.
 */
#include "pb_gen.h"

/* ---- one block ---------------------------------------------------------------------------------- */

static void init_spec(void *m) { slabkv__v1__block_spec__init(m); }
static void init_location(void *m) { slabkv__v1__location__init(m); }
static void init_file(void *m) { slabkv__v1__file__init(m); }

static ProtobufCBinaryData make_key(struct skv_pbmake *make, struct skv_key key)
{
	uint8_t *p = skv_pb_make(make, 1, 16);

	for (unsigned i = 0; p && i < 8; i++) {
		p[i] = (uint8_t)(key.hi >> (56 - 8 * i));
		p[8 + i] = (uint8_t)(key.lo >> (56 - 8 * i));
	}
	return (ProtobufCBinaryData){ p ? 16 : 0, p };
}

static void fill_location(const struct skv_location *from, Slabkv__V1__Location *m)
{
	m->file = from->file;
	m->offset = from->offset;
	m->length = from->length;
	m->generation = from->generation;
	if (!from->has_checksum)
		return;
	m->presence_of_checksum_case = SLABKV__V1__LOCATION__PRESENCE_OF_CHECKSUM_CHECKSUM;
	m->checksum = from->checksum;
}

static void make_specs(struct skv_pbmake *make, const struct skv_block_view *v,
		       Slabkv__V1__BlockView *m)
{
	Slabkv__V1__Location **loc;

	m->n_specs = v->n_specs;
	m->specs = (void *)skv_pb_make_messages(make, v->n_specs, sizeof **m->specs, init_spec);
	loc = (void *)skv_pb_make_messages(make, v->n_specs, sizeof **loc, init_location);
	for (uint32_t i = 0; m->specs && loc && i < v->n_specs; i++) {
		m->specs[i]->name = skv_pb_make_text(make, v->specs[i]);
		m->specs[i]->state = skv_pb_make_text(make, v->state[i]);
		if (v->loc[i].length == 0)
			continue;
		fill_location(&v->loc[i], loc[i]);
		m->specs[i]->location = loc[i];
	}
}

static void make_files(struct skv_pbmake *make, const struct skv_files *files,
		       Slabkv__V1__BlockView *m)
{
	m->n_files = files->n;
	m->files = (void *)skv_pb_make_messages(make, files->n, sizeof **m->files, init_file);
	for (uint32_t i = 0; m->files && i < files->n; i++) {
		m->files[i]->type = skv_pb_make_text(make, files->v[i].type);
		m->files[i]->storage = skv_pb_make_text(make, files->v[i].storage);
		m->files[i]->uuid = skv_pb_make_text(make, files->v[i].uuid);
		m->files[i]->path = skv_pb_make_text(make, files->v[i].path);
	}
}

void skv_pb_write_block_view(struct skv_buf *out, const struct skv_block_view *v)
{
	struct skv_pbmake make;
	Slabkv__V1__BlockView m;

	skv_pb_make_begin(&make);
	slabkv__v1__block_view__init(&m);
	m.key = make_key(&make, v->key);
	if (v->has_parent)
		m.parent = make_key(&make, v->parent);
	m.children = v->children;
	m.created_ms = v->created_ms;
	m.idle_ms = v->idle_ms;
	m.lease_ms = v->lease_ms;
	make_specs(&make, v, &m);
	make_files(&make, &v->files, &m);
	skv_pb_pack(&make, out, &m);
}

/* ---- errors ------------------------------------------------------------------------------------- */

void skv_pb_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id)
{
	struct skv_pbmake make;
	Slabkv__V1__Error m;

	skv_pb_make_begin(&make);
	slabkv__v1__error__init(&m);
	m.code = skv_pb_make_text(&make, skv_status_name(err->status));
	m.message = skv_pb_make_text(&make, err->message[0] ? err->message
							    : skv_status_text(err->status));
	m.field = skv_pb_make_text(&make, err->field);
	m.request_id = skv_pb_make_text(&make, request_id ? request_id : "");
	skv_pb_pack(&make, out, &m);
}

int skv_pb_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out)
{
	struct skv_pbdoc d = skv_pb_open(in, NULL);
	Slabkv__V1__Error *m = skv_pb_unpack(&d, &slabkv__v1__error__descriptor, text, n);
	int status;

	if (!m || !*m->code)
		return skv_fail(out, m ? SKV_E_INVALID : d.status, NULL,
				"the answer is no error of this API");
	status = skv_status_from_name(m->code);
	/* An error whose code says "ok" is a bug of who sent it, never a success. */
	return skv_fail(out, status == SKV_OK ? SKV_E_INTERNAL : status, m->field, "%s", m->message);
}
