/*
 * files.c - the slab files of a volume, and their drains.
 *
 * Owns the table volume -> files, sorted by number, and a list of the draining ones for the ticker;
 * the pool has the existing files, the registry a document for each. Numbers may have gaps. Called
 * while loading, when the partition is private, and under the write lock. Nothing here touches the
 * store or a file system.
 */
#include <model/files.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/damage.h>
#include <model/device.h>
#include <model/partition.h>
#include <model/sorted.h>
#include <model/volume.h>

static uint64_t number_of(const void *file)
{
	return ((const struct volume_file *)file)->number;
}

static uint64_t value_of(const void *number)
{
	return *(const uint32_t *)number;
}

static size_t place_of(const struct volume *s, uint32_t number)
{
	return sorted_place(s->file, s->n_file, sizeof *s->file, number, number_of);
}

struct volume_file *file_find(const struct volume *s, uint32_t number)
{
	size_t at = place_of(s, number);

	return at < s->n_file && s->file[at].number == number ? &s->file[at] : NULL;
}

struct volume_file *file_next(const struct volume *s, uint32_t from)
{
	size_t at = place_of(s, from);

	while (at < s->n_file && s->file[at].state == FILE_GONE)
		at++;
	return at < s->n_file ? &s->file[at] : NULL;
}

/* Bytes of a lost file that fill nothing. */
static uint64_t vanished(const struct volume *s, const struct volume_file *f)
{
	return f->lost && s->dev->ops->forgetful ? f->length : 0;
}

int file_add(struct volume *s, const struct volume_file *f)
{
	size_t at = place_of(s, f->number);
	void *v = s->file;
	int rc;

	/* Created while the partition was reloading: it came with the registry. */
	if (file_find(s, f->number))
		return SKV_OK;
	rc = skv_grow(&v, &s->cap_file, s->n_file + 1, sizeof *s->file);
	s->file = v;
	v = s->drain;
	if (rc == SKV_OK)
		rc = skv_grow(&v, &s->cap_drain, s->n_file + 1, sizeof *s->drain);
	s->drain = v;
	if (rc == SKV_OK && f->state != FILE_GONE)
		rc = skv_pool_add_file(s->pool, f->number, f->length);
	if (rc != SKV_OK)
		return rc;
	memmove(s->file + at + 1, s->file + at, (s->n_file - at) * sizeof *s->file);
	s->file[at] = *f;
	s->file[at].drains = s->file[at].closed = false;
	s->n_file++;
	if (f->number >= s->next_file)
		s->next_file = f->number + 1;
	if (f->number == s->claim.number)
		s->claim = (struct volume_file){ 0 };
	s->file_bytes += f->state == FILE_GONE ? 0 : f->length;
	s->vanished_bytes += f->state == FILE_GONE ? 0 : vanished(s, f);
	s->stays += f->state == FILE_IN_USE ? f->length : 0;
	s->n_ending += f->state != FILE_IN_USE;
	s->fit_due = true;
	file_settle(s, &s->file[at]);
	return SKV_OK;
}

int file_add_claim(struct volume *s)
{
	struct volume_file claim = s->claim;

	s->claim = (struct volume_file){ 0 };
	return claim.length ? file_add(s, &claim) : SKV_OK;
}

uint32_t file_next_number(const struct volume *s)
{
	return s->claim.length ? s->claim.number : s->next_file;
}

bool file_drains(const struct volume *s, const struct volume_file *f)
{
	return s->draining || f->asked || f->shrink || f->lost;
}

bool file_moves(const struct volume *s, const struct volume_file *f)
{
	if (f->lost || f->state != FILE_IN_USE)
		return false;
	return s->draining ? s->moving : f->asked && f->asked_move && !f->shrink;
}

static void drain_list(struct volume *s, uint32_t number, bool on)
{
	size_t at = sorted_place(s->drain, s->n_drain, sizeof *s->drain, number, value_of);

	assert(on == (at == s->n_drain || s->drain[at] != number));
	assert(!on || s->n_drain < s->cap_drain);
	memmove(s->drain + at + on, s->drain + at + !on,
		(s->n_drain - at - !on) * sizeof *s->drain);
	if (on)
		s->drain[at] = number;
	s->n_drain = on ? s->n_drain + 1 : s->n_drain - 1;
}

void file_scan_again(struct volume_file *f)
{
	f->pass = f->unit = f->slot = 0;
	f->picked = f->empty = false;
	f->again_at = 0;
	f->writing = f->pinned = f->saw_writing = f->saw_pinned = f->oldest = 0;
	f->unsummed = f->roomless = f->saw_unsummed = f->saw_roomless = 0;
	f->replicated = f->saw_replicated = 0;
}

void file_settle(struct volume *s, struct volume_file *f)
{
	bool on = file_drains(s, f), closed = on || f->bad;

	if (f->state != FILE_IN_USE)
		return;
	if (f->closed != closed)
		skv_pool_drain_file(s->pool, f->number, closed);
	f->closed = closed;
	if (f->drains == on)
		return;
	f->drains = on;
	drain_list(s, f->number, on);
	s->stays = on ? s->stays - f->length : s->stays + f->length;
	s->fit_due = true;
	file_scan_again(f);
}

void files_settle(struct volume *s)
{
	for (size_t i = 0; i < s->n_file; i++)
		file_settle(s, &s->file[i]);
}

void file_going(struct volume *s, struct volume_file *f)
{
	assert(f->state == FILE_IN_USE && f->drains);
	f->state = FILE_GOING;
	drain_list(s, f->number, false);
	s->n_ending++;
}

void file_gone(struct volume *s, struct volume_file *f)
{
	int rc = skv_pool_remove_file(s->pool, f->number);

	assert(rc == SKV_OK);
	(void)rc;
	s->file_bytes -= f->length;
	s->vanished_bytes -= vanished(s, f);
	s->n_bad -= f->bad != NULL;
	f->bad = NULL;
	f->state = FILE_GONE;
}

void file_found(struct volume *s, struct volume_file *f, const char *bad, bool certain,
		uint64_t now)
{
	if (f->state == FILE_GONE)
		return;
	s->n_bad += (bad != NULL) - (f->bad != NULL);
	if (!bad || !certain)
		f->bad_since = 0;
	else if (f->bad_since == 0)
		f->bad_since = now;
	f->bad = bad;
	file_settle(s, f);
}

void file_lose(struct volume *s, struct volume_file *f)
{
	assert(s->vanished_bytes <= s->file_bytes);
	s->vanished_bytes -= vanished(s, f);
	f->lost = true;
	s->vanished_bytes += vanished(s, f);
	f->again_at = 0;
	file_settle(s, f);
}

void files_doubt(struct volume *s)
{
	for (size_t i = 0; i < s->n_file; i++)
		s->file[i].bad_since = 0;
}

bool slot_readable(const struct partition *p, const struct slot *s)
{
	const struct volume *sp = &p->volume[s->volume];
	const struct volume_file *f;
	struct skv_slab_info info;

	ASSERT_SHARED(p);
	if (damage_hides(p, s))
		return false;
	if (sp->n_bad == 0 || !skv_pool_slab(sp->pool, s->slab, &info))
		return true;
	f = file_find(sp, info.place.file);
	return !f || !f->bad;
}

void file_forget(struct volume *s, struct volume_file *f)
{
	size_t at = (size_t)(f - s->file);

	assert(f->state == FILE_GONE);
	s->n_ending--;
	s->n_file--;
	memmove(f, f + 1, (s->n_file - at) * sizeof *f);
}

void files_free(struct volume *s)
{
	skv_free(s->file);
	skv_free(s->drain);
	s->file = NULL;
	s->drain = NULL;
	s->n_file = s->cap_file = s->n_drain = s->cap_drain = 0;
}
