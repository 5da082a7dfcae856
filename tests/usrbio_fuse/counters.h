/* counters.h - the counters of 3fs-virt/stats. COUNTER(name); `meta` is the sum of what
 * asks 3FS's meta service. */
/* lookups, stats, creates, deletes, renames, links, opens and closes for
 * writing, length settlements */
COUNTER(meta)
COUNTER(lookup)
COUNTER(getattr)
COUNTER(setattr)
COUNTER(truncate)
COUNTER(readlink)
COUNTER(symlink)
COUNTER(link)
COUNTER(rename)
COUNTER(mkdir)
COUNTER(rmdir)
COUNTER(create)
COUNTER(unlink)
COUNTER(open_read)
COUNTER(open_write)
COUNTER(close_write)
COUNTER(release)
COUNTER(flush)
COUNTER(fsync)
COUNTER(fdatasync)
COUNTER(settle)
COUNTER(opendir)
COUNTER(readdir)
COUNTER(statfs)
COUNTER(fallocate) /* refused */
COUNTER(ioctl)
COUNTER(read)  /* requests of the kernel */
COUNTER(write)
COUNTER(read_bytes)
COUNTER(write_bytes)
COUNTER(iov_made)
COUNTER(iov_gone)
COUNTER(ring_made)
COUNTER(ring_gone)
COUNTER(ring_taken) /* jobs whose requests were taken; what is held is among them */
COUNTER(ring_jobs)  /* and executed */
COUNTER(ring_reads) /* requests in rings */
COUNTER(ring_writes)
COUNTER(ring_read_bytes)
COUNTER(ring_write_bytes)
COUNTER(ring_short)
COUNTER(ring_errors)
COUNTER(chunk_fresh)  /* writes that made a chunk */
COUNTER(chunk_whole)  /* writes over a whole chunk: no copy */
COUNTER(chunk_append) /* writes at its end, 4 KiB aligned: no copy */
COUNTER(chunk_copied) /* writes into a chunk: 3FS reads it and writes it anew */
COUNTER(chunk_copied_bytes)
COUNTER(chunk_removed)
COUNTER(dead_clients)
