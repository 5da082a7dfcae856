/*
 * gzip.c - compresses /metrics for a client that takes it: a tenth of the bytes of each scrape. No
 * other answer is compressed: locations are small, and checksums of them are not worth the time.
 */
#include "internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include <skv/mem.h>

#define LEVEL 1 /* the fastest: twice the size of the best */
#define LEAST 1024u

/* Returns true if gzip is among the codings, with a weight other than 0. */
static bool takes_gzip(const char *accept)
{
	for (const char *p = accept; p && *p; p += strspn(p, ", \t")) {
		const size_t n = strcspn(p, ",");
		const char *weight = memmem(p, n, "q=", 2);

		if (strncasecmp(p, "gzip", 4) == 0 && (n == 4 || strchr("; \t,", p[4])))
			return !weight || strtod(weight + 2, NULL) > 0;
		p += n;
	}
	return false;
}

bool skv_gzip_wanted(const struct skv_httpd_request *r)
{
	return r->c.status == SKV_OK && r->c.route && r->c.route->flags & ROUTE_SCRAPE &&
	       !r->c.fixed && r->c.out.len >= LEAST &&
	       takes_gzip(MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, "Accept-Encoding"));
}

bool skv_gzip(struct skv_buf *b)
{
	z_stream z = { 0 };
	struct skv_buf out = { 0 };
	bool done;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	out.cap = deflateBound(&z, b->len);
	out.data = skv_malloc(out.cap);
	z.next_in = b->data;
	z.avail_in = (uInt)b->len;
	z.next_out = out.data;
	z.avail_out = (uInt)out.cap;
	done = out.data && deflate(&z, Z_FINISH) == Z_STREAM_END;
	out.len = z.total_out;
	assert(out.len <= out.cap);
	deflateEnd(&z);
	skv_buf_destroy(done ? b : &out);
	if (done)
		*b = out;
	return done;
}
