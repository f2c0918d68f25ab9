/*
 * sluice top: the strongest rows of every component of a run, mode by mode. Factors are streamed
 * from their files; what is kept of them are the rows that are told.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "base/plain_text.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "engine/strongest.h"
#include "format.h"
#include "json_out.h"
#include "storage/run_folder.h"
#include "storage/run_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Small objects, and pages of libraries that are touched later. */
    UNTOUCHED_BYTES = 4 << 20,
    ROWS_MAX = 1000000
};

struct arguments {
    struct option_counts components;
    struct option_modes modes;
    uint64_t rows;
    const char *by;
    const char *order;
    const char *store;
    uint64_t memory;
    bool json;
};

static const char *const by_choices[] = {"absolute", "value", NULL};
static const char *const order_choices[] = {"weight", "number", NULL};

static const struct option options[] = {
    {.name = "component",
     .letter = 'c',
     .kind = OPTION_COUNTS,
     .value = "R,..",
     .minimum = 1,
     .maximum = SLC_MAX_RANK,
     .help = "components to tell of, counted from 1; all of them without it",
     .offset = offsetof(struct arguments, components)},
    {.name = "mode",
     .letter = 'm',
     .kind = OPTION_MODES,
     .value = "K,..",
     .help = "modes to tell of, counted from 1; all of them without it",
     .offset = offsetof(struct arguments, modes)},
    {.name = "rows",
     .letter = 'n',
     .kind = OPTION_U64,
     .value = "N",
     .fallback = "10",
     .minimum = 1,
     .maximum = ROWS_MAX,
     .help = "rows of each mode, the strongest first",
     .offset = offsetof(struct arguments, rows)},
    {.name = "by",
     .kind = OPTION_CHOICE,
     .value = "WHAT",
     .fallback = "absolute",
     .choices = by_choices,
     .help = "what is strong: a large absolute value, or a large value (with its sign)",
     .offset = offsetof(struct arguments, by)},
    {.name = "order",
     .kind = OPTION_CHOICE,
     .value = "HOW",
     .fallback = "weight",
     .choices = order_choices,
     .help = "all components: by falling weight, or by number",
     .offset = offsetof(struct arguments, order)},
    {.name = "store",
     .kind = OPTION_STRING,
     .value = "DIR",
     .help = "store whose names of indices are told; the one that the run was made of, if it is "
             "still there, if not given",
     .offset = offsetof(struct arguments, store)},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object",
     .offset = offsetof(struct arguments, json)},
    OPTION_ROW_MEMORY(arguments, memory),
    {.name = NULL}};

/* What is told, and what has been found of it. */
struct top {
    const struct arguments *args;
    const char *folder;
    struct slc_run_folder run;
    uint32_t component_count;
    uint32_t components[SLC_MAX_RANK]; /* from 0, in the order in which they are told */
    unsigned mode_count;
    unsigned modes[SLC_MAX_ORDER]; /* from 0 */
    struct slc_buffer memory;
    uint64_t counts[SLC_MAX_ORDER]; /* rows told of each of `modes` */
    struct slc_strong_row *found[SLC_MAX_ORDER];
    struct slc_run_names names;
    char name[SLC_NAME_TEXT_BYTES]; /* the one that is told */
};

static enum slc_status choose(struct top *top, struct slc_error *err)
{
    const struct option_counts *components = &top->args->components;
    const struct option_modes *modes = &top->args->modes;

    top->component_count = components->count > 0 ? components->count : top->run.rank;
    for (uint32_t i = 0; i < top->component_count; i++) {
        top->components[i] = components->count > 0 ? (uint32_t)components->number[i] - 1 : i;
        if (top->components[i] >= top->run.rank) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--component %" PRIu32 ": the run has %" PRIu32 " components",
                            top->components[i] + 1, top->run.rank);
        }
    }
    if (components->count == 0 && strcmp(top->args->order, "weight") == 0) {
        slc_run_folder_by_weight(&top->run, top->components);
    }
    top->mode_count = modes->count > 0 ? modes->count : top->run.order;
    for (unsigned i = 0; i < top->mode_count; i++) {
        top->modes[i] = modes->count > 0 ? modes->mode[i] : i;
        if (top->modes[i] >= top->run.order) {
            return slc_fail(err, SLC_ERR_USAGE, "--mode %u: the run has %u modes",
                            top->modes[i] + 1, top->run.order);
        }
    }
    return SLC_OK;
}

/* Memory for all rows that are told, within the budget. */
static enum slc_status take_memory(struct top *top, struct slc_error *err)
{
    uint64_t rows = 0;
    uint64_t need;
    uint64_t at = 0;
    enum slc_status status;

    for (unsigned i = 0; i < top->mode_count; i++) {
        top->counts[i] = slc_min_u64(top->args->rows, top->run.dims[top->modes[i]]);
        rows += top->counts[i] * top->component_count;
    }
    /* At most 16 modes of 4096 components of a million rows: far from 2^64. */
    need = slc_memory_resident() + UNTOUCHED_BYTES + slc_run_names_bytes(&top->names) +
           slc_strongest_memory_bytes(top->run.rank) +
           slc_buffer_footprint(rows * sizeof *top->found[0], SLC_PAGES_SMALL);
    if (need > top->args->memory) {
        return slc_fail_budget(err, top->args->memory, need,
                               "telling %" PRIu64 " rows of %" PRIu32 " components in %u modes",
                               top->args->rows, top->component_count, top->mode_count);
    }
    status = slc_buffer_create(&top->memory, rows * sizeof *top->found[0], SLC_PAGES_SMALL, err);
    for (unsigned i = 0; i < top->mode_count && status == SLC_OK; i++) {
        top->found[i] = (struct slc_strong_row *)top->memory.data + at;
        at += top->counts[i] * top->component_count;
    }
    return status;
}

static enum slc_status find(struct top *top, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < top->mode_count && status == SLC_OK; i++) {
        char *path = slc_run_folder_factor(top->folder, top->modes[i]);
        const struct slc_strongest wanted = {.path = path,
                                             .length = top->run.dims[top->modes[i]],
                                             .rank = top->run.rank,
                                             .columns = top->components,
                                             .column_count = top->component_count,
                                             .rows = top->args->rows,
                                             .by_signed = strcmp(top->args->by, "value") == 0};

        status = path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of a factor")
                              : slc_strongest_find(&wanted, top->found[i], err);
        slc_free(path);
    }
    return status;
}

static const struct slc_strong_row *rows_of(const struct top *top, uint32_t component, unsigned i)
{
    return top->found[i] + component * top->counts[i];
}

static enum slc_status
print_mode(struct top *top, uint32_t component, unsigned i, struct slc_error *err)
{
    const struct slc_strong_row *rows = rows_of(top, component, i);
    const unsigned mode = top->modes[i];
    char title[SLC_TITLE_BYTES];
    struct format_text count;

    memcpy(title, top->names.titles[mode], sizeof title);
    slc_text_make_plain(title);
    printf("  mode %u%s%s%s, %s rows\n", mode + 1, *title != '\0' ? " (" : "", title,
           *title != '\0' ? ")" : "", format_count(&count, top->run.dims[mode]));
    for (uint64_t k = 0; k < top->counts[i]; k++) {
        const enum slc_status status =
            slc_run_names_text(&top->names, mode, rows[k].row, top->name, err);

        if (status != SLC_OK) {
            return status;
        }
        printf("    %13.6g  %" PRIu64 "%s%s\n", rows[k].value, rows[k].row + 1,
               *top->name != '\0' ? "  " : "", top->name);
    }
    return SLC_OK;
}

static enum slc_status print_text(struct top *top, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    printf("%s: rank %" PRIu32 ", %u modes, the strongest by %s\n", top->folder, top->run.rank,
           top->run.order, strcmp(top->args->by, "value") == 0 ? "value" : "absolute value");
    for (uint32_t c = 0; c < top->component_count && status == SLC_OK; c++) {
        const uint32_t component = top->components[c];

        if (top->run.weighted) {
            printf("\nComponent %" PRIu32 ", weight %.6g\n", component + 1,
                   top->run.lambda[component]);
        } else {
            printf("\nComponent %" PRIu32 "\n", component + 1);
        }
        for (unsigned i = 0; i < top->mode_count && status == SLC_OK; i++) {
            status = print_mode(top, c, i, err);
        }
    }
    return status;
}

/* *status is that of the first fault. */
static json_t *mode_json(
    struct top *top, uint32_t component, unsigned i, enum slc_status *status, struct slc_error *err)
{
    const char *title = top->names.titles[top->modes[i]];
    const struct slc_strong_row *rows = rows_of(top, component, i);
    json_t *object = json_object();
    json_t *list = json_array();

    for (uint64_t k = 0; k < top->counts[i]; k++) {
        json_t *row = json_object();

        (void)json_object_set_new(row, "index", json_integer((json_int_t)rows[k].row + 1));
        if (top->names.names[top->modes[i]] != NULL && *status == SLC_OK) {
            *status = slc_run_names_text(&top->names, top->modes[i], rows[k].row, top->name, err);
            (void)json_object_set_new(row, "name", json_string(top->name));
        }
        (void)json_object_set_new(row, "value", json_real(rows[k].value));
        (void)json_array_append_new(list, row);
    }
    (void)json_object_set_new(object, "mode", json_integer(top->modes[i] + 1));
    if (*title != '\0') {
        (void)json_object_set_new(object, "title", json_string(title));
    }
    (void)json_object_set_new(object, "length",
                              json_integer((json_int_t)top->run.dims[top->modes[i]]));
    (void)json_object_set_new(object, "rows", list);
    return object;
}

static json_t *
component_json(struct top *top, uint32_t component, enum slc_status *status, struct slc_error *err)
{
    const uint32_t number = top->components[component];
    json_t *object = json_object();
    json_t *modes = json_array();

    for (unsigned i = 0; i < top->mode_count; i++) {
        (void)json_array_append_new(modes, mode_json(top, component, i, status, err));
    }
    (void)json_object_set_new(object, "component", json_integer(number + 1));
    (void)json_object_set_new(object, "weight", json_real(top->run.lambda[number]));
    (void)json_object_set_new(object, "modes", modes);
    return object;
}

static enum slc_status print_json(struct top *top, struct slc_error *err)
{
    json_t *object = json_object();
    json_t *list = json_array();
    enum slc_status status = SLC_OK;

    for (uint32_t c = 0; c < top->component_count; c++) {
        (void)json_array_append_new(list, component_json(top, c, &status, err));
    }
    (void)json_object_set_new(object, "schema", json_string("sluice-top-1"));
    (void)json_object_set_new(object, "run", json_string(top->folder));
    (void)json_object_set_new(object, "store",
                              top->run.recorded ? json_string(top->run.record.store) : json_null());
    (void)json_object_set_new(object, "rank", json_integer(top->run.rank));
    (void)json_object_set_new(object, "by", json_string(top->args->by));
    (void)json_object_set_new(object, "components", list);
    if (status != SLC_OK) {
        json_decref(object);
        return status;
    }
    return json_out_print(object, err);
}

static enum slc_status tell(struct top *top, struct slc_error *err)
{
    enum slc_status status = slc_run_folder_read(NULL, top->folder, &top->run, err);

    if (status == SLC_OK) {
        status = choose(top, err);
    }
    if (status == SLC_OK) {
        status = slc_run_names_open(NULL, &top->run, top->args->store, &top->names, err);
    }
    if (status == SLC_OK) {
        status = take_memory(top, err);
    }
    if (status == SLC_OK) {
        status = find(top, err);
    }
    if (status == SLC_OK) {
        status = top->args->json ? print_json(top, err) : print_text(top, err);
    }
    slc_run_names_close(&top->names);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct top *top;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    top = slc_calloc(1, sizeof *top);
    if (top == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "no memory for what is told of a run");
        return console_error(&err);
    }
    top->args = &args;
    top->folder = operands.text[0];
    if (tell(top, &err) != SLC_OK) {
        code = console_error(&err);
    }
    slc_buffer_destroy(&top->memory);
    slc_free(top);
    return code;
}

const struct command command_top = {
    .name = "top",
    .summary = "list the strongest rows of each component of a run",
    .example = "sluice top flights-4d.r16 --component 3 --rows 10",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "RUN is the folder of factors that sluice cpd has written, or one that holds "
             "mode-1.npy, ..\n"
             "from elsewhere. Rows are the indices of the input, which count from 1.",
    .run = run,
};
