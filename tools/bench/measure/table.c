/*
 * Prints tables from JSON rows; see table.h. Cells are formatted twice, once for the widths and
 * once to print: tables are small, and nothing has to be kept.
 */
#include "tools/bench/measure/table.h"

#include "tools/progress/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES = 96, COLUMNS_MAX = 32 };

static bool cell_is_text(const json_t *cell)
{
    return json_is_string(cell);
}

/* Formats one cell into `text`. */
static void format_cell(const json_t *row, const struct bench_column *column, char *text)
{
    const json_t *cell = json_object_get(row, column->key);
    struct format_text count;

    if (json_is_string(cell)) {
        (void)snprintf(text, CELL_BYTES, "%s", json_string_value(cell));
    } else if (json_is_boolean(cell)) {
        (void)snprintf(text, CELL_BYTES, "%s", json_is_true(cell) ? "yes" : "no");
    } else if (json_is_integer(cell) && column->scale == 0) {
        (void)snprintf(text, CELL_BYTES, "%s",
                       format_count(&count, (uint64_t)json_integer_value(cell)));
    } else if (json_is_number(cell)) {
        (void)snprintf(text, CELL_BYTES, "%.*f", column->decimals,
                       json_number_value(cell) * (column->scale != 0 ? column->scale : 1));
    } else {
        (void)snprintf(text, CELL_BYTES, "-");
    }
}

/* What the printing of a table keeps about a column: width 0 leaves it out. */
struct column_shape {
    size_t width;
    bool left; /* some cell is a text */
};

static struct column_shape shape_of(const json_t *rows, const struct bench_column *column)
{
    struct column_shape shape = {.width = 0};
    bool present = false;
    size_t index;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        char text[CELL_BYTES];

        format_cell(row, column, text);
        shape.width = strlen(text) > shape.width ? strlen(text) : shape.width;
        shape.left = shape.left || cell_is_text(json_object_get(row, column->key));
        present = present || json_object_get(row, column->key) != NULL;
    }
    if (!present) {
        shape.width = 0;
    } else if (strlen(column->title) > shape.width) {
        shape.width = strlen(column->title);
    }
    return shape;
}

static void print_cell(const struct column_shape *shape, const char *text)
{
    printf("  %*s", shape->left ? -(int)shape->width : (int)shape->width, text);
}

void bench_table_print(const json_t *rows, const struct bench_column *columns)
{
    struct column_shape shapes[COLUMNS_MAX];
    size_t count = 0;
    size_t index;
    json_t *row;

    for (; columns[count].key != NULL && count < COLUMNS_MAX; count++) {
        shapes[count] = shape_of(rows, &columns[count]);
        if (shapes[count].width > 0) {
            print_cell(&shapes[count], columns[count].title);
        }
    }
    putchar('\n');
    json_array_foreach(rows, index, row)
    {
        for (size_t c = 0; c < count; c++) {
            char text[CELL_BYTES];

            if (shapes[c].width > 0) {
                format_cell(row, &columns[c], text);
                print_cell(&shapes[c], text);
            }
        }
        putchar('\n');
    }
}
