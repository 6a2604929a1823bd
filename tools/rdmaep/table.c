// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tables for people.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

void table_add(struct table *table, const char *fmt, ...)
{
	char **grown, *text;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	grown = realloc(table->cells, (table->count + 1) * sizeof(*grown));
	if (len < 0 || !grown)
		abort();
	table->cells = grown;
	table->cells[table->count++] = text;
}

static void find_widths(const struct table *table, size_t *width)
{
	size_t i, len;

	for (i = 0; i < table->count; i++) {
		len = strlen(table->cells[i]);
		if (len > width[i % table->columns])
			width[i % table->columns] = len;
	}
}

/* What comes last in a line has no spaces after it. */
static void print_cell(const struct table *table, size_t i, int width)
{
	size_t column = i % table->columns;

	if (table->right & 1u << column)
		printf("%*s", width, table->cells[i]);
	else if (column + 1 < table->columns)
		printf("%-*s", width, table->cells[i]);
	else
		fputs(table->cells[i], stdout);
	fputs(column + 1 < table->columns ? "  " : "\n", stdout);
}

void table_print(struct table *table)
{
	size_t width[TABLE_COLUMNS] = {}, i;

	assert(table->columns);
	find_widths(table, width);
	for (i = 0; i < table->count; i++) {
		if (!table->skip || i >= table->columns)
			print_cell(table, i, width[i % table->columns]);
		free(table->cells[i]);
	}
	free(table->cells);
	table->cells = NULL;
	table->count = 0;
}
