/*
 * metrics_table.h - the counters of the hf3fs API, one row each: slabkv_pages_<name>_total.
 *
 * Columns: number in enum hf3fs_counter, name, labels, help. Rows of the same name stand together.
 */
#ifndef SKV_HF3FS_METRICS_TABLE_H
#define SKV_HF3FS_METRICS_TABLE_H

#define DROPPED_HELP "calls answered as done though the store could not take them"
#define FILE_DROPS_HELP "spaces whose keys were dropped because their file was lost"

#define SKV_HF3FS_COUNTERS(X)                                                                    \
	X(reserved, "reserved", "", "pages reserved")                                            \
	X(reserved_existing, "reserved_existing", "",                                            \
	  "keys of reservations that were there already")                                        \
	X(refused_full, "refused_full", "",                                                      \
	  "keys that no page was left for, or that are too long")                                \
	X(not_admitted, "not_admitted", "", "keys that got no page because their policy refused") \
	X(in_flight, "in_flight", "", "keys that another client was writing")                    \
	X(spare, "spare", "",                                                                    \
	  "pages of discarded copies: vLLM's, of keys that another client was writing")          \
	X(confirmed, "confirmed", "", "pages confirmed")                                         \
	X(ignored_confirms, "ignored_confirms", "",                                              \
	  "confirmations of pages that were not reserved for that key")                          \
	X(released, "released", "", "reserved pages given back")                                 \
	X(ignored_releases, "ignored_releases", "", "pages given back that nobody had reserved") \
	X(dropped_confirm, "dropped", "{op=\"confirm\"}", DROPPED_HELP)                          \
	X(dropped_delete, "dropped", "{op=\"delete\"}", DROPPED_HELP)                            \
	X(dropped_clear, "dropped", "{op=\"clear\"}", DROPPED_HELP)                              \
	X(answered_empty, "answered_empty", "",                                                  \
	  "other calls answered as if nothing was there, for the same reason")                   \
	X(unknown_space, "unknown_space", "",                                                    \
	  "calls for a rank and namespace that nobody has initialized")                          \
	X(malformed, "malformed", "", "requests that were refused for what they say")            \
	X(get_all_null, "get_all_null", "",                                                      \
	  "calls of get_page_indices answered null for all keys because one was missing")        \
	X(wishes, "wishes", "", "initializations that wait for the store")                       \
	X(file_looks, "file_looks", "", "looks at a page file, or at where it would be")         \
	X(file_unseen, "file_unseen", "",                                                        \
	  "looks that told nothing: the directory or all fs-masters were away")                  \
	X(file_gone, "file_drops", "{why=\"gone\"}", FILE_DROPS_HELP)                            \
	X(file_replaced, "file_drops", "{why=\"replaced\"}", FILE_DROPS_HELP)                    \
	X(file_shrank, "file_drops", "{why=\"shrank\"}", FILE_DROPS_HELP)

#endif
