/*
 * Tables printed from the rows of a benchmark's JSON, so that the text and `--json` cannot
 * disagree: a benchmark builds its record once, with units in the names of the members, and prints
 * either.
 */
#ifndef SLC_TOOLS_BENCH_TABLE_H
#define SLC_TOOLS_BENCH_TABLE_H

#include <jansson.h>

/* A column; an array of them ends with a NULL key. */
struct bench_column {
    const char *key;   /* member of each row */
    const char *title; /* with the unit, e.g. "GB/s" */
    double scale;      /* a real number is printed times this; 0: as it is */
    int decimals;      /* of real numbers */
};

/*
 * Prints `rows`, an array of objects, to standard output: texts to the left, numbers to the right,
 * whole numbers with separators of thousands, "-" for null and for members a row does not have.
 * Columns that no row has a member for are left out.
 */
void bench_table_print(const json_t *rows, const struct bench_column *columns);

#endif
