/*
 * test_rdma_pump.c - the pump of queue pairs on a stand-in for a device, in this process: it moves
 * bytes to and from an array, and fails as devices do. Without any RDMA, also under sanitizers; on
 * Soft-RoCE the same code runs in tests/rdma.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/log.h>

#include "rdma_qp.h"

#define REMOTE (1u << 20)
#define KEY 77u
#define BASE 0x7000000u /* the address of the array's first byte, for RDMA */

/* ---- the stand-in ---------------------------------------------------------------------------- */

static struct {
	uint8_t bytes[REMOTE];
	struct ibv_wc done[SKV_QP_DEPTH]; /* not polled yet */
	uint32_t n, posts, requests;
	uint32_t arrives; /* bytes: longer packets are lost on the way, as behind a smaller MTU */
	bool broken;      /* in state error: what comes is flushed */
} device;

static enum ibv_wc_status serve(const struct ibv_send_wr *wr)
{
	uint64_t at = wr->wr.rdma.remote_addr - BASE, length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (device.broken)
		return IBV_WC_WR_FLUSH_ERR;
	if (length > device.arrives)
		return IBV_WC_RETRY_EXC_ERR;
	if (wr->wr.rdma.rkey != KEY || at > REMOTE || length > REMOTE - at)
		return IBV_WC_REM_ACCESS_ERR;
	for (int i = 0; i < wr->num_sge; i++) {
		void *here = (void *)(uintptr_t)wr->sg_list[i].addr;
		const uint32_t n = wr->sg_list[i].length;

		if (wr->opcode == IBV_WR_RDMA_WRITE)
			memcpy(device.bytes + at, here, n);
		else
			memcpy(here, device.bytes + at, n);
		at += n;
	}
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	device.posts++;
	for (; wr; wr = wr->next) {
		assert_true(device.n < SKV_QP_DEPTH);
		device.done[device.n] = (struct ibv_wc){ .wr_id = wr->wr_id, .status = serve(wr) };
		device.broken |= device.done[device.n++].status != IBV_WC_SUCCESS;
		device.requests++;
	}
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	const uint32_t n = device.n < (uint32_t)most ? device.n : (uint32_t)most;

	(void)cq;
	memcpy(wc, device.done, n * sizeof *wc);
	device.n -= n;
	memmove(device.done, device.done + n, device.n * sizeof *wc);
	return (int)n;
}

static const char *status_text(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded"
					      : "another error";
}

static const char *device_name(struct ibv_device *d)
{
	(void)d;
	return "stand-in";
}

static const struct skv_rdma_lib lib = { .ibv_wc_status_str = status_text,
					 .ibv_get_device_name = device_name };

/* ---- one queue pair -------------------------------------------------------------------------- */

static struct ibv_context context = { .ops = { .post_send = post_send, .poll_cq = poll_cq } };
static struct ibv_qp ibv_qp = { .context = &context };
static struct ibv_cq ibv_cq = { .context = &context };
static struct ibv_mr slots_mr = { .lkey = 1 };
static struct rdma_cm_id id = { .verbs = &context, .qp = &ibv_qp };
static struct skv_mn_keys keys = { .address = BASE, .n = 1, .rkey = { KEY } };
static FILE *log_file;

struct scene {
	struct skv_rdma_device device;
	struct skv_qp q;
	struct skv_io_call by;
};

static const struct skv_mn_keys *keys_of(const struct skv_io_run *r)
{
	(void)r;
	return &keys;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	memset(&device, 0, sizeof device);
	device.arrives = UINT32_MAX;
	s->device = (struct skv_rdma_device){ .verbs = &context, .depth = 8, .sges = 4 };
	s->q.lib = &lib;
	s->q.device = &s->device;
	s->q.id = &id;
	s->q.cq = &ibv_cq;
	s->q.control_fd = -1;
	s->q.slots_mr = &slots_mr;
	s->q.slots = malloc(SKV_QP_SLOT * SKV_QP_SLOTS);
	assert_non_null(s->q.slots);
	assert_int_equal(skv_rdma_create(&s->q.rdma, NULL), SKV_OK);
	s->by = (struct skv_io_call){ .clock = &skv_clock_system, .at_ms = UINT64_MAX };
	log_file = tmpfile();
	assert_non_null(log_file);
	skv_log_setup(fileno(log_file), false, SKV_LOG_WARN);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	skv_log_setup(STDERR_FILENO, false, SKV_LOG_INFO);
	fclose(log_file);
	skv_rdma_destroy(s->q.rdma);
	free(s->q.slots);
	free(s);
	return 0;
}

static const char *logged(void)
{
	static char text[1024];
	size_t n;

	rewind(log_file);
	n = fread(text, 1, sizeof text - 1, log_file);
	text[n] = '\0';
	return text;
}

static int move(struct scene *s, bool write, uint64_t at, void *data, size_t n)
{
	struct iovec iov = { data, n };
	struct skv_io_run r = { .offset = at, .iov = &iov, .n_iov = 1, .length = n };
	int rc = skv_qp_move(&s->q, write, &r, 1, keys_of, &s->by);

	assert_true(rc != SKV_OK || r.done == n);
	return rc;
}

static void pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + seed + i / 251);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void bytes_come_back(void **state)
{
	static uint8_t out[REMOTE - 3], in[REMOTE - 3];
	static const size_t sizes[] = { 1, 4096, SKV_QP_SLOT, SKV_QP_SLOT + 1, sizeof out };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		pattern(out, sizes[i], (unsigned)i);
		memset(in, 0, sizes[i]);
		assert_int_equal(move(*state, true, 3, out, sizes[i]), SKV_OK);
		assert_memory_equal(device.bytes + 3, out, sizes[i]);
		assert_int_equal(move(*state, false, 3, in, sizes[i]), SKV_OK);
		assert_memory_equal(in, out, sizes[i]);
	}
	assert_true(device.posts < device.requests); /* several with one doorbell */
	assert_string_equal(logged(), "");
}

/* Small requests arrive, large ones never do: the sentence names what to compare. */
static void the_mtus_of_both_ends_differ(void **state)
{
	uint8_t data[4096] = { 0 };

	device.arrives = 1024;
	assert_int_equal(move(*state, true, 0, data, 1024), SKV_OK);
	assert_string_equal(logged(), "");
	assert_int_equal(move(*state, true, 0, data, 4096), SKV_E_NETWORK);
	assert_non_null(strstr(logged(), "RDMA over stand-in failed: transport retry counter "
					 "exceeded: is the link up at both ends, with the same "
					 "MTU (ibv_devinfo)?"));
}

/* The slab's key is of a past epoch: nothing is wrong with the network, and nobody is warned. */
static void the_slab_is_gone(void **state)
{
	uint8_t data[512] = { 0 };

	keys.rkey[0] = KEY + 1;
	assert_int_equal(move(*state, false, 0, data, sizeof data), SKV_E_UNAVAILABLE);
	keys.rkey[0] = KEY;
	assert_string_equal(logged(), "");
}

static void nothing_is_posted_after_the_deadline(void **state)
{
	struct scene *s = *state;
	uint8_t data[512] = { 0 };

	s->by.at_ms = 0;
	assert_int_equal(move(s, true, 0, data, sizeof data), SKV_E_TIMEOUT);
	assert_int_equal(device.posts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(bytes_come_back),
		TEST(the_mtus_of_both_ends_differ),
		TEST(the_slab_is_gone),
		TEST(nothing_is_posted_after_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
