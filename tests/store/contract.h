/* contract.h - the cases that every store must pass, and what they share. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include "bench_store.h"

#define CONTRACT_CASES(X)                                                                          \
	X(registry_compares_and_sets)                                                              \
	X(registry_keeps_empty_and_large_documents)                                                \
	X(registry_lists_a_prefix_in_key_order)                                                    \
	X(a_listing_can_be_ended_and_may_write)                                                    \
	X(bad_arguments_are_refused)                                                               \
	X(calls_are_counted)                                                                       \
	X(ownership_goes_to_one)                                                                   \
	X(a_release_is_at_once_and_final)                                                          \
	X(a_registry_write_needs_the_newest_fence)                                                 \
	X(nothing_is_written_after_the_next_acquire)                                               \
	X(acquiring_again_fences_what_is_in_flight)                                                \
	X(a_lease_that_ran_out_unseen_can_be_renewed)                                              \
	X(appends_follow_each_other)                                                               \
	X(partitions_are_apart)                                                                    \
	X(an_append_needs_the_newest_fence)                                                        \
	X(a_batch_of_the_largest_size)                                                             \
	X(a_sink_can_end_the_load)                                                                 \
	X(a_follower_gets_what_comes)                                                              \
	X(a_follower_that_is_left_behind_loads_again)                                              \
	X(a_checkpoint_replaces_the_journal)                                                       \
	X(an_unfinished_checkpoint_is_invisible)                                                   \
	X(a_checkpoint_must_be_whole)                                                              \
	X(a_new_owner_ends_the_old_ones_checkpoint)                                                \
	X(a_slice_of_the_largest_size)                                                             \
	X(a_reopened_store_has_everything)                                                         \
	X(two_openers_see_each_other)                                                              \
	X(a_partition_is_a_store_of_its_own)                                                       \
	X(a_crowd_of_threads)

#define CONTRACT_CASE(name) void name(void **state);
CONTRACT_CASES(CONTRACT_CASE)
#undef CONTRACT_CASE

/* Sets a registry entry to a text, whatever it was. */
void contract_put(struct bench *b, struct skv_store *s, const char *key, const char *text);
/* Writes a whole checkpoint of partition 0; returns its id. */
uint64_t contract_checkpoint(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t upto,
			     const char *const *slices, uint32_t n);

#endif
