/*
 * iov.c - shared memory that clients registered by a link in 3fs-virt/iovs. The link's name tells
 * what it is: UUID[.bBLOCK][.{r|w}DEPTH][.p{h|n|l}][.tTIMEOUT][.fFLAGS]; `r` or `w` makes it a
 * ring. One lock for the list; memory is unmapped when the link is gone and no job uses it.
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_LINK (VIRT_FIRST + 0x1000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct iov *iovs; /* oldest first */
static uint64_t next_number = FIRST_LINK;

/* 8-4-4-4-12 hexadecimal digits. */
static bool parse_uuid(const char *p, uint8_t id[16])
{
	int n = 0;

	for (int i = 0; i < 36; i++) {
		char digit[2] = { p[i], '\0' };
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (p[i] == '\0' || (p[i] == '-') != dash ||
		    (!dash && !strchr("0123456789abcdefABCDEF", p[i])))
			return false;
		if (dash)
			continue;
		id[n / 2] = (uint8_t)(id[n / 2] << 4 | strtoul(digit, NULL, 16));
		n++;
	}
	return true;
}

static bool parse_number(const char *p, int base, long long least, long long *out)
{
	char *end;

	errno = 0;
	*out = strtoll(p, &end, base);
	return *p != '\0' && *end == '\0' && errno == 0 && *out >= least;
}

static bool parse_word(const char *w, struct iov *v, bool *ring_words)
{
	long long n = 0;
	bool ok;

	switch (*w) {
	case 'b':
		ok = parse_number(w + 1, 10, 1, &n);
		v->block = (uint64_t)n;
		return ok;
	case 'r':
	case 'w':
		ok = parse_number(w + 1, 10, -65536, &n);
		v->is_ring = true;
		v->for_read = *w == 'r';
		v->depth = (int)n;
		return ok;
	case 't':
		ok = parse_number(w + 1, 10, 0, &n);
		v->timeout_ms = (int)n;
		break;
	case 'f':
		ok = parse_number(w + 1, 2, 0, &n);
		v->flags = (uint64_t)n;
		break;
	case 'p':
		ok = w[1] == '\0' || (strchr("hnl", w[1]) && w[2] == '\0');
		v->priority = w[1] == 'h' ? 0 : w[1] == 'l' ? 2 : 1;
		break;
	default:
		return false;
	}
	*ring_words = true;
	return ok;
}

static int parse_key(const char *key, struct iov *v)
{
	char copy[sizeof v->key], *rest = copy, *w;
	bool ring_words = false;

	if (strlen(key) >= sizeof copy)
		return EINVAL;
	memcpy(copy, key, strlen(key) + 1);
	memcpy(v->key, key, strlen(key) + 1);
	v->priority = 1;
	w = strsep(&rest, ".");
	if (strlen(w) != 36 || !parse_uuid(w, v->id))
		return EINVAL;
	while ((w = strsep(&rest, ".")) != NULL)
		if (!parse_word(w, v, &ring_words))
			return EINVAL;
	return ring_words && !v->is_ring ? EINVAL : 0;
}

/* A file right below /dev/shm that both see. */
static int map(struct iov *v, const char *target)
{
	const char *name = target + strlen(WIRE_SHM);
	struct stat st;
	int fd, error = 0;

	if (strlen(target) >= sizeof v->target || strncmp(target, WIRE_SHM, strlen(WIRE_SHM)) != 0)
		return EINVAL;
	memcpy(v->target, target, strlen(target) + 1);
	while (*name == '/')
		name++;
	fd = strchr(name, '/') ? -1 : shm_open(name, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
	    v->block > (uint64_t)st.st_size ||
	    (v->is_ring && v->depth > wire_ring_entries((size_t)st.st_size)))
		error = EINVAL;
	if (error == 0) {
		v->size = (uint64_t)st.st_size;
		v->base = mmap(NULL, v->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (v->base == MAP_FAILED)
			error = EIO;
	}
	if (fd >= 0)
		close(fd);
	return error;
}

static void unref_locked(struct iov *v)
{
	if (--v->refs == 0) {
		munmap(v->base, v->size);
		free(v);
	}
}

void iov_unref(struct iov *v)
{
	pthread_mutex_lock(&lock);
	unref_locked(v);
	pthread_mutex_unlock(&lock);
}

static struct iov **find_locked(const struct iov *like)
{
	struct iov **p = &iovs;

	while (*p && strcmp((*p)->key, like->key) != 0 &&
	       memcmp((*p)->id, like->id, sizeof like->id) != 0)
		p = &(*p)->next;
	return p;
}

/* In the list, and for a ring known to its workers. */
static int publish(struct iov *v)
{
	struct iov **p;
	int error = 0;

	pthread_mutex_lock(&lock);
	p = find_locked(v);
	if (*p) {
		error = EEXIST;
	} else {
		v->number = next_number++;
		v->refs = v->is_ring ? 2 : 1;
		error = v->is_ring ? ring_add(v) : 0;
		if (error == 0)
			*p = v;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static int make(struct iov *v, const char *key, const char *target, const struct fuse_ctx *who)
{
	int error = parse_key(key, v);

	v->uid = who->uid;
	v->gid = who->gid;
	v->pid = who->pid;
	if (error == 0)
		error = fault_of_ring(v->is_ring, v->depth);
	if (error == 0)
		error = map(v, target);
	if (error != 0)
		return error;
	error = publish(v);
	if (error != 0)
		munmap(v->base, v->size);
	return error;
}

int iov_add(const char *key, const char *target, const struct fuse_ctx *who, struct iov *out)
{
	struct iov *v = calloc(1, sizeof *v);
	int error = v ? make(v, key, target, who) : ENOMEM;

	if (error != 0) {
		free(v);
		return error;
	}
	count(v->is_ring ? N_ring_made : N_iov_made, 1);
	return iov_by_key(key, who->uid, out);
}

static void remove_locked(struct iov **p)
{
	struct iov *v = *p;

	*p = v->next;
	v->gone = true;
	count(v->is_ring ? N_ring_gone : N_iov_gone, 1);
	if (v->is_ring)
		ring_remove(v);
	unref_locked(v);
}

int iov_remove(const char *key, uid_t uid)
{
	struct iov **p = &iovs;
	int error = 0;

	pthread_mutex_lock(&lock);
	while (*p && strcmp((*p)->key, key) != 0)
		p = &(*p)->next;
	if (!*p)
		error = ENOENT;
	else if ((*p)->uid != uid)
		error = EPERM;
	else
		remove_locked(p);
	pthread_mutex_unlock(&lock);
	return error;
}

void iov_remove_of(pid_t pid)
{
	bool any = false;

	pthread_mutex_lock(&lock);
	for (struct iov **p = &iovs; *p;) {
		if ((*p)->pid != pid) {
			p = &(*p)->next;
			continue;
		}
		remove_locked(p);
		any = true;
	}
	pthread_mutex_unlock(&lock);
	count(N_dead_clients, any);
}

static int copy_locked(const struct iov *v, uid_t uid, struct iov *out)
{
	if (!v)
		return ENOENT;
	if (v->uid != uid)
		return EPERM;
	*out = *v;
	out->base = NULL;
	return 0;
}

int iov_by_key(const char *key, uid_t uid, struct iov *out)
{
	const struct iov *v;
	int error;

	pthread_mutex_lock(&lock);
	for (v = iovs; v && strcmp(v->key, key) != 0; v = v->next)
		;
	error = copy_locked(v, uid, out);
	pthread_mutex_unlock(&lock);
	return error;
}

int iov_by_number(uint64_t number, uid_t uid, struct iov *out)
{
	const struct iov *v;
	int error;

	pthread_mutex_lock(&lock);
	for (v = iovs; v && v->number != number; v = v->next)
		;
	error = copy_locked(v, uid, out);
	pthread_mutex_unlock(&lock);
	return error;
}

bool iov_nth(int n, uid_t uid, struct iov *out)
{
	const struct iov *v;
	bool found;

	pthread_mutex_lock(&lock);
	for (v = iovs; v && (v->uid != uid || n-- > 0); v = v->next)
		;
	found = copy_locked(v, uid, out) == 0;
	pthread_mutex_unlock(&lock);
	return found;
}

static int judge(const struct iov *v, uid_t uid, uint64_t off, uint64_t len)
{
	if (!v)
		return EINVAL;
	if (v->uid != uid)
		return EPERM;
	if (off > v->size || len > v->size - off)
		return EINVAL;
	if (v->block && len > 0 && off / v->block != (off + len - 1) / v->block)
		return EINVAL;
	return 0;
}

int iov_memory(const uint8_t id[16], uid_t uid, uint64_t off, uint64_t len, struct iov **out,
	       char **memory)
{
	struct iov *v;
	int error;

	pthread_mutex_lock(&lock);
	for (v = iovs; v && (v->is_ring || memcmp(v->id, id, sizeof v->id) != 0); v = v->next)
		;
	error = judge(v, uid, off, len);
	if (error == 0) {
		v->refs++;
		*out = v;
		*memory = v->base + off;
	}
	pthread_mutex_unlock(&lock);
	return error;
}
