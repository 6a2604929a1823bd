// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The timeline as a picture: a row for each endpoint, a bar for each phase.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "timeline.h"

#define MAX_ROWS	200
#define ROW		22	/* height of a row */
#define LEFT		300	/* where the bars start */
#define WIDTH		900	/* of the bars */
#define TOP		70	/* room for title and legend */

static const char *const colours[PHASES] = {
	[PHASE_NONE] = "#d8d8d8",
	[PHASE_ADDRESS] = "#e6a817",
	[PHASE_ROUTE] = "#c77c11",
	[PHASE_PREPARE] = "#8f8f8f",
	[PHASE_REQUEST] = "#2f6db5",
	[PHASE_CONFIRM] = "#7a4fb5",
	[PHASE_ANSWER] = "#2f9db5",
	[PHASE_ACCEPT] = "#7a4fb5",
	[PHASE_CONNECTED] = "#3f9b45",
	[PHASE_END] = "#5a3d2b",
};

/**
 * struct picture - what is being drawn
 * @f: where it goes
 * @start: time at the left edge, in us
 * @span: time from there to the right edge
 */
struct picture {
	FILE *f;
	uint64_t start;
	double span;
};

static double x_of(const struct picture *p, uint64_t us)
{
	return LEFT + (us - p->start) * WIDTH / p->span;
}

/* What a program is called is not to become markup. */
static void text(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '>')
			fputs("&gt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else if ((unsigned char)*s >= ' ')
			fputc(*s, f);
	}
}

static void legend(const struct picture *p)
{
	/* two phases share a name and a colour */
	int phase, x = LEFT;

	for (phase = 0; phase < PHASES; phase++) {
		if (phase == PHASE_ACCEPT)
			continue;
		fprintf(p->f, "<rect x='%d' y='36' width='12' height='12' fill='%s'/>", x,
			colours[phase]);
		fprintf(p->f, "<text x='%d' y='46'>%s</text>\n", x + 16, phase_names[phase]);
		x += 34 + 7 * strlen(phase_names[phase]);
	}
}

/* A line at every tenth of the time. */
static void grid(const struct picture *p, int height)
{
	double ms;
	int i, x;

	for (i = 0; i <= 10; i++) {
		x = LEFT + i * WIDTH / 10;
		ms = p->span * i / 10 / 1000;
		fprintf(p->f, "<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='#ddd'/>", x, TOP, x,
			height - 20);
		fprintf(p->f, "<text x='%d' y='%d' text-anchor='middle'>%.*f ms</text>\n", x,
			height - 6, p->span < 100000 ? 2 : 0, ms);
	}
}

static void bar(const struct picture *p, int y, uint64_t from, const struct step *step)
{
	double x = x_of(p, from), width = x_of(p, step->us) - x;

	fprintf(p->f, "<rect x='%.2f' y='%d' width='%.2f' height='%d' fill='%s'><title>", x, y,
		width < 0.5 ? 0.5 : width, ROW - 8, colours[step->phase]);
	text(p->f, step->text);
	fprintf(p->f, ", after %.3f ms</title></rect>\n", (step->us - from) / 1e3);
}

/* What went wrong is a mark on top of the bars. */
static void mark(const struct picture *p, int y, const struct step *step)
{
	fprintf(p->f, "<circle cx='%.2f' cy='%d' r='5' fill='#d11'><title>", x_of(p, step->us),
		y + (ROW - 8) / 2);
	text(p->f, step->text);
	fputs("</title></circle>\n", p->f);
}

static void row(const struct picture *p, int y, const struct life *life)
{
	uint64_t since = life->steps[0].us;
	const struct step *step;
	size_t i;

	fprintf(p->f, "<text x='6' y='%d'>%u:%u %s ", y + 12, life->ctx, life->ep,
		life->listening ? "listens" : life->passive ? "from" : "to");
	text(p->f, life->listening ? life->src : life->dst);
	fputs("</text>\n", p->f);
	for (i = 1; i < life->count; i++) {
		step = &life->steps[i];
		if (step->aside)
			continue;
		bar(p, y, since, step);
		since = step->us;
	}
	for (i = 0; i < life->count; i++)
		if (life->steps[i].failed)
			mark(p, y, &life->steps[i]);
}

static void find_span(const struct timeline *t, size_t rows, struct picture *p)
{
	uint64_t end = 0, last;
	size_t i;

	p->start = t->lives[0].steps[0].us;
	for (i = 0; i < rows; i++) {
		last = t->lives[i].steps[t->lives[i].count - 1].us;
		if (last > end)
			end = last;
	}
	p->span = end > p->start ? end - p->start : 1;
}

int timeline_svg(const struct timeline *t, const char *file, const char *title)
{
	size_t rows = t->count < MAX_ROWS ? t->count : MAX_ROWS, i;
	struct picture p = {};
	int height = TOP + rows * ROW + 30, failed;

	p.f = fopen(file, "we");
	if (!p.f)
		return -1;
	find_span(t, rows, &p);
	fprintf(p.f,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
		"font-family='sans-serif' font-size='11'>\n"
		"<rect width='100%%' height='100%%' fill='white'/>\n"
		"<text x='6' y='20' font-size='15'>Connections of ",
		LEFT + WIDTH + 40, height);
	text(p.f, title);
	if (rows < t->count)
		fprintf(p.f, ": the first %zu of %zu endpoints", rows, t->count);
	fputs("</text>\n", p.f);
	legend(&p);
	grid(&p, height);
	for (i = 0; i < rows; i++)
		row(&p, TOP + i * ROW + 4, &t->lives[i]);
	fputs("</svg>\n", p.f);
	failed = ferror(p.f);
	if (fclose(p.f))
		return -1;
	if (failed)
		errno = EIO;
	return failed ? -1 : 0;
}
