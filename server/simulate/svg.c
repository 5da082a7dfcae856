/*
 * svg.c - hit rate over capacity as a picture, readable on light and dark pages. No state.
 *
 * Plain SVG 1.1 with a style sheet; a page that is dark says so by prefers-color-scheme.
 */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WIDTH 760
#define HEIGHT 440
#define LEFT 60
#define RIGHT 600 /* of the plot; the legend stands beside it */
#define TOP 40
#define BOTTOM 385
#define COLOURS 10u

struct axes {
	double x0, x1; /* logarithms of the capacities at both ends */
	double top;    /* of y */
	double step;
};

static const char style[] =
	"<style>\n"
	"text{font:12px sans-serif;fill:#24292f}.title{font-size:14px;font-weight:bold}\n"
	".page{fill:#fff}.grid{stroke:#d8dee4}.axis{stroke:#57606a}\n"
	"polyline,.key{fill:none;stroke-width:1.8}.bound{stroke:#8c959f;stroke-dasharray:5 4}.first{stroke-width:3.2}\n"
	".c0{stroke:#0550ae}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df;stroke-dasharray:8 3}.c4{stroke:#cf222e}\n"
	".c5{stroke:#0a7b83}.c6{stroke:#9a6700}.c7{stroke:#bf3989}.c8{stroke:#57606a}.c9{stroke:#4d2d00}\n"
	"@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#8b949e}\n"
	".c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#3fb950}.c3{stroke:#bc8cff}.c4{stroke:#ff7b72}\n"
	".c5{stroke:#39c5cf}.c6{stroke:#d29922}.c7{stroke:#f778ba}.c8{stroke:#b1bac4}.c9{stroke:#c69026}}\n"
	"</style>\n";

static void escaped(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '<' || *s == '&')
			fputs(*s == '<' ? "&lt;" : "&amp;", out);
		else if ((unsigned char)*s >= ' ' && (unsigned char)*s < 0x7f)
			fputc(*s, out);
		else
			fputc('?', out);
	}
}

static double x_of(const struct axes *a, double blocks)
{
	return LEFT + (RIGHT - LEFT) * (a->x1 > a->x0 ? (log10(blocks) - a->x0) / (a->x1 - a->x0) : 0.5);
}

static double y_of(const struct axes *a, double rate) { return BOTTOM - (BOTTOM - TOP) * rate / a->top; }

static struct axes axes_of(const struct report *r)
{
	static const double steps[] = { 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2 };
	struct axes a = { .x0 = 20, .top = 0.0001 };
	size_t s = 0;

	for (uint32_t b = 0; b < r->n_blocks; b++) {
		double x = log10((double)r->blocks[b]);

		a.x0 = x < a.x0 ? x : a.x0;
		a.x1 = x > a.x1 ? x : a.x1;
		for (uint32_t p = 0; p < r->n_policies; p++) {
			double rate = report_rate(report_run(r, 0, p, b)->counts.prefix_hits, r->refs);

			a.top = rate > a.top ? rate : a.top;
		}
	}
	while (s + 1 < sizeof steps / sizeof steps[0] && a.top / steps[s] > 8)
		s++;
	a.step = steps[s];
	a.top = ceil(a.top / a.step) * a.step;
	return a;
}

/* "500", "20k", "1M" */
static void print_count(FILE *out, double v)
{
	if (v >= 1e6)
		fprintf(out, "%gM", v / 1e6);
	else if (v >= 1e3)
		fprintf(out, "%gk", v / 1e3);
	else
		fprintf(out, "%g", v);
}

static void x_tick(const struct report *r, const struct axes *a, double v, FILE *out)
{
	double x = x_of(a, v);

	if (x < LEFT - 0.5 || x > RIGHT + 0.5)
		return;
	fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, TOP, BOTTOM, x,
		BOTTOM + 17);
	print_count(out, v);
	fputs("</text>\n", out);
	if (!r->sizing)
		return;
	fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g</text>\n", x, BOTTOM + 32,
		(double)r->sizing->bytes.whole * r->trace_tokens * v / 1e9);
}

static void draw_axes(const struct report *r, const struct axes *a, FILE *out)
{
	static const int in_decade[] = { 1, 2, 5 };

	for (int i = 0; i * a->step <= a->top * 1.0001; i++)
		fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT,
			y_of(a, i * a->step), RIGHT, LEFT - 6, y_of(a, i * a->step) + 4, i * a->step);
	for (double decade = pow(10, floor(a->x0)); decade <= pow(10, a->x1) * 1.0001; decade *= 10)
		for (size_t i = 0; i < 3; i++)
			x_tick(r, a, decade * in_decade[i], out);
	fprintf(out, "<path class=\"axis\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, BOTTOM, RIGHT);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">capacity, blocks of %u tokens%s</text>\n", (LEFT + RIGHT) / 2,
		HEIGHT - 8, r->trace_tokens, r->sizing ? "; below: GB of all ranks" : "");
	fprintf(out, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">prefix hit rate</text>\n",
		(TOP + BOTTOM) / 2);
}

static void class_of(const struct report *r, uint32_t policy, char out[24])
{
	uint32_t colour = 0;

	for (uint32_t p = 0; p < policy; p++)
		colour += strcmp(r->policies[p], "belady") != 0;
	if (strcmp(r->policies[policy], "belady") == 0)
		snprintf(out, 24, "bound");
	else
		snprintf(out, 24, "c%u%s", colour % COLOURS, colour ? "" : " first");
}

static void draw_curve(const struct report *r, const struct axes *a, uint32_t policy, FILE *out)
{
	int y = TOP + 12 + 20 * (int)policy;
	char class[24];

	class_of(r, policy, class);
	fprintf(out, "<polyline class=\"%s\" points=\"", class);
	for (uint32_t b = 0; b < r->n_blocks; b++)
		fprintf(out, "%s%.1f,%.1f", b ? " " : "", x_of(a, (double)r->blocks[b]),
			y_of(a, report_rate(report_run(r, 0, policy, b)->counts.prefix_hits, r->refs)));
	fprintf(out, "\"/>\n<path class=\"key %s\" d=\"M%d %dh24\"/><text x=\"%d\" y=\"%d\">", class, RIGHT + 16, y, RIGHT + 46, y + 4);
	escaped(out, r->policies[policy]);
	fputs("</text>\n", out);
}

int report_svg(const struct report *r, FILE *out)
{
	struct axes a = axes_of(r);

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>Prefix hit rate over capacity: ",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	escaped(out, r->refs->name);
	fprintf(out, "</title>\n%s<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n<text class=\"title\" x=\"%d\" y=\"24\">", style, WIDTH,
		HEIGHT, LEFT);
	escaped(out, r->refs->name);
	fputs("</text>\n", out);
	draw_axes(r, &a, out);
	for (uint32_t p = r->n_policies; p-- > 0;) /* the first on top */
		draw_curve(r, &a, p, out);
	fputs("</svg>\n", out);
	return ferror(out) ? -1 : 0;
}
