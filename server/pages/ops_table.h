/*
 * ops_table.h - the operations of SGLang's hf3fs metadata service, one row each; all are POST.
 *
 * Columns: name, path behind the rank, role, flags of struct pages_op, read, ask, tell, list, none.
 */
#ifndef KVB_PAGES_OPS_TABLE_H
#define KVB_PAGES_OPS_TABLE_H

#define KVB_PAGES_OPS(X)                                                                                               \
	X(initialize, "initialize", WRITE, PAGES_MAKES, pages_read_initialize, NULL, NULL, NULL, NULL)                 \
	X(exists, "exists", READ, PAGES_KEYS_FIRST, pages_read_keys, pages_ask_exists, pages_tell_exists, "exists",    \
	  "false")                                                                                                     \
	X(get, "get_page_indices", READ, 0, pages_read_keys, pages_ask_get, pages_tell_get, "indices", "null")         \
	X(reserve, "reserve_and_allocate_page_indices", WRITE, PAGES_GRANTS, pages_read_reserve, pages_ask_reserve,    \
	  pages_tell_reserve, "indices", "[false,-1]")                                                                 \
	X(confirm, "confirm_write", WRITE, PAGES_LOSES | PAGES_BARE, pages_read_confirm, pages_ask_confirm,            \
	  pages_tell_confirm, NULL, NULL)                                                                              \
	X(delete, "delete_keys", WRITE, PAGES_LOSES, pages_read_keys, pages_ask_delete, NULL, NULL, NULL)              \
	X(clear, "clear", WRITE, PAGES_LOSES | PAGES_BARE | PAGES_WHOLE, pages_read_nothing, pages_ask_clear, NULL,    \
	  NULL, NULL)

#endif
