/*
 * ops_table.h - the operations of SGLang's hf3fs metadata service, one row each; all are POST.
 *
 * Columns: name, path behind the rank, role, and of struct pages_op: flags, undone, read, ask, tell,
 * list, none.
 */
#ifndef SKV_PAGES_OPS_TABLE_H
#define SKV_PAGES_OPS_TABLE_H

#define SKV_PAGES_OPS(X)                                                                                               \
	X(initialize, "initialize", WRITE, PAGES_MAKES, PAGES_wishes, pages_read_initialize, NULL, NULL, NULL, NULL)   \
	X(exists, "exists", READ, PAGES_KEYS_FIRST, PAGES_answered_empty, pages_read_keys, pages_ask_exists,           \
	  pages_tell_exists, "exists", "false")                                                                        \
	X(get, "get_page_indices", READ, 0, PAGES_answered_empty, pages_read_keys, pages_ask_get, pages_tell_get,      \
	  "indices", "null")                                                                                           \
	X(reserve, "reserve_and_allocate_page_indices", WRITE, PAGES_GRANTS, PAGES_answered_empty, pages_read_reserve, \
	  pages_ask_reserve, pages_tell_reserve, "indices", "[false,-1]")                                              \
	X(confirm, "confirm_write", WRITE, PAGES_BARE, PAGES_dropped_confirm, pages_read_confirm, pages_ask_confirm,   \
	  pages_tell_confirm, NULL, NULL)                                                                              \
	X(delete, "delete_keys", WRITE, 0, PAGES_dropped_delete, pages_read_keys, pages_ask_delete, NULL, NULL, NULL)  \
	X(clear, "clear", WRITE, PAGES_BARE | PAGES_WHOLE, PAGES_dropped_clear, pages_read_nothing, pages_ask_clear,   \
	  NULL, NULL, NULL)

/*
 * Those of vLLM's, in tenant's paths too but for clear (api.c). Columns: name, path, role, flags, the rest of struct
 * pages_op.
 */
#define NEED(list) "Invalid request format: need 'rank' and '" list "'"
#define SKV_VLLM_TENANT_OPS(X)                                                                                         \
	X(vllm_initialize, "rank/{rank}/initialize", WRITE, PAGES_VLLM | PAGES_MAKES, .undone = PAGES_wishes,          \
	  .read = vllm_read_initialize, .say = vllm_say_initialize)                                                    \
	X(vllm_allocate, "keys/batch_allocate", WRITE, PAGES_VLLM | PAGES_RANKED | PAGES_GRANTS | PAGES_ECHOES,        \
	  .undone = PAGES_answered_empty, .read = vllm_read_allocate, .ask = vllm_ask_allocate,                        \
	  .tell = vllm_tell_allocate, .list = "results",                                                               \
	  .rest = vllm_rest_allocate, .need = NEED("keys"), .trouble = "Allocation failed")                            \
	X(vllm_confirm, "keys/confirm_write", WRITE, PAGES_VLLM | PAGES_RANKED, .undone = PAGES_dropped_confirm,       \
	  .read = vllm_read_confirm, .ask = pages_ask_confirm, .tell = pages_tell_confirm,                             \
	  .need = NEED("confirmations"), .trouble = "Confirmation failed")                                             \
	X(vllm_exists, "keys/batch_exists", READ, PAGES_VLLM, .undone = PAGES_answered_empty,                          \
	  .read = vllm_read_keys, .ask = vllm_ask_exists,                                                              \
	  .tell = vllm_tell_exists, .list = "exists", .none = "false", .need = "Invalid keys format",                  \
	  .trouble = "Key existence check failed")                                                                     \
	X(vllm_locations, "keys/get_locations", READ, PAGES_VLLM | PAGES_RANKED, .undone = PAGES_answered_empty,       \
	  .read = vllm_read_keys, .ask = vllm_ask_locations, .tell = vllm_tell_locations, .list = "locations",         \
	  .none = "null", .need = NEED("keys"), .trouble = "Failed to get key locations")
#define SKV_VLLM_OPS(X)                                                                                                \
	SKV_VLLM_TENANT_OPS(X)                                                                                         \
	X(vllm_clear, "clear", WRITE, PAGES_VLLM | PAGES_BARE | PAGES_WHOLE,                                           \
	  .undone = PAGES_dropped_clear, .read = pages_read_nothing, .ask = vllm_ask_clear)

#define SKV_PAGES_ADMIN(X)                                                                                             \
	X(list, GET, "", 0)                                                                                            \
	X(export, POST, "/export", ROUTE_BODY)                                                                         \
	X(import, POST, "/import", ROUTE_BODY)                                                                         \
	X(clear, POST, "/clear", ROUTE_BODY)

#endif
