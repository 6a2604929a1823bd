/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables for people: columns as wide as what is in them.
 */
#ifndef RDMAEP_TABLE_H
#define RDMAEP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS	16

/**
 * struct table - a table that is being put together
 * @columns: how many columns it has
 * @right: columns with numbers, as bits
 * @cells: texts, row by row
 * @count: how many
 * @skip: the first row, which is the header, is not printed
 */
struct table {
	size_t columns;
	unsigned int right;
	char **cells;
	size_t count;
	bool skip;
};

/**
 * table_add() - add the next cell
 * @table: the table
 * @fmt: its text
 */
void table_add(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * table_print() - print all rows to stdout, and empty the table
 * @table: the table
 */
void table_print(struct table *table);

#endif /* RDMAEP_TABLE_H */
