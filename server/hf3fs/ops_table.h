/*
 * ops_table.h - the operations of SGLang's hf3fs metadata service, one row each; all are POST.
 *
 * Columns: name, path behind the rank, role, and of struct hf3fs_op: flags, undone,
 * read, ask, tell, list, none.
 */
#ifndef SKV_HF3FS_OPS_TABLE_H
#define SKV_HF3FS_OPS_TABLE_H

#define SKV_HF3FS_OPS(X)                                                                           \
	X(initialize, "initialize", WRITE, HF3FS_MAKES, HF3FS_wishes, hf3fs_read_initialize, NULL, \
	  NULL, NULL, NULL)                                                                        \
	X(exists, "exists", READ, HF3FS_KEYS_FIRST, HF3FS_answered_empty, hf3fs_read_keys,         \
	  hf3fs_ask_exists,                                                                        \
	  hf3fs_tell_exists, "exists", "false")                                                    \
	X(get, "get_page_indices", READ, 0, HF3FS_answered_empty, hf3fs_read_keys, hf3fs_ask_get,  \
	  hf3fs_tell_get,                                                                          \
	  "indices", "null")                                                                       \
	X(reserve, "reserve_and_allocate_page_indices", WRITE, HF3FS_GRANTS, HF3FS_answered_empty, \
	  hf3fs_read_reserve,                                                                      \
	  hf3fs_ask_reserve, hf3fs_tell_reserve, "indices", "[false,-1]")                          \
	X(confirm, "confirm_write", WRITE, HF3FS_BARE, HF3FS_dropped_confirm, hf3fs_read_confirm,  \
	  hf3fs_ask_confirm,                                                                       \
	  hf3fs_tell_confirm, NULL, NULL)                                                          \
	X(delete, "delete_keys", WRITE, 0, HF3FS_dropped_delete, hf3fs_read_keys,                  \
	  hf3fs_ask_delete, NULL, NULL, NULL)                                                      \
	X(clear, "clear", WRITE, HF3FS_BARE | HF3FS_WHOLE, HF3FS_dropped_clear,                    \
	  hf3fs_read_nothing, hf3fs_ask_clear,                                                     \
	  NULL, NULL, NULL)

/*
 * Operations of vLLM's API, also in paths of tenants, except clear (api.c). Columns: name, path,
 * role, flags, the rest of struct hf3fs_op.
 */
#define NEED(list) "Invalid request format: need 'rank' and '" list "'"
#define SKV_VLLM_TENANT_OPS(X)                                                                    \
	X(vllm_initialize, "rank/{rank}/initialize", WRITE, HF3FS_VLLM | HF3FS_MAKES,             \
	  .undone = HF3FS_wishes,                                                                 \
	  .read = vllm_read_initialize, .say = vllm_say_initialize)                               \
	X(vllm_allocate, "keys/batch_allocate", WRITE, HF3FS_VLLM | HF3FS_RANKED | HF3FS_GRANTS | \
	  HF3FS_ECHOES,                                                                           \
	  .undone = HF3FS_answered_empty, .read = vllm_read_allocate, .ask = vllm_ask_allocate,   \
	  .tell = vllm_tell_allocate, .list = "results",                                          \
	  .rest = vllm_rest_allocate, .need = NEED("keys"), .trouble = "Allocation failed")       \
	X(vllm_confirm, "keys/confirm_write", WRITE, HF3FS_VLLM | HF3FS_RANKED,                   \
	  .undone = HF3FS_dropped_confirm,                                                        \
	  .read = vllm_read_confirm, .ask = hf3fs_ask_confirm, .tell = hf3fs_tell_confirm,        \
	  .need = NEED("confirmations"), .trouble = "Confirmation failed")                        \
	X(vllm_exists, "keys/batch_exists", READ, HF3FS_VLLM | HF3FS_ALL,                         \
	  .undone = HF3FS_answered_empty, .read = vllm_read_keys, .ask = vllm_ask_exists,         \
	  .tell = vllm_tell_exists, .list = "exists", .none = "false",                            \
	  .need = "Invalid keys format",                                                          \
	  .trouble = "Key existence check failed")                                                \
	X(vllm_locations, "keys/get_locations", READ, HF3FS_VLLM | HF3FS_RANKED | HF3FS_ALL,      \
	  .undone = HF3FS_answered_empty,                                                         \
	  .read = vllm_read_keys, .ask = vllm_ask_locations, .tell = vllm_tell_locations,         \
	  .list = "locations",                                                                    \
	  .none = "null", .need = NEED("keys"), .trouble = "Failed to get key locations")
#define SKV_VLLM_OPS(X)                                                      \
	SKV_VLLM_TENANT_OPS(X)                                                           \
	X(vllm_clear, "clear", WRITE, HF3FS_VLLM | HF3FS_BARE | HF3FS_WHOLE | HF3FS_ALL, \
	  .undone = HF3FS_dropped_clear, .read = hf3fs_read_nothing, .ask = vllm_ask_clear)

#define SKV_HF3FS_ADMIN(X)                     \
	X(list, GET, "", 0)                    \
	X(export, POST, "/export", ROUTE_BODY) \
	X(import, POST, "/import", ROUTE_BODY) \
	X(clear, POST, "/clear", ROUTE_BODY)

#endif
