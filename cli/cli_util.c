// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Complaints, numbers, tables, durations.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void complain(const char *format, va_list args)
{
	fflush(stdout);
	fputs("pmdpulse: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return CLI_FAILED;
}

int cli_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return CLI_USAGE;
}

bool cli_number(const char *what, const char *text, long min, long max, long *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end != 0 || errno != 0 || value < min || value > max) {
		cli_usage("%s \"%s\": give a whole number from %ld to %ld", what, text, min, max);
		return false;
	}
	*out = value;
	return true;
}

struct cli_table {
	size_t n_columns;
	size_t n_rows;
	size_t room;
	struct cell {
		char *text;
		const char *colour; // escape sequence around the text, without width on a terminal
	} * cells;                  // n_rows * n_columns, row by row; the headers are row 0
};

void cli_table_row_coloured(struct cli_table *table, const char *const *cells, size_t column,
			    const char *colour)
{
	if (table->n_rows == table->room) {
		table->room = table->room ? table->room * 2 : 16;
		table->cells =
			realloc(table->cells, table->room * table->n_columns * sizeof(struct cell));
		if (table->cells == NULL)
			abort();
	}
	for (size_t i = 0; i < table->n_columns; i++) {
		struct cell *cell = &table->cells[table->n_rows * table->n_columns + i];

		cell->text = strdup(cells[i] ? cells[i] : "-");
		cell->colour = i == column ? colour : "";
		if (cell->text == NULL)
			abort();
	}
	table->n_rows++;
}

struct cli_table *cli_table_new(const char *const *headers, size_t n_columns)
{
	struct cli_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		abort();
	table->n_columns = n_columns;
	cli_table_row(table, headers);
	return table;
}

void cli_table_row(struct cli_table *table, const char *const *cells)
{
	cli_table_row_coloured(table, cells, 0, "");
}

// Columns on screen: count UTF-8 characters, not bytes.
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text != 0; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void cli_table_print(struct cli_table *table, FILE *out)
{
	size_t n = table->n_columns;

	for (size_t r = 0; r < table->n_rows; r++) {
		for (size_t c = 0; c < n; c++) {
			const struct cell *cell = &table->cells[r * n + c];
			size_t width = 0;

			fprintf(out, "%s%s%s", cell->colour, cell->text,
				cell->colour[0] ? "\033[0m" : "");
			if (c + 1 == n)
				continue;
			for (size_t i = 0; i < table->n_rows; i++) {
				size_t w = width_of(table->cells[i * n + c].text);

				width = w > width ? w : width;
			}
			fprintf(out, "%*s", (int)(width + 2 - width_of(cell->text)), "");
		}
		fputc('\n', out);
	}
	for (size_t i = 0; i < table->n_rows * n; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}

char *cli_duration(uint64_t ns, char *out, size_t size)
{
	double s = (double)ns / 1e9;

	if (ns < 1000000)
		snprintf(out, size, "%.0f us", s * 1e6);
	else if (ns < 10000000)
		snprintf(out, size, "%.1f ms", s * 1e3);
	else if (ns < 1000000000)
		snprintf(out, size, "%.0f ms", s * 1e3);
	else if (s < 60)
		snprintf(out, size, "%.2f s", s);
	else if (s < 3600)
		snprintf(out, size, "%u min %02u s", (unsigned)s / 60, (unsigned)s % 60);
	else if (s < 86400 * 2)
		snprintf(out, size, "%u h %02u min", (unsigned)(s / 3600), (unsigned)(s / 60) % 60);
	else
		snprintf(out, size, "%u d %02u h", (unsigned)(s / 86400),
			 (unsigned)(s / 3600) % 24);
	return out;
}

char *cli_count(double n, char *out, size_t size)
{
	static const char units[] = " kMGT";
	size_t u = 0;

	while (n >= 10000 && u < 4) {
		n /= 1000;
		u++;
	}
	if (u == 0)
		snprintf(out, size, "%.0f", n);
	else
		snprintf(out, size, "%.1f %c", n, units[u]);
	return out;
}
