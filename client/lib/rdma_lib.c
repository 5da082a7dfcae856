/*
 * rdma_lib.c - loads libibverbs and librdmacm (see rdma_lib.h).
 *
 * Owns the one table of the process.
 */
#include "rdma_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include <skv/check.h>

#define VERBS "libibverbs.so.1"
#define CM "librdmacm.so.1"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the following variables */
static struct skv_rdma_lib table;
static bool loaded;

static void *open_one(const char *name, struct skv_error *err)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		skv_fail(err, SKV_E_UNSUPPORTED, NULL,
			 "%s: install libibverbs1, ibverbs-providers and librdmacm1", dlerror());
	return handle;
}

static int find_symbols(void *verbs, void *cm, struct skv_error *err)
{
	void *p;

#define FIND(handle, symbol)                                                                     \
	p = dlsym(handle, #symbol);                                                              \
	if (!p)                                                                                  \
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,                                    \
				VERBS " or " CM " has no function " #symbol ": it is too old");  \
	memcpy(&table.symbol, &p, sizeof p);
#define FIND_VERBS(symbol, type, parameters) FIND(verbs, symbol)
#define FIND_CM(symbol, type, parameters) FIND(cm, symbol)
	SKV_IBVERBS_FUNCTIONS(FIND_VERBS)
	SKV_RDMACM_FUNCTIONS(FIND_CM)
#undef FIND_CM
#undef FIND_VERBS
#undef FIND
	return SKV_OK;
}

static int load_locked(struct skv_error *err)
{
	void *verbs = open_one(VERBS, err), *cm = verbs ? open_one(CM, err) : NULL;
	int rc = cm ? find_symbols(verbs, cm, err) : SKV_E_UNSUPPORTED;

	loaded = rc == SKV_OK;
	SKV_CHECK(!loaded || (table.rdma_connect && table.ibv_reg_mr));
	return rc;
}

int skv_rdma_load(const struct skv_rdma_lib **out, struct skv_error *err)
{
	int rc = SKV_OK;

	pthread_mutex_lock(&lock);
	if (!loaded)
		rc = load_locked(err);
	pthread_mutex_unlock(&lock);
	if (rc == SKV_OK)
		*out = &table;
	return rc;
}
