/* limits.h - limits of the interface. Sizes in bytes unless stated otherwise. */
#ifndef SKV_LIMITS_H
#define SKV_LIMITS_H

#include <stdint.h>

#define SKV_MAX_KEYS 16384u           /* keys in one request */
#define SKV_MAX_KEY_STRING 1024u      /* bytes of a string key */
#define SKV_MAX_BLOCK_NAME 1024u      /* name stored with a block */
#define SKV_MAX_INSTANCES_PER_MATCH 64u
#define SKV_MAX_SPECS 32u             /* specs of one instance */
#define SKV_MAX_NAME 127u             /* names of storages, groups, instances, specs, tenants */
/* Names of storages and groups of page spaces begin so: pages:TENANT:INSTANCE. */
#define SKV_SPACES "pages:"
#define SKV_MAX_REQUEST_ID 127u
#define SKV_MAX_PAGE 1000u            /* objects in one page of a list */
#define SKV_PAGE_BYTES (1u << 20)     /* of memory for them, about */
/* Where a list goes on: a name, or a tenant's and an instance's with '%' between them. */
#define SKV_MAX_CURSOR (2 * SKV_MAX_NAME + 1)
#define SKV_MAX_AVOID 16u /* storages that a start avoids */
#define SKV_MAX_BODY (32u << 20)      /* default limit of a request body */
#define SKV_MAX_SPEC_SIZE (1ull << 32) /* bytes of a spec of a block: 4 GiB */
#define SKV_MIN_SPEC_SIZE 1ull
#define SKV_MAX_ROOT 1023u            /* path of a storage's root directory */
#define SKV_MAX_EXTRA 16384u          /* opaque text kept with a storage, group or instance */
#define SKV_MAX_DOC_NAME 255u         /* name of a document of an API */
#define SKV_MAX_DOC (256u << 10)      /* bytes of its text */
#define SKV_MAX_FS_MASTERS 8u          /* of one storage */
#define SKV_MAX_PLACEMENTS 8192u       /* SKV_MAX_SPECS on each of 256 storages */
#define SKV_MAX_URL 255u              /* characters of one */
#define SKV_MAX_QUOTAS 16u            /* quotas by type of storage in one group */
#define SKV_MAX_PROMOTE 15u            /* uses of a block that are counted */
#define SKV_MAX_PIN_MS 2592000000ull  /* a pin that expires: 30 days */
#define SKV_MAX_WEIGHT 1000u          /* of an instance in its group */
#define SKV_MAX_LEASE_MS 600000u      /* limit of the manager's parameter lease_max_ms */
/* A time since 1970; a number that every JSON reader can represent. */
#define SKV_MAX_WALL_MS ((1ull << 53) - 1)
#define SKV_MAX_SESSION_MS 3600000u   /* limit of the manager's parameter session_max_ms */

_Static_assert(SKV_MAX_SPECS <= 32, "masks of specs have a bit for each");
_Static_assert(SKV_MAX_KEYS *SKV_MAX_SPECS <= UINT32_MAX / 2,
	       "rows and columns of an answer count in 32 bits");
_Static_assert(SKV_MAX_PLACEMENTS % SKV_MAX_SPECS == 0, "each storage has a place for each spec");
_Static_assert(SKV_MIN_SPEC_SIZE > 0 && SKV_MAX_SPEC_SIZE <= INT64_MAX,
	       "sizes are offsets of files");
_Static_assert(SKV_MAX_PIN_MS <= SKV_MAX_WALL_MS, "times are numbers that JSON has");
#define SKV_SESSION_ID_HEX 32         /* digits of a session id */

#endif
