/* Runs a benchmark: makes its record, its tables and its temporary folder. */
#include "tools/bench/measure/run.h"

#include "base/device.h"
#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "storage/file/files.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/session.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *bench_add_row(json_t *rows)
{
    json_t *row = json_object();

    (void)json_array_append_new(rows, row);
    return row;
}

void bench_set_real(json_t *object, const char *name, double number)
{
    slc_json_set(object, name, isfinite(number) ? json_real(number) : json_null());
}

json_t *bench_tensor_to_json(const struct slc_store *store)
{
    const struct slc_manifest *manifest = &store->manifest;
    json_t *object = json_object();

    slc_json_set_text(object, "path", store->path);
    slc_json_set(object, "dims", slc_json_dims(manifest->order, manifest->dims));
    slc_json_set_count(object, "nnz", manifest->nnz);
    slc_json_set_text(object, "value_type", manifest->value_type == SLC_F32 ? "f32" : "f64");
    slc_json_set_count(object, "store_bytes", slc_manifest_file_bytes(manifest));
    return object;
}

void bench_set_tensor(json_t *record, const struct slc_store *store)
{
    slc_json_set(record, "tensor", bench_tensor_to_json(store));
}

void bench_set_device(json_t *record, const struct slc_device_info *info)
{
    json_t *device = json_object();

    slc_json_set(record, "device", device);
    slc_json_set_text(device, "name", info->name);
    slc_json_set_count(device, "total_bytes", info->total_bytes);
    slc_json_set_count(device, "free_bytes", info->free_bytes);
    slc_json_set_count(device, "multiprocessors", info->multiprocessors);
}

/* Returns the last word of the name of a command, such as "stream" of "bench stream". */
static const char *short_name(const struct command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space != NULL ? space + 1 : command->name;
}

/* Creates a record with "schema" ("sluice-bench-1"), "bench" (the name of the subcommand),
 * "options", "versions" and "machine". The caller must call json_decref. Errors: SLC_ERR_MEMORY. */
static enum slc_status start_record(const struct command *command,
                                    const void *values,
                                    json_t **record,
                                    struct slc_error *err)
{
    json_t *object = json_pack("{s:s}", "schema", "sluice-bench-1");

    SLC_TRY(slc_check_memory(object != NULL, err, "for the record of a benchmark"));
    slc_json_set_text(object, "bench", short_name(command));
    slc_json_set(object, "options", options_to_json(command, values));
    slc_json_set(object, "versions", slc_json_versions());
    slc_json_set(object, "machine", slc_json_machine());
    *record = object;
    return SLC_OK;
}

static enum slc_status print_record(const json_t *record, struct slc_error *err)
{
    char *text = json_dumps(record, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

    SLC_TRY(slc_check_memory(text != NULL, err, "for the record of a benchmark"));
    printf("%s\n", text);
    free(text);
    return SLC_OK;
}

/* ---- temporary folders */

/* Copies of the paths of the folders, or empty strings: a signal may arrive while the caller frees
 * a path. */
enum { WATCHED_MAX = 4 };
static char watched[WATCHED_MAX][4096];

static void remove_folder(const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;

    /* The figures are valid even if the folder cannot be removed, so this is not an error. */
    if (slc_folder_remove(slc_files_system(), path, &err) != SLC_OK) {
        console_note("cannot remove %s: %s", path, err.message);
    }
}

static void remove_watched(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < WATCHED_MAX; i++) {
        if (watched[i][0] != '\0') {
            remove_folder(watched[i]);
        }
    }
}

/* Returns the entry of a folder, or a free one if `path` is empty. At most WATCHED_MAX folders
 * exist at the same time. */
static char *find_watched(const char *path)
{
    unsigned i = 0;

    while (i + 1 < WATCHED_MAX && strcmp(watched[i], path) != 0) {
        i++;
    }
    return watched[i];
}

enum slc_status bench_temp_folder(const char *parent, char **path, struct slc_error *err)
{
    const char *standard = getenv("TMPDIR");
    enum slc_status status;

    if (parent == NULL) {
        parent = standard != NULL ? standard : "/tmp";
    }
    char *folder = slc_path_join(parent, "sluice-bench-XXXXXX");
    SLC_TRY(slc_check_memory(folder != NULL, err, "for a path"));
    if (mkdtemp(folder) == NULL) {
        status = slc_fail_errno(err, errno, folder, "creating a folder for temporary files");
        slc_free(folder);
        return status;
    }
    char *entry = find_watched("");
    (void)snprintf(entry, sizeof watched[0], "%s", folder);
    status = signals_start(remove_watched, NULL, err);
    if (status != SLC_OK) {
        entry[0] = '\0';
        (void)rmdir(folder);
        slc_free(folder);
        return status;
    }
    *path = folder;
    return SLC_OK;
}

void bench_temp_folder_remove(char *path)
{
    if (path != NULL) {
        remove_folder(path);
        find_watched(path)[0] = '\0';
        slc_free(path);
    }
}

/* ---- stores */

enum slc_status bench_open_store(struct slc_session *session,
                                 const char *path,
                                 uint64_t memory_bytes,
                                 uint64_t mode,
                                 struct slc_error *err)
{
    SLC_TRY(session_open(session, path, memory_bytes, err));
    return mode <= session->store.manifest.order
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "--mode %u: the tensor has %u modes", (unsigned)mode,
                          session->store.manifest.order);
}

/* ---- tables */

enum { CELL_BYTES = 96, COLUMNS_MAX = 32 };

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

/* Width and alignment of a printed column. A column of width 0 is omitted. */
struct column_shape {
    size_t width;
    bool left; /* aligned left, because at least one cell is a text */
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
        shape.left = shape.left || json_is_string(json_object_get(row, column->key));
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

/* ---- the steps of a benchmark */

static void print_tables(const json_t *record, const struct bench_table *table)
{
    for (bool first = true; table->key != NULL; table++) {
        const json_t *rows = json_object_get(record, table->key);

        if (!table->optional || json_array_size(rows) > 0) {
            printf("%s", first ? "" : "\n");
            bench_table_print(rows, table->columns);
            first = false;
        }
    }
}

int bench_run(const struct command *command, int argc, char **argv, const struct bench_steps *steps)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct operands single = {0};
    struct operands *operands = steps->operands != NULL ? steps->operands : &single;
    json_t *record = NULL;
    int code = 0;

    if (!command_begin(command, argc, argv, steps->values, operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    enum slc_status status = start_record(command, steps->values, &record, &err);
    SLC_THEN(status, steps->measure(steps->state, operands->count > 0 ? operands->text[0] : NULL,
                                    record, &err));
    if (status == SLC_OK && steps->common->json) {
        status = print_record(record, &err);
    } else if (status == SLC_OK) {
        print_tables(record, steps->tables);
        if (steps->print != NULL) {
            steps->print(record);
        }
    }
    code = status == SLC_OK ? 0 : console_error(&err);
    if (steps->close != NULL) {
        steps->close(steps->state);
    }
    json_decref(record);
    return code;
}
