/*
 * ops_table.h - the operations of SGLang's hf3fs metadata service, one row each; all are POST.
 *
 * Columns: name, path behind the rank, role, flags of struct pages_op, read, ask, tell, list, none.
 */
#ifndef KVB_PAGES_OPS_TABLE_H
#define KVB_PAGES_OPS_TABLE_H

#define KVB_PAGES_OPS(X)                                                                                               \
	X(exists, "exists", READ, 0, pages_read_keys, pages_lookup_ask, pages_exists_tell, "exists", "false")

#endif
