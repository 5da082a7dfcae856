/*
 * wire_api.h - the structs and functions of libhf3fs_api_shared.so as libhf3fs_wire_client.so
 * has them: the same names and layouts, written down from 3FS's hf3fs_usrbio.h for x86-64 and
 * checked at compile time. What each function returns differs, as it does there; see
 * wire_client.c and wire_io.c.
 */
#ifndef SKV_TEST_HF3FS_WIRE_API_H
#define SKV_TEST_HF3FS_WIRE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct hf3fs_iov {
	uint8_t *base;
	void *iovh; /* NULL: wrapped */
	uint8_t id[16];
	char mount_point[256];
	size_t size, block_size;
	int numa;
};

struct hf3fs_ior {
	struct hf3fs_iov iov;
	void *iorh;
	char mount_point[256];
	bool for_read;
	int io_depth, priority, timeout;
	uint64_t flags;
};

struct hf3fs_cqe {
	int32_t index, reserved;
	int64_t result;
	const void *userdata;
};

#define API_AT(s, f, o) _Static_assert(offsetof(struct s, f) == (o), #s "." #f)
_Static_assert(sizeof(struct hf3fs_iov) == 312, "hf3fs_iov");
API_AT(hf3fs_iov, iovh, 8);
API_AT(hf3fs_iov, id, 16);
API_AT(hf3fs_iov, mount_point, 32);
API_AT(hf3fs_iov, size, 288);
API_AT(hf3fs_iov, block_size, 296);
API_AT(hf3fs_iov, numa, 304);
_Static_assert(sizeof(struct hf3fs_ior) == 600, "hf3fs_ior");
API_AT(hf3fs_ior, iorh, 312);
API_AT(hf3fs_ior, mount_point, 320);
API_AT(hf3fs_ior, for_read, 576);
API_AT(hf3fs_ior, io_depth, 580);
API_AT(hf3fs_ior, priority, 584);
API_AT(hf3fs_ior, timeout, 588);
API_AT(hf3fs_ior, flags, 592);
_Static_assert(sizeof(struct hf3fs_cqe) == 24, "hf3fs_cqe");
API_AT(hf3fs_cqe, result, 8);
API_AT(hf3fs_cqe, userdata, 16);

#define API __attribute__((visibility("default")))

API bool hf3fs_is_hf3fs(int fd);
API int hf3fs_extract_mount_point(char *mount_point, int size, const char *path);
API int hf3fs_iovcreate(struct hf3fs_iov *iov, const char *mount_point, size_t size,
			size_t block_size, int numa);
API int hf3fs_iovopen(struct hf3fs_iov *iov, const uint8_t id[16], const char *mount_point,
		      size_t size, size_t block_size, int numa);
API void hf3fs_iovunlink(struct hf3fs_iov *iov);
API void hf3fs_iovdestroy(struct hf3fs_iov *iov);
API int hf3fs_iovwrap(struct hf3fs_iov *iov, void *base, const uint8_t id[16],
		      const char *mount_point, size_t size, size_t block_size, int numa);
API size_t hf3fs_ior_size(int entries);
API int hf3fs_iorcreate(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
			int io_depth, int numa);
API int hf3fs_iorcreate2(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
			 int io_depth, int priority, int numa);
API int hf3fs_iorcreate3(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
			 int io_depth, int priority, int timeout, int numa);
API int hf3fs_iorcreate4(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
			 int io_depth, int timeout, int numa, uint64_t flags);
API void hf3fs_iordestroy(struct hf3fs_ior *ior);
API int hf3fs_reg_fd(int fd, uint64_t flags);
API void hf3fs_dereg_fd(int fd);
API int hf3fs_io_entries(const struct hf3fs_ior *ior);
API int hf3fs_prep_io(const struct hf3fs_ior *ior, const struct hf3fs_iov *iov, bool read,
		      void *ptr, int fd, size_t off, uint64_t len, const void *userdata);
API int hf3fs_submit_ios(const struct hf3fs_ior *ior);
API int hf3fs_wait_for_ios(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int cqec,
			   int min_results, const struct timespec *abs_timeout);
API int hf3fs_hardlink(const char *target, const char *name);
API int hf3fs_punchhole(int fd, int n, const size_t *start, const size_t *end, size_t flags);

/* A client's side of a ring, behind hf3fs_ior.iorh: made by wire_ring_client, used by wire_io.c. */
struct wire_client_ring;
struct wire_client_ring *wire_ring_client(void *base, size_t bytes, const char *mount_point,
					  int priority, int *error);
void wire_ring_client_free(struct wire_client_ring *r);

#endif
