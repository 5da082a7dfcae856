/* todo.c - stand-ins for operations that are being written; goes before anything lands. */
#include <kvb/core.h>

int kvb_core_clear(struct kvb_core *c, const struct kvb_clear_req *req, struct kvb_clear_res *res, struct kvb_arena *a,
		   struct kvb_error *err, const struct kvb_done *done)
{
	(void)c; (void)req; (void)res; (void)a; (void)done;
	return kvb_fail(err, KVB_E_UNSUPPORTED, NULL, "not yet");
}
