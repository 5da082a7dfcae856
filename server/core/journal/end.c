/* end.c - where a partition's journal ends. */
#include <journal/end.h>

#include <assert.h>

#include <skv/bytes.h>
#include <skv/hash.h>

#include <lock/core.h>

struct journal_end journal_end_of(const struct partition *p, uint64_t number,
				  const struct skv_buf *batch)
{
	return (struct journal_end){ p->fence, number, skv_checksum(batch->data, batch->len) };
}

void journal_appended(struct partition *p, struct journal_end end, size_t n)
{
	ASSERT_EXCLUSIVE(p);
	assert(end.epoch == p->fence && end.number >= p->end.number);
	p->seq++;
	p->end = end;
	p->journal_bytes += n;
}

void journal_read(struct partition *p, uint64_t seq, const void *batch, size_t n)
{
	ASSERT_EXCLUSIVE(p);
	p->seq = seq;
	p->end.chain = skv_checksum(batch, n);
	p->journal_bytes += n;
}

void journal_link(struct partition *p, const struct journal_end *end)
{
	ASSERT_EXCLUSIVE(p);
	p->end = *end;
}

void journal_seq_least(struct partition *p, uint64_t seq)
{
	ASSERT_EXCLUSIVE(p);
	if (p->seq < seq)
		p->seq = seq;
}

void journal_is_durable(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	p->durable = p->end;
}
