/*
 * pb_people.c - one block and the error answer in protobuf, through protobuf-c. No state; any thread.
 */
#include "pb_gen.h"

/* ---- one block ---------------------------------------------------------------------------------- */

static void init_spec(void *m) { kvblock__v1__block_spec__init(m); }
static void init_location(void *m) { kvblock__v1__location__init(m); }
static void init_file(void *m) { kvblock__v1__file__init(m); }

static ProtobufCBinaryData make_key(struct kvb_pbmake *make, struct kvb_key key)
{
	uint8_t *p = kvb_pb_make(make, 1, 16);

	for (unsigned i = 0; p && i < 8; i++) {
		p[i] = (uint8_t)(key.hi >> (56 - 8 * i));
		p[8 + i] = (uint8_t)(key.lo >> (56 - 8 * i));
	}
	return (ProtobufCBinaryData){ p ? 16 : 0, p };
}

static void fill_location(const struct kvb_location *from, Kvblock__V1__Location *m)
{
	m->file = from->file;
	m->offset = from->offset;
	m->length = from->length;
	m->generation = from->generation;
	if (!from->has_checksum)
		return;
	m->presence_of_checksum_case = KVBLOCK__V1__LOCATION__PRESENCE_OF_CHECKSUM_CHECKSUM;
	m->checksum = from->checksum;
}

static void make_specs(struct kvb_pbmake *make, const struct kvb_block_view *v,
		       Kvblock__V1__BlockView *m)
{
	Kvblock__V1__Location **loc;

	m->n_specs = v->n_specs;
	m->specs = (void *)kvb_pb_make_messages(make, v->n_specs, sizeof **m->specs, init_spec);
	loc = (void *)kvb_pb_make_messages(make, v->n_specs, sizeof **loc, init_location);
	for (uint32_t i = 0; m->specs && loc && i < v->n_specs; i++) {
		m->specs[i]->name = kvb_pb_make_text(make, v->specs[i]);
		m->specs[i]->state = kvb_pb_make_text(make, v->state[i]);
		if (v->loc[i].length == 0)
			continue;
		fill_location(&v->loc[i], loc[i]);
		m->specs[i]->location = loc[i];
	}
}

static void make_files(struct kvb_pbmake *make, const struct kvb_files *files,
		       Kvblock__V1__BlockView *m)
{
	m->n_files = files->n;
	m->files = (void *)kvb_pb_make_messages(make, files->n, sizeof **m->files, init_file);
	for (uint32_t i = 0; m->files && i < files->n; i++) {
		m->files[i]->type = kvb_pb_make_text(make, files->v[i].type);
		m->files[i]->storage = kvb_pb_make_text(make, files->v[i].storage);
		m->files[i]->uuid = kvb_pb_make_text(make, files->v[i].uuid);
		m->files[i]->path = kvb_pb_make_text(make, files->v[i].path);
	}
}

void kvb_pb_write_block_view(struct kvb_buf *out, const struct kvb_block_view *v)
{
	struct kvb_pbmake make;
	Kvblock__V1__BlockView m;

	kvb_pb_make_begin(&make);
	kvblock__v1__block_view__init(&m);
	m.key = make_key(&make, v->key);
	if (v->has_parent)
		m.parent = make_key(&make, v->parent);
	m.children = v->children;
	m.created_ms = v->created_ms;
	m.idle_ms = v->idle_ms;
	m.lease_ms = v->lease_ms;
	make_specs(&make, v, &m);
	make_files(&make, &v->files, &m);
	kvb_pb_pack(&make, out, &m);
}

/* ---- errors ------------------------------------------------------------------------------------- */

void kvb_pb_write_error(struct kvb_buf *out, const struct kvb_error *err, const char *request_id)
{
	struct kvb_pbmake make;
	Kvblock__V1__Error m;

	kvb_pb_make_begin(&make);
	kvblock__v1__error__init(&m);
	m.code = kvb_pb_make_text(&make, kvb_status_name(err->status));
	m.message = kvb_pb_make_text(&make, err->message[0] ? err->message
							    : kvb_status_text(err->status));
	m.field = kvb_pb_make_text(&make, err->field);
	m.request_id = kvb_pb_make_text(&make, request_id ? request_id : "");
	kvb_pb_pack(&make, out, &m);
}

int kvb_pb_read_error(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_error *out)
{
	struct kvb_pbdoc d = kvb_pb_open(in, NULL);
	Kvblock__V1__Error *m = kvb_pb_unpack(&d, &kvblock__v1__error__descriptor, text, n);
	int status;

	if (!m || !*m->code)
		return kvb_fail(out, m ? KVB_E_INVALID : d.status, NULL,
				"the answer is no error of this API");
	status = kvb_status_from_name(m->code);
	/* An error whose code says "ok" is a bug of who sent it, never a success. */
	return kvb_fail(out, status == KVB_OK ? KVB_E_INTERNAL : status, m->field, "%s", m->message);
}
