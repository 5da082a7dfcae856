/*
 * model_instance.c - KVCM's registrations as instances of the core, and their comparison.
 *
 * The core keeps specs, block size and group; the rest of the InstanceInfo
 * lies in `extra`. No state.
 */
#include "model_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef KvcmMeta__RegisterInstanceRequest registration;
typedef KvcmMeta__InstanceInfo info;
typedef KvcmMeta__LocationSpecGroup spec_group;

#define QUOTA_GROUP "default_quota_group"

static const char *spec_name(const registration *m, size_t i)
{
	return m->location_spec_infos[i]->name;
}

static int check_specs(const registration *m, struct skv_error *err)
{
	static const char field[] = "location_spec_infos";

	if (m->n_location_spec_infos == 0 || m->n_location_spec_infos > SKV_MAX_SPECS)
		return skv_fail(err, SKV_E_INVALID, field, "%s: 1 to %u specs", field,
				SKV_MAX_SPECS);
	for (size_t i = 0; i < m->n_location_spec_infos; i++) {
		int64_t size = m->location_spec_infos[i]->size;
		int rc = kvcm_model_name(spec_name(m, i), field, err);

		if (rc != SKV_OK)
			return rc;
		if (size < (int64_t)SKV_MIN_SPEC_SIZE || size > (int64_t)SKV_MAX_SPEC_SIZE)
			return skv_fail(err, SKV_E_INVALID, field,
					"%s: the size of '%s' is not 1 to 4 GiB", field,
					spec_name(m, i));
		for (size_t k = 0; k < i; k++)
			if (strcmp(spec_name(m, i), spec_name(m, k)) == 0)
				return skv_fail(err, SKV_E_INVALID, field,
						"%s: '%s' is named twice", field, spec_name(m, i));
	}
	return SKV_OK;
}

static int check_groups(const registration *m, struct skv_error *err)
{
	static const char field[] = "location_spec_groups";

	for (size_t i = 0; i < m->n_location_spec_groups; i++) {
		const spec_group *g = m->location_spec_groups[i];

		if (!*g->name)
			return skv_fail(err, SKV_E_INVALID, field, "%s: a group without a name",
					field);
		for (size_t k = 0; k < i; k++)
			if (strcmp(g->name, m->location_spec_groups[k]->name) == 0)
				return skv_fail(err, SKV_E_INVALID, field,
						"%s: '%.64s' is named twice", field, g->name);
		if (g->n_spec_names == 0)
			return skv_fail(err, SKV_E_INVALID, field, "%s: '%.64s' has no specs",
					field, g->name);
		for (size_t k = 0; k < g->n_spec_names; k++) {
			size_t at = 0;

			while (at < m->n_location_spec_infos &&
			       strcmp(g->spec_names[k], spec_name(m, at)) != 0)
				at++;
			if (at == m->n_location_spec_infos)
				return skv_fail(
					err, SKV_E_INVALID, field,
					"%s: '%.64s' names '%.64s', which is not a spec "
					"of the instance",
					field, g->name, g->spec_names[k]);
		}
	}
	return SKV_OK;
}

static int check(const registration *m, struct skv_error *err)
{
	int rc = kvcm_model_id(m->instance_id, err);

	if (rc == SKV_OK)
		rc = kvcm_model_name(m->instance_group, "instance_group", err);
	if (rc == SKV_OK && m->block_size <= 0)
		rc = skv_fail(err, SKV_E_INVALID, "block_size",
			      "block_size: tokens of a block, at least 1");
	if (rc == SKV_OK && *m->affinity_strategy_json)
		rc = skv_fail(err, SKV_E_UNSUPPORTED, "affinity_strategy_json",
			      "affinity_strategy_json: this server has no affinity");
	if (rc == SKV_OK &&
	    ((int)m->default_query_type < 0 ||
	     m->default_query_type > KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH_WITH_MAMBA))
		rc = skv_fail(err, SKV_E_INVALID, "default_query_type",
			      "default_query_type: no such type");
	if (rc == SKV_OK)
		rc = check_specs(m, err);
	return rc == SKV_OK ? check_groups(m, err) : rc;
}

static const char *info_text(const registration *m, struct skv_arena *a)
{
	info i;

	kvcm_meta__instance_info__init(&i);
	i.quota_group_name = QUOTA_GROUP;
	i.instance_group_name = m->instance_group;
	i.instance_id = m->instance_id;
	i.block_size = m->block_size;
	i.n_location_spec_infos = m->n_location_spec_infos;
	i.location_spec_infos = m->location_spec_infos;
	i.model_deployment = m->model_deployment;
	i.n_location_spec_groups = m->n_location_spec_groups;
	i.location_spec_groups = m->location_spec_groups;
	i.default_query_type = m->default_query_type;
	return kvcm_model_text(&i.base, a);
}

int kvcm_instance_spec(const registration *m, const char *tenant, struct skv_arena *a,
		       struct skv_instance_spec *out, struct skv_error *err)
{
	struct skv_spec *specs;
	const char *text;
	int rc = check(m, err);

	if (rc != SKV_OK)
		return rc;
	specs = skv_arena_calloc(a, m->n_location_spec_infos, sizeof *specs);
	text = info_text(m, a);
	if (!specs || !text)
		return kvcm_model_nomem(err);
	if (strlen(text) > SKV_MAX_EXTRA)
		return skv_fail(err, SKV_E_TOO_LARGE, "model_deployment",
				"the registration is over %u bytes of JSON", SKV_MAX_EXTRA);
	assert(m->n_location_spec_infos <= SKV_MAX_SPECS && m->block_size > 0);
	for (size_t i = 0; i < m->n_location_spec_infos; i++) {
		specs[i].name = spec_name(m, i);
		specs[i].size = (uint64_t)m->location_spec_infos[i]->size;
	}
	*out = (struct skv_instance_spec){
		.tenant = tenant,
		.id = m->instance_id,
		.group = m->instance_group,
		.block_tokens = (uint32_t)m->block_size,
		.specs = specs,
		.n_specs = (uint32_t)m->n_location_spec_infos,
		.numbered = true,
		.extra = text,
	};
	return SKV_OK;
}

registration *kvcm_register_from_admin(const KvcmAdmin__RegisterInstanceRequest *m,
				       struct skv_arena *a)
{
	return (registration *)kvcm_model_convert(
		&m->base, &kvcm_meta__register_instance_request__descriptor, a);
}

KvcmAdmin__InstanceInfo *kvcm_instance_for_admin(const info *m, struct skv_arena *a)
{
	return (KvcmAdmin__InstanceInfo *)kvcm_model_convert(
		&m->base, &kvcm_admin__instance_info__descriptor, a);
}

/* The KVCM message for an instance that another API registered. */
static info *made_up(const struct skv_instance_spec *s, struct skv_arena *a)
{
	info *m = skv_arena_alloc(a, sizeof *m);
	KvcmMeta__LocationSpecInfo **list = skv_arena_calloc(a, s->n_specs, sizeof *list);
	KvcmMeta__LocationSpecInfo *v = skv_arena_calloc(a, s->n_specs, sizeof *v);
	KvcmMeta__ModelDeployment *model = skv_arena_alloc(a, sizeof *model);

	if (!m || !list || !v || !model)
		return NULL;
	kvcm_meta__instance_info__init(m);
	kvcm_meta__model_deployment__init(model);
	m->quota_group_name = QUOTA_GROUP;
	m->instance_group_name = (char *)s->group;
	m->instance_id = (char *)s->id;
	m->block_size = (int32_t)s->block_tokens;
	m->model_deployment = model;
	m->location_spec_infos = list;
	m->n_location_spec_infos = s->n_specs;
	for (uint32_t i = 0; i < s->n_specs; i++) {
		kvcm_meta__location_spec_info__init(&v[i]);
		v[i].name = (char *)s->specs[i].name;
		v[i].size = (int64_t)s->specs[i].size;
		list[i] = &v[i];
	}
	return m;
}

info *kvcm_instance_message(const struct skv_instance_spec *s, struct skv_arena *a)
{
	ProtobufCMessage *m =
		kvcm_model_message(&kvcm_meta__instance_info__descriptor, s->extra, a);

	return m ? (info *)m : made_up(s, a);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same_specs(const info *a, const info *b)
{
	if (a->n_location_spec_infos != b->n_location_spec_infos)
		return false;
	for (size_t i = 0; i < a->n_location_spec_infos; i++)
		if (a->location_spec_infos[i]->size != b->location_spec_infos[i]->size ||
		    strcmp(a->location_spec_infos[i]->name, b->location_spec_infos[i]->name) != 0)
			return false;
	return true;
}

static bool same_model(const KvcmMeta__ModelDeployment *a, const KvcmMeta__ModelDeployment *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a->model_name, b->model_name) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
	       a->use_mla == b->use_mla && a->tp_size == b->tp_size && a->dp_size == b->dp_size &&
	       a->pp_size == b->pp_size && strcmp(a->lora_name, b->lora_name) == 0 &&
	       strcmp(a->extra, b->extra) == 0 && a->use_eagle_pop == b->use_eagle_pop;
}

/* Groups have no order, and the specs in them have none; names are there once (check_groups). */
static bool has_all(const spec_group *a, const spec_group *b)
{
	for (size_t i = 0; i < a->n_spec_names; i++) {
		size_t k = 0;

		while (k < b->n_spec_names && strcmp(a->spec_names[i], b->spec_names[k]) != 0)
			k++;
		if (k == b->n_spec_names)
			return false;
	}
	return true;
}

static bool same_groups(const info *a, const info *b)
{
	if (a->n_location_spec_groups != b->n_location_spec_groups)
		return false;
	for (size_t i = 0; i < a->n_location_spec_groups; i++) {
		const spec_group *g = a->location_spec_groups[i];
		size_t k = 0;

		while (k < b->n_location_spec_groups &&
		       strcmp(g->name, b->location_spec_groups[k]->name) != 0)
			k++;
		if (k == b->n_location_spec_groups || !has_all(g, b->location_spec_groups[k]) ||
		    !has_all(b->location_spec_groups[k], g))
			return false;
	}
	return true;
}

const char *kvcm_instance_differs(const info *have, const info *asked, struct skv_arena *a)
{
	const struct {
		const char *name;
		bool same;
	} fields[] = {
		{ "instance_group", strcmp(have->instance_group_name, asked->instance_group_name) ==
			  0 },
		{ "block_size", have->block_size == asked->block_size },
		{ "location_spec_infos", same_specs(have, asked) },
		{ "model_deployment", same_model(have->model_deployment, asked->model_deployment) },
		{ "location_spec_groups", same_groups(have, asked) },
		{ "default_query_type", have->default_query_type == asked->default_query_type },
	};
	char text[256];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		if (!fields[i].same)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
					      fields[i].name);
	assert(n < sizeof text);
	return skv_arena_strndup(a, text, n);
}
