/*
 * serve.c - a connection of the data protocol (skv/memory_node.h), on its own thread.
 *
 * Bytes go from the socket into the slab and back (wire.c). Frames of the peer are checked; an
 * invalid frame ends the connection.
 */
#include "memnode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#define PASS_MS 10000u /* from the pass to its use */

static bool refuse(struct connection *c, uint8_t op, int status, const char *text)
{
	struct skv_mn_frame f = { .op = op, .status = (int16_t)status };

	assert(status < 0);
	f.extra = (uint32_t)strnlen(text, SKV_MN_TEXT_MAX - 1);
	return wire_answer(c, &f, text, f.extra, -1);
}

/* ---- the operations: false ends the connection ----------------------------------------------- */

/* The role that this token has. */
static int admit(struct connection *c, const char *token, struct skv_error *err)
{
	char header[SKV_MN_HELLO_MAX + 16];
	struct skv_tls_peer *peer = NULL;
	struct caller who;
	int rc = c->tls ? skv_tls_peer_of(c->tls, &peer, err) : SKV_OK;

	if (rc == SKV_OK) {
		snprintf(header, sizeof header, "Bearer %s", token);
		rc = skv_auth_check(&c->node->service->auth, *token ? header : NULL, peer, &who,
				    err);
		memset(header, 0, sizeof header);
	}
	skv_free(peer);
	if (rc == SKV_OK)
		c->role = who.role;
	return rc;
}

static bool hello(struct connection *c, const struct skv_mn_frame *f)
{
	struct memnode *m = c->node;
	struct skv_mn_frame yes = { .op = SKV_MN_HELLO, .extra = 16, .offset = m->epoch };
	char text[SKV_MN_HELLO_MAX + 1], why[SKV_MN_TEXT_MAX];
	struct skv_error err;
	uint8_t uuid[16] = { 0 };
	size_t n;

	if (f->op != SKV_MN_HELLO || f->extra > SKV_MN_HELLO_MAX ||
	    !wire_receive(c, text, f->extra))
		return false;
	text[f->extra] = '\0';
	n = strlen(text);
	if (c->clear)
		return refuse(c, f->op, SKV_E_UNSUPPORTED,
			      "this memory node has a certificate: its bytes go over TLS, from "
			      "clients that know how, and the storage's URL begins with https://");
	if (f->file != SKV_MN_VERSION)
		return refuse(c, f->op, SKV_E_UNSUPPORTED, "another version of the data protocol");
	if (strcmp(text, m->name) != 0) {
		snprintf(why, sizeof why,
			 "this memory node is '%s', not '%.64s': check the storage's URL", m->name,
			 text);
		return refuse(c, f->op, SKV_E_FOREIGN, why);
	}
	if (f->offset && f->offset != m->epoch)
		return refuse(c, f->op, SKV_E_FENCED,
			      "the memory node was started anew, and has nothing of before");
	if (admit(c, n < f->extra ? text + n + 1 : "", &err) != SKV_OK)
		return refuse(c, f->op, err.status, err.message);
	skv_mutex_lock(&m->lock);
	if (m->bound)
		memcpy(uuid, m->uuid, 16);
	skv_mutex_unlock(&m->lock);
	return wire_answer(c, &yes, uuid, sizeof uuid, -1);
}

static bool may_write(const struct connection *c) { return c->role >= ROLE_WRITE; }

static bool open_slab(struct connection *c, const struct skv_mn_frame *f)
{
	const bool write = f->flags & SKV_MN_FLAG_WRITE;
	struct skv_mn_frame yes = { .op = SKV_MN_OPEN, .file = f->file,
				    .extra = SKV_SUPERBLOCK_SIZE };
	uint8_t what[SKV_SUPERBLOCK_SIZE + SKV_MN_KEYS_BYTES(SKV_MN_DEVICES)];
	struct slab *b;
	bool good;

	if (write && !may_write(c))
		return refuse(c, f->op, SKV_E_FORBIDDEN, "the token's role does not allow writes");
	b = slabs_use(&c->node->slabs, f->file);
	if (!b)
		return refuse(c, f->op, SKV_E_UNAVAILABLE,
			      "the memory node does not have this slab (any more)");
	yes.length = b->length;
	yes.offset = b->mapped;
	memcpy(what, b->base, SKV_SUPERBLOCK_SIZE);
	if (f->flags & SKV_MN_FLAG_RDMA && b->keys.n > 0) {
		skv_mn_keys_encode(&b->keys, what + SKV_SUPERBLOCK_SIZE);
		yes.extra += SKV_MN_KEYS_BYTES(b->keys.n);
	}
	good = wire_answer(c, &yes, what, yes.extra,
		      !c->local ? -1
		      : write	? b->fd
				: b->read_fd);
	slabs_unuse(&c->node->slabs, b);
	return good;
}

/* The bytes that a frame names, between header and trailer; NULL: there is no such place. The
 * caller gives the slab back. */
static uint8_t *place(struct connection *c, const struct skv_mn_frame *f, struct slab **out)
{
	struct slab *b = slabs_use(&c->node->slabs, f->file);
	uint64_t end;

	*out = b;
	if (!b)
		return NULL;
	end = b->length - SKV_SUPERBLOCK_SIZE;
	if (f->offset < SKV_SUPERBLOCK_SIZE || f->offset > end || f->length > end - f->offset)
		return NULL;
	return b->base + f->offset;
}

static bool read_bytes(struct connection *c, const struct skv_mn_frame *f)
{
	struct skv_mn_frame yes = *f;
	struct slab *b;
	uint8_t *at;
	bool good;

	if (c->local || c->role < ROLE_READ)
		return false;
	at = place(c, f, &b);
	good = at ? wire_answer(c, &yes, at, f->length, -1)
		  : refuse(c, f->op, SKV_E_UNAVAILABLE,
			   "the memory node does not have these bytes (any more)");
	if (b)
		slabs_unuse(&c->node->slabs, b);
	return good;
}

static bool begin(struct connection *c, const struct skv_mn_frame *f)
{
	const struct skv_mn_frame yes = { .op = SKV_MN_BEGIN };
	uint64_t now = skv_now_ms(&skv_clock_system);

	if (!may_write(c))
		return refuse(c, f->op, SKV_E_FORBIDDEN, "the token's role does not allow writes");
	if (atomic_load(&c->begun))
		return false;
	c->written = 0;
	atomic_store(&c->until, now + (f->extra < SKV_MAX_SESSION_MS ? f->extra
								     : SKV_MAX_SESSION_MS));
	atomic_store(&c->begun, now ? now : 1);
	return wire_answer(c, &yes, NULL, 0, -1);
}

static bool write_bytes(struct connection *c, const struct skv_mn_frame *f)
{
	struct slab *b = NULL;
	uint8_t *at = c->local || !atomic_load(&c->begun) ? NULL : place(c, f, &b);
	bool good = at && wire_receive(c, at, f->length);

	if (b)
		slabs_unuse(&c->node->slabs, b);
	if (good)
		c->written += f->length;
	return good;
}

static bool end(struct connection *c)
{
	const struct skv_mn_frame yes = { .op = SKV_MN_END, .length = c->written };

	if (!atomic_exchange(&c->begun, 0))
		return false;
	return c->local || wire_answer(c, &yes, NULL, 0, -1);
}

static bool offer_rdma(struct connection *c, const struct skv_mn_frame *f)
{
	struct skv_mn_frame yes = { .op = SKV_MN_RDMA, .file = c->node->rdma_port };

	if (c->local || !c->node->rdma)
		return refuse(c, f->op, SKV_E_UNSUPPORTED, "this memory node offers no RDMA");
	yes.offset = mem_rdma_ticket(c);
	return yes.offset != 0 && wire_answer(c, &yes, NULL, 0, -1);
}

/* Contents of a ticket; the key is derived from all of them. */
struct ticket {
	uint64_t issued_ms;
	uint64_t role;
	uint8_t random[SKV_MN_TICKET - 16];
};

/* A pass to the local socket with this connection's role. */
static bool offer_local(struct connection *c, const struct skv_mn_frame *f)
{
	const struct skv_mn_frame yes = { .op = SKV_MN_LOCAL, .extra = sizeof(struct skv_mn_pass) };
	struct ticket t = { .issued_ms = skv_now_ms(&skv_clock_system), .role = c->role };
	struct skv_mn_pass pass;
	bool good;

	_Static_assert(sizeof t == SKV_MN_TICKET, "no padding");
	if (c->local || !skv_mn_place(pass.place))
		return refuse(c, f->op, SKV_E_UNSUPPORTED, "no slab can be mapped from here");
	skv_random(t.random, sizeof t.random);
	memcpy(pass.ticket, &t, sizeof t);
	skv_mac(c->node->secret, &t, sizeof t, pass.key);
	good = wire_answer(c, &yes, &pass, sizeof pass, -1);
	memset(&pass, 0, sizeof pass);
	return good;
}

static bool receive(struct connection *c, struct skv_mn_frame *f)
{
	uint8_t raw[SKV_MN_HEADER];

	return wire_receive(c, raw, sizeof raw) && skv_mn_decode(raw, f);
}

/* A frame of that operation, with a payload of n bytes. */
static bool receive_all(struct connection *c, enum skv_mn_op op, void *to, uint32_t n)
{
	struct skv_mn_frame f;

	return receive(c, &f) && f.op == op && f.extra == n && wire_receive(c, to, n);
}

/* Both ends prove that they know the key of a pass, the node first. */
static bool greet_local(struct connection *c)
{
	const struct skv_mn_frame mine = { .op = SKV_MN_LOCAL, .extra = SKV_MN_NONCE + SKV_MAC };
	const struct skv_mn_frame yes = { .op = SKV_MN_PROVE };
	uint8_t said[SKV_MN_TICKET + SKV_MN_NONCE], nonces[2 * SKV_MN_NONCE];
	uint8_t key[SKV_MAC], answer[SKV_MN_NONCE + SKV_MAC], proof[SKV_MAC], right[SKV_MAC];
	struct ticket t;
	uint64_t now;

	if (!receive_all(c, SKV_MN_LOCAL, said, sizeof said))
		return false;
	memcpy(&t, said, sizeof t);
	skv_mac(c->node->secret, &t, sizeof t, key);
	memcpy(nonces, said + SKV_MN_TICKET, SKV_MN_NONCE);
	skv_random(nonces + SKV_MN_NONCE, SKV_MN_NONCE);
	memcpy(answer, nonces + SKV_MN_NONCE, SKV_MN_NONCE);
	skv_mn_prove(key, true, nonces, answer + SKV_MN_NONCE);
	if (!wire_answer(c, &mine, answer, sizeof answer, -1) ||
	    !receive_all(c, SKV_MN_PROVE, proof, sizeof proof))
		return false;
	skv_mn_prove(key, false, nonces, right);
	now = skv_now_ms(&skv_clock_system);
	if (!skv_equal_secret(proof, right, sizeof right) || now - t.issued_ms > PASS_MS)
		return refuse(c, SKV_MN_PROVE, SKV_E_UNAUTHENTICATED,
			      "this ticket is not of this memory node, or too old");
	c->role = (enum role)t.role;
	return wire_answer(c, &yes, NULL, 0, -1);
}

static bool greet(struct connection *c)
{
	struct skv_mn_frame f;

	if (c->local ? !greet_local(c) : !receive(c, &f) || !hello(c, &f))
		return false;
	if (c->role < ROLE_READ)
		return false;
	atomic_store(&c->greeted, true);
	return true;
}

static bool next(struct connection *c)
{
	struct skv_mn_frame f;

	if (!receive(c, &f))
		return false;
	switch ((enum skv_mn_op)f.op) {
	case SKV_MN_OPEN:
		return open_slab(c, &f);
	case SKV_MN_READ:
		return read_bytes(c, &f);
	case SKV_MN_BEGIN:
		return begin(c, &f);
	case SKV_MN_WRITE:
		return write_bytes(c, &f);
	case SKV_MN_END:
		return end(c);
	case SKV_MN_RDMA:
		return offer_rdma(c, &f);
	case SKV_MN_LOCAL:
		return offer_local(c, &f);
	case SKV_MN_HELLO:
	case SKV_MN_PROVE:
		break;
	}
	return false;
}

void connection_serve(struct connection *c)
{
	assert(c->role == ROLE_OPEN && !atomic_load(&c->begun) && !atomic_load(&c->greeted));
	if (wire_open(c) && greet(c))
		while (next(c))
			;
	mem_rdma_end(c);
	atomic_store(&c->begun, 0);
}
