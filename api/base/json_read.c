/*
 * json_read.c - JSON text to nodes in one forward pass, iterative; the only stack is that of open
 * brackets.
 *
 * Names of an object are compared with the previous ones; beyond FEW through a hash table, randomly
 * keyed, so that no sender can cause quadratic time.
 *
 * The position of a fault is the end of the offending token, so that the preceding text identifies
 * the field (api/v1/scan.c); therefore an unexpected token is read to its end before it is refused.
 * Faults and positions are those of jansson 2.14, which this replaced; tests/api/reference checks
 * that.
 *
 * Owns nothing: nodes, tables and unescaped strings belong to the arena. Stateless; any thread.
 */
#include <skv/hash.h>
#include <skv/json.h>

#include "json_text.h"
#include <skv/utf8.h>

#define FEW 16u /* names of one object that are compared one by one */
#define MAX_NODES ((1u << 28) - 1)

struct level {
	uint32_t node;
	uint32_t n;    /* elements or fields so far */
	uint32_t *set; /* names as node + 1, open addressing; NULL: not more than FEW yet */
	uint32_t set_size;
	bool object;
};

struct reader {
	struct skv_json_at a;
	struct skv_arena *arena;
	struct skv_json_limits limits;
	struct skv_json_node *nodes;
	size_t n, cap;
	size_t values;
	unsigned depth;
	struct level levels[SKV_JSON_MAX_DEPTH];
	struct skv_secret secret; /* of the hash tables */
	bool has_secret;
};

static bool fail(struct reader *r, enum skv_json_fault fault)
{
	r->a.fault = fault;
	return false;
}

/* The next byte that is not white space, -1 at the end. */
static int peek(struct reader *r)
{
	const char *p = r->a.p, *end = r->a.end;

	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	r->a.p = p;
	return p < end ? (uint8_t)*p : -1;
}

static bool is_letter(char c) { return (unsigned char)((c | 0x20) - 'a') < 26; }

/* Refuses the token that begins here: at its end, or at its start if it is not a token. */
static bool unexpected(struct reader *r, const char *what)
{
	struct skv_json_at *a = &r->a;
	struct skv_json_node number;
	bool escaped;
	uint32_t c;
	size_t n;

	if (a->p == a->end)
		return skv_json_stop(a, a->p, SKV_JSON_SYNTAX, "the text ends too early");
	if (*a->p == '"') {
		a->p++;
		if (!skv_json_skip_string(a, &escaped))
			return false;
		r->a.what = what;
		return fail(r, SKV_JSON_SYNTAX);
	}
	if (*a->p == '-' || (*a->p >= '0' && *a->p <= '9'))
		return skv_json_number(a, r->limits.wide, &number) &&
		       skv_json_stop(a, a->p, SKV_JSON_SYNTAX, what);
	if (is_letter(*a->p)) {
		while (a->p < a->end && is_letter(*a->p))
			a->p++;
		return skv_json_stop(a, a->p, SKV_JSON_SYNTAX, what);
	}
	n = (uint8_t)*a->p < 0x80 ? 1 : skv_utf8_next(a->p, (size_t)(a->end - a->p), &c);
	a->p += n;
	a->what = what;
	return fail(r, n ? SKV_JSON_SYNTAX : SKV_JSON_UTF8);
}

static struct skv_json_node *add(struct reader *r)
{
	if (r->n == r->cap) {
		size_t cap = r->cap * 2 < MAX_NODES ? r->cap * 2 : MAX_NODES;
		struct skv_json_node *more;

		if (r->n == MAX_NODES) {
			fail(r, SKV_JSON_LIMIT);
			return NULL;
		}
		more = skv_arena_alloc(r->arena, cap * sizeof *more);
		if (!more) {
			fail(r, SKV_JSON_NOMEM);
			return NULL;
		}
		memcpy(more, r->nodes, r->n * sizeof *more);
		r->nodes = more;
		r->cap = cap;
	}
	r->nodes[r->n].span = 1;
	return &r->nodes[r->n++];
}

/* Reads the string that begins here. */
static bool string(struct reader *r)
{
	const char *s = ++r->a.p;
	struct skv_json_node *v;
	bool escaped, nul;
	size_t n;
	char *copy;

	if (!skv_json_skip_string(&r->a, &escaped))
		return false;
	n = (size_t)(r->a.p - s) - 1;
	if (escaped) {
		copy = skv_arena_alloc(r->arena, n);
		if (!copy)
			return fail(r, SKV_JSON_NOMEM);
		n = skv_json_unescape(s, n, copy, &nul);
		if (n == SIZE_MAX) {
			r->a.what = "half a surrogate pair";
			return fail(r, SKV_JSON_SYNTAX);
		}
		if (nul && !r->limits.nul)
			return fail(r, SKV_JSON_NUL);
		s = copy;
	}
	v = add(r);
	if (!v)
		return false;
	v->type = SKV_JSON_STRING;
	v->n = (uint32_t)n;
	v->s = s;
	return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Adds a name to the set; false if it is there already. */
static bool set_add(struct reader *r, struct level *l, uint32_t node)
{
	const struct skv_json_node *name = &r->nodes[node];
	uint32_t at =
		(uint32_t)skv_key_from_string(&r->secret, name->s, name->n).lo & (l->set_size - 1);

	for (; l->set[at]; at = (at + 1) & (l->set_size - 1))
		if (skv_json_is(&r->nodes[l->set[at] - 1], name->s, name->n))
			return false;
	l->set[at] = node + 1;
	return true;
}

/* A table of twice the size (or the first one) for the names so far, which are all different. */
static bool set_grow(struct reader *r, struct level *l)
{
	uint32_t node = l->node + 1;

	l->set_size = l->set ? 2 * l->set_size : 8 * FEW;
	l->set = skv_arena_calloc(r->arena, l->set_size, sizeof *l->set);
	if (!l->set)
		return fail(r, SKV_JSON_NOMEM);
	if (!r->has_secret)
		skv_random(&r->secret, sizeof r->secret);
	r->has_secret = true;
	for (uint32_t i = 0; i < l->n; i++) {
		set_add(r, l, node);
		node += 1 + r->nodes[node + 1].span;
	}
	return true;
}

/* Returns true if the newest node, a name, is new in its object. */
static bool name_is_new(struct reader *r, struct level *l)
{
	const struct skv_json_node *last = &r->nodes[r->n - 1], *name = &r->nodes[l->node + 1];

	if (l->n >= FEW) {
		if (l->n >= l->set_size / 2 && !set_grow(r, l))
			return false;
		return set_add(r, l, (uint32_t)(r->n - 1)) ? true : fail(r, SKV_JSON_TWICE);
	}
	for (; name < last; name = skv_json_next(name + 1))
		if (skv_json_is(name, last->s, last->n))
			return fail(r, SKV_JSON_TWICE);
	return true;
}

/* Name and colon of a field; `c` is its first byte. */
static bool name(struct reader *r, struct level *l, int c)
{
	if (c != '"')
		return unexpected(r, "a field name or } is expected");
	if (!string(r) || !name_is_new(r, l))
		return false;
	if (peek(r) != ':')
		return unexpected(r, "a colon is expected");
	r->a.p++;
	return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool open_bracket(struct reader *r, bool object)
{
	struct skv_json_node *v;

	if (r->depth == r->limits.depth || r->values == r->limits.values)
		return fail(r, SKV_JSON_LIMIT);
	r->values++;
	r->levels[r->depth++] = (struct level){ .node = (uint32_t)r->n, .object = object };
	v = add(r);
	if (!v)
		return false;
	v->type = object ? SKV_JSON_OBJECT : SKV_JSON_ARRAY;
	r->a.p++;
	return true;
}

static void close_bracket(struct reader *r, const struct level *l)
{
	r->nodes[l->node].n = l->n;
	r->nodes[l->node].span = (uint32_t)(r->n - l->node);
	r->depth--;
	r->a.p++;
}

static bool word(struct reader *r, const char *text, size_t n, enum skv_json_type type)
{
	const char *p = r->a.p;
	size_t left = (size_t)(r->a.end - p);
	struct skv_json_node *v;

	if (left < n || memcmp(p, text, n) != 0 || (left > n && is_letter(p[n])))
		return unexpected(r, "invalid token");
	v = add(r);
	if (!v)
		return false;
	v->type = type;
	v->n = 0;
	r->a.p += n;
	return true;
}

/* Reads a value that begins with `c`. A bracket is only opened. */
static bool value(struct reader *r, int c)
{
	struct skv_json_node *v;

	switch (c) {
	case '"':
		return string(r);
	case '{':
	case '[':
		return open_bracket(r, c == '{');
	case 't':
		return word(r, "true", 4, SKV_JSON_TRUE);
	case 'f':
		return word(r, "false", 5, SKV_JSON_FALSE);
	case 'n':
		return word(r, "null", 4, SKV_JSON_NULL);
	default:
		break;
	}
	if (c != '-' && (c < '0' || c > '9'))
		return unexpected(r, "a value is expected");
	v = add(r);
	return v && skv_json_number(&r->a, r->limits.wide, v);
}

static bool document(struct reader *r)
{
	int c = peek(r);
	bool first = true; /* right after an opening bracket */

	if (c != '{' && c != '[')
		return unexpected(r, "{ is expected");
	if (!value(r, c))
		return false;
	while (r->depth) {
		struct level *l = &r->levels[r->depth - 1];
		unsigned depth = r->depth;

		c = peek(r);
		if (c == (l->object ? '}' : ']')) {
			close_bracket(r, l);
			first = false;
			continue;
		}
		if (!first) {
			if (c != ',')
				return unexpected(r, "a comma or closing bracket is expected");
			if (r->values == r->limits.values)
				return fail(r, SKV_JSON_LIMIT);
			r->values++;
			r->a.p++;
			c = peek(r);
		}
		if (l->object) {
			if (!name(r, l, c))
				return false;
			c = peek(r);
		}
		l->n++;
		if (!value(r, c))
			return false;
		first = r->depth > depth;
	}
	return peek(r) < 0 || unexpected(r, "nothing may follow the document");
}

bool skv_json_parse(struct skv_json_doc *doc, struct skv_arena *arena, const char *text, size_t n,
		    const struct skv_json_limits *limits)
{
	struct reader r;

	memset(&r, 0, offsetof(struct reader, levels));
	r.has_secret = false;
	r.a = (struct skv_json_at){ .p = text, .end = text + n };
	r.arena = arena;
	r.limits = *limits;
	if (r.limits.depth > SKV_JSON_MAX_DEPTH)
		r.limits.depth = SKV_JSON_MAX_DEPTH;
	/* Estimated for a list of 128-bit keys in hex, or of pairs of a 256-bit one and something
	 * short; denser texts grow it. */
	r.cap = 16 + n / 24;
	*doc = (struct skv_json_doc){ .root = NULL };
	if (n > UINT32_MAX || r.cap > MAX_NODES)
		fail(&r, SKV_JSON_LIMIT);
	else if (!(r.nodes = skv_arena_alloc(arena, r.cap * sizeof *r.nodes)))
		fail(&r, SKV_JSON_NOMEM);
	else if (document(&r))
		doc->root = r.nodes;
	doc->fault = r.a.fault;
	doc->at = (size_t)(r.a.p - text);
	doc->what = r.a.what;
	return doc->root != NULL;
}

void skv_json_line(const char *text, size_t at, unsigned *line, unsigned *column)
{
	*line = 1;
	*column = 0;
	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n') {
			++*line;
			*column = 0;
		} else if (((uint8_t)text[i] & 0xc0) != 0x80) {
			++*column;
		}
	}
}

const struct skv_json_node *skv_json_get(const struct skv_json_node *object, const char *name,
					 size_t n)
{
	const struct skv_json_node *at;

	if (!object || object->type != SKV_JSON_OBJECT)
		return NULL;
	at = skv_json_first(object);
	for (uint32_t i = 0; i < object->n; i++) {
		if (skv_json_is(at, name, n))
			return at + 1;
		at = skv_json_next(at + 1);
	}
	return NULL;
}
