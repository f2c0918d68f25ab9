/*
 * sluice report: a page that tells what a run was and what has come of it. Factors are streamed
 * from their files, once for the strongest rows and once for the pictures; what is kept of them
 * goes with what is told, and not with the modes.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "commands.h"
#include "common_options.h"
#include "console.h"
#include "export_run.h"
#include "format.h"
#include "info_checkpoint.h"
#include "json_out.h"
#include "run_page.h"
#include "storage/outside.h"
#include "unfinished.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Small objects, and pages of libraries that are touched later. */
    UNTOUCHED_BYTES = 4 << 20,
    /* A byte of JSON becomes so many of memory at most: a number of two characters a node and its
     * place in a list, a short member more. */
    JSON_FACTOR = 48,
    /* Bands of all pictures together, so that a page stays small, and of one picture. */
    ALL_BANDS = 24576,
    LEAST_BANDS = 24,
    MOST_BANDS = 160
};

struct arguments {
    const char *output;
    uint64_t components;
    uint64_t rows;
    const char *store;
    uint64_t memory;
    bool force;
    bool quiet;
};

static const struct option options[] = {
    {.name = "output",
     .letter = 'o',
     .required = true,
     .kind = OPTION_STRING,
     .value = "FILE",
     .help = "the page, HTML in one file",
     .offset = offsetof(struct arguments, output)},
    {.name = "components",
     .kind = OPTION_U64,
     .value = "N",
     .fallback = "64",
     .minimum = 1,
     .maximum = SLC_MAX_RANK,
     .help = "components to tell of at most, the heaviest first",
     .offset = offsetof(struct arguments, components)},
    {.name = "rows",
     .letter = 'n',
     .kind = OPTION_U64,
     .value = "N",
     .fallback = "10",
     .minimum = 1,
     .maximum = 1000,
     .help = "rows of each mode of a component, the strongest first",
     .offset = offsetof(struct arguments, rows)},
    {.name = "store",
     .kind = OPTION_STRING,
     .value = "DIR",
     .help = "store whose names of indices are told; the one that the run was made of, if it is "
             "still there, if not given",
     .offset = offsetof(struct arguments, store)},
    OPTION_ROW_OVERWRITE(arguments, force),
    OPTION_ROW_MEMORY(arguments, memory),
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

/* What is read, and what it takes. */
struct told {
    const struct arguments *args;
    struct slc_run_folder run;
    json_t *record;
    json_t *checkpoint;
    struct run_page page;
    struct slc_run_names names;
    struct slc_buffer memory;
};

/* The record, whose text slc_run_folder_read has found to be sound. */
static enum slc_status read_record(struct told *told, struct slc_error *err)
{
    char *path = slc_path_join(told->page.folder, "run.json");
    void *text = NULL;
    uint64_t bytes = 0;
    enum slc_status status =
        path == NULL
            ? slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of a record")
            : slc_file_load(slc_files_system(), path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, err);

    if (status == SLC_OK) {
        const uint64_t need = slc_memory_resident() + UNTOUCHED_BYTES + bytes * JSON_FACTOR;

        if (need > told->args->memory) {
            status = slc_fail_budget(err, told->args->memory, need, "reading run.json");
        }
    }
    if (status == SLC_OK) {
        told->record = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
        status = json_out_complete(err);
        if (status == SLC_OK && told->record == NULL) {
            status = slc_fail(err, SLC_ERR_INPUT, "run.json has changed while it was read");
            slc_error_locate_file(err, path);
        }
    }
    slc_free(text);
    slc_free(path);
    told->page.record = told->record;
    return status;
}

/* What there is of the run: results, a checkpoint, or both. */
static enum slc_status read_run(struct told *told, struct slc_error *err)
{
    const char *folder = told->page.folder;
    bool results = false;
    bool saved = false;
    enum slc_status status = info_checkpoint_find(folder, &saved, err);

    if (status == SLC_OK) {
        status = export_run_find(folder, &results, err);
    }
    /* Without either, it says what is missing. */
    if (status == SLC_OK && (results || !saved)) {
        status = slc_run_folder_read(NULL, folder, &told->run, err);
    }
    if (status == SLC_OK && told->run.recorded) {
        status = read_record(told, err);
    }
    if (status == SLC_OK && saved) {
        status = info_checkpoint_read(folder, false, &told->checkpoint, err);
    }
    told->page.checkpoint = told->checkpoint;
    return status;
}

/* Chooses components and takes memory for what is told of them, within the budget. */
static enum slc_status take_memory(struct told *told, struct slc_error *err)
{
    const struct slc_run_folder *run = &told->run;
    struct run_page *page = &told->page;
    const uint32_t count = (uint32_t)slc_min_u64(told->args->components, run->rank);
    const uint64_t bands = slc_max_u64(
        LEAST_BANDS, slc_min_u64(MOST_BANDS, ALL_BANDS / slc_max_u64(1, count * run->order)));
    uint64_t bytes = 0;
    uint64_t need;
    uint8_t *at;
    enum slc_status status;

    slc_run_folder_by_weight(run, page->components);
    page->component_count = count;
    for (unsigned n = 0; n < run->order; n++) {
        page->row_counts[n] = slc_min_u64(told->args->rows, run->dims[n]);
        page->band_counts[n] = (uint32_t)slc_min_u64(bands, run->dims[n]);
        bytes += count * (page->row_counts[n] * sizeof *page->rows[n] +
                          page->band_counts[n] * sizeof *page->bands[n]);
    }
    /* At most 16 modes of 4096 components of a thousand rows: far from 2^64. */
    need = slc_memory_resident() + UNTOUCHED_BYTES + SLC_OUTPUT_BUFFER_BYTES +
           slc_strongest_memory_bytes(run->rank > 0 ? run->rank : 1) +
           slc_run_names_bytes(&told->names) + slc_buffer_footprint(bytes, SLC_PAGES_SMALL);
    if (need > told->args->memory) {
        return slc_fail_budget(err, told->args->memory, need,
                               "telling of %" PRIu32 " components of %u modes", count, run->order);
    }
    status = slc_buffer_create(&told->memory, slc_max_u64(1, bytes), SLC_PAGES_SMALL, err);
    at = told->memory.data;
    for (unsigned n = 0; n < run->order && status == SLC_OK; n++) {
        page->rows[n] = (struct slc_strong_row *)(void *)at;
        at += count * page->row_counts[n] * sizeof *page->rows[n];
        page->bands[n] = (struct slc_band *)(void *)at;
        at += (uint64_t)count * page->band_counts[n] * sizeof *page->bands[n];
    }
    return status;
}

/* The strongest rows of a mode, and its pictures. */
static enum slc_status find_mode(struct told *told, unsigned n, struct slc_error *err)
{
    const struct run_page *page = &told->page;
    char *path = slc_run_folder_factor(page->folder, n);
    const struct slc_strongest strongest = {.path = path,
                                            .length = told->run.dims[n],
                                            .rank = told->run.rank,
                                            .columns = page->components,
                                            .column_count = page->component_count,
                                            .rows = page->row_counts[n]};
    const struct slc_column_bands bands = {.path = path,
                                           .length = told->run.dims[n],
                                           .rank = told->run.rank,
                                           .columns = page->components,
                                           .column_count = page->component_count,
                                           .bands = page->band_counts[n]};
    enum slc_status status = path == NULL
                                 ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a factor's path")
                                 : slc_strongest_find(&strongest, page->rows[n], err);

    if (status == SLC_OK) {
        status = slc_column_bands_find(&bands, page->bands[n], err);
    }
    slc_free(path);
    return status;
}

/* Sees that nothing is replaced unasked, and nothing is written into a store. */
static enum slc_status check_output(const struct arguments *args, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    enum slc_status status = slc_check_outside_stores(files, args->output, err);

    if (status == SLC_OK && files->stat_path(files->self, args->output, &stat) >= 0 &&
        (!args->force || stat.kind != 'f')) {
        status = slc_fail(err, SLC_ERR_IO,
                          stat.kind == 'f'
                              ? "the output exists: remove it, or replace it with --overwrite"
                              : "there is a folder or a device by the name of the output: name a "
                                "file");
        slc_error_locate_file(err, args->output);
    }
    return status;
}

static enum slc_status write_page(struct told *told, struct slc_error *err)
{
    struct slc_output output;
    uint64_t bytes;
    struct format_text text;
    enum slc_status status = slc_output_open(&output, NULL, told->args->output, err);

    if (status != SLC_OK) {
        return status;
    }
    status = run_page_write(&told->page, &output, err);
    bytes = output.written + output.used;
    unfinished_publishing(); /* a signal no longer removes it */
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    status = slc_output_commit(&output, err);
    if (status == SLC_OK && !told->args->quiet) {
        printf("Report of %s in %s, %s\n", told->page.folder, told->args->output,
               format_data(&text, (double)bytes));
    }
    return status;
}

static enum slc_status tell(struct told *told, struct slc_error *err)
{
    enum slc_status status = check_output(told->args, err);

    if (status == SLC_OK) {
        status = unfinished_watch(told->args->output, err);
    }
    if (status == SLC_OK) {
        status = read_run(told, err);
    }
    if (status == SLC_OK) {
        status = slc_run_names_open(NULL, &told->run, told->args->store, &told->names, err);
    }
    if (status == SLC_OK) {
        status = take_memory(told, err);
    }
    for (unsigned n = 0; n < told->run.order && status == SLC_OK; n++) {
        status = find_mode(told, n, err);
    }
    return status == SLC_OK ? write_page(told, err) : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct told *told;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    told = slc_calloc(1, sizeof *told);
    if (told == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "no memory for what is told of a run");
        return console_error(&err);
    }
    told->args = &args;
    told->page.folder = operands.text[0];
    told->page.run = &told->run;
    told->page.names = &told->names;
    if (tell(told, &err) != SLC_OK) {
        code = console_error(&err);
    }
    json_decref(told->record);
    json_decref(told->checkpoint);
    slc_run_names_close(&told->names);
    slc_buffer_destroy(&told->memory);
    slc_free(told);
    return code;
}

const struct command command_report = {
    .name = "report",
    .summary = "write a page that tells what a run was and what has come of it",
    .example = "sluice report flights-4d.r16 -o report.html",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "RUN is the folder of factors that sluice cpd has written, or that of a checkpoint.\n"
             "The page needs no network: fit, time, reading, memory, components, and how to\n"
             "make it again.",
    .run = run,
};
