/*
 * columns.c - converts groups of specs, as named at registration, to bits in order of registration.
 * Stateless.
 */
#include "meta.h"

#include <string.h>

uint32_t kvcm_group_columns(const KvcmMeta__InstanceInfo *info,
			    const KvcmMeta__LocationSpecGroup *group)
{
	uint32_t columns = 0;

	for (size_t s = 0; s < info->n_location_spec_infos && s < SKV_MAX_SPECS; s++)
		for (size_t i = 0; i < group->n_spec_names; i++)
			if (strcmp(info->location_spec_infos[s]->name, group->spec_names[i]) == 0)
				columns |= (uint32_t)1 << s;
	return columns;
}

bool kvcm_hybrid_columns(const KvcmMeta__InstanceInfo *info, uint32_t *full, uint32_t *state)
{
	*full = *state = 0;
	for (size_t i = 0; i < info->n_location_spec_groups; i++) {
		const KvcmMeta__LocationSpecGroup *g = info->location_spec_groups[i];

		if (strncmp(g->name, "full", 4) == 0 || strncmp(g->name, "FULL", 4) == 0)
			*full |= kvcm_group_columns(info, g);
		else
			*state |= kvcm_group_columns(info, g);
	}
	return *full && *state;
}
