/*
 * metrics_table.h - what the pages API counts, one row each: kvblock_pages_<name>_total.
 */
#ifndef KVB_PAGES_METRICS_TABLE_H
#define KVB_PAGES_METRICS_TABLE_H

#define KVB_PAGES_COUNTERS(X)                                                                           \
	X(reserved, "pages reserved")                                                                   \
	X(reserved_existing, "keys of reservations that were there already")                            \
	X(refused_full, "keys that no page was left for, or that are too long")                         \
	X(refused_in_flight, "keys that somebody else was writing")                                     \
	X(confirmed, "pages confirmed")                                                                 \
	X(ignored_confirms, "confirmations of pages that were not reserved for that key")               \
	X(released, "reserved pages given back")                                                        \
	X(ignored_releases, "pages given back that nobody had reserved")                                \
	X(dropped, "confirmations, deletions and clears answered though the store could not take them") \
	X(answered_empty, "other calls answered as if nothing was there, for the same reason")          \
	X(unknown_space, "calls for a rank and namespace that nobody has initialized")                  \
	X(malformed, "requests that were refused for what they say")                                    \
	X(get_all_null, "calls of get_page_indices answered null for all keys because one was missing") \
	X(held, "calls that waited until this manager was ready")                                        \
	X(wishes, "initializations that wait for the store")

#endif
