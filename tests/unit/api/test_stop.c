/* Long calls are stopped before they begin and midway: they report it, leave earlier files
 * unchanged and no others, and succeed when called again. */
#include "api_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORDER = 3, NNZ = 30000, STORE_NNZ = 140000, RANK = 4, MODE = 1, CALLS_MAX = 6 };
static const uint64_t dims[ORDER] = {300, 200, 100};

/* Stops the current call at a given number of progress reports. */
struct halt {
    atomic_int stop;
    unsigned told;
    unsigned at;
};

static int on_progress(void *context, const struct sluice_progress *progress)
{
    struct halt *halt = context;

    CU_ASSERT(progress->phase[0] != '\0');
    CU_ASSERT(progress->total == 0 || progress->done <= progress->total);
    return halt->told++ == halt->at;
}

static struct sluice_run_options run_of(struct halt *halt)
{
    const struct sluice_run_options run = {
        .threads = 2, .stop = &halt->stop, .progress = on_progress, .context = halt};

    return run;
}

/* Inputs of the calls; memory is freed at the end of the program. */
struct place {
    const char *folder;
    char text[600], more[600], store[600], grown[600], output[600];
    struct sluice_store *open;
    struct sluice_model *model;
    double *matrices[ORDER]; /* matrices with RANK columns */
    uint64_t *coords[ORDER];
    double *values;
};

typedef enum sluice_status
call_fn(struct place *place, struct halt *halt, struct sluice_error *err);

static enum sluice_status convert(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_convert_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    options.output.relabel = SLUICE_RELABEL_FREQUENCY;
    return sluice_convert(place->text, place->output, &options, NULL, err);
}

/* Converts text that does not fit in memory. */
static enum sluice_status
convert_spilled(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_convert_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    options.output.temp_folder = place->folder;
    options.output.fibers = SLUICE_FIBERS_MODE;
    options.output.fiber_mode = 1;
    return sluice_convert(place->text, place->output, &options, NULL, err);
}

static enum sluice_status
convert_table(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_convert_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    options.table.columns = "1,int(2)";
    options.table.value_column = "4";
    options.table.delimiter = ' ';
    options.table.no_header = 1;
    return sluice_convert(place->text, place->output, &options, NULL, err);
}

static enum sluice_status build(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_builder_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};
    struct sluice_builder *builder = NULL;
    enum sluice_status status;

    status = sluice_builder_create(place->output, ORDER, &options, &builder, err);
    if (status != SLUICE_OK) {
        return status;
    }
    status = sluice_builder_push(builder, NNZ, (const uint64_t *const *)place->coords,
                                 place->values, err);
    if (status != SLUICE_OK) {
        sluice_builder_abandon(builder);
        return status;
    }
    return sluice_builder_finish(builder, NULL, err);
}

/* Appends to a store with a further layout, which is rebuilt. */
static enum sluice_status append(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_append_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};
    struct sluice_append_report report = {.struct_bytes = sizeof report};
    enum sluice_status status;

    status = sluice_append(place->grown, place->more, &options, &report, err);
    if (status == SLUICE_OK) {
        CU_ASSERT_EQUAL(report.entries, 2);
        CU_ASSERT_EQUAL(report.layouts_dropped, 0);
    }
    return status;
}

static enum sluice_status
generate(struct place *place, const char *suffix, struct halt *halt, struct sluice_error *err)
{
    struct sluice_generate_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};
    char path[700];

    (void)snprintf(path, sizeof path, "%s%s", place->output, suffix);
    return sluice_generate(path, ORDER, dims, NNZ, &options, err);
}

static enum sluice_status
generate_store(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return generate(place, ".slc", halt, err);
}

static enum sluice_status
generate_text(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return generate(place, ".tns", halt, err);
}

static enum sluice_status
reshape(struct place *place, bool slice, struct halt *halt, struct sluice_error *err)
{
    static const struct sluice_range range = {.mode = 0, .first = 10, .last = UINT64_MAX};
    static const uint32_t modes[ORDER] = {2, 0, 1};
    struct sluice_reshape_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    return slice ? sluice_slice(place->store, place->output, 1, &range, &options, NULL, err)
                 : sluice_permute(place->store, place->output, ORDER, modes, &options, NULL, err);
}

static enum sluice_status slice(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return reshape(place, true, halt, err);
}

static enum sluice_status permute(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return reshape(place, false, halt, err);
}

static enum sluice_status export(struct place *place, struct halt *halt, struct sluice_error *err) {
    struct sluice_export_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    return sluice_export(place->store, place->output, &options, NULL, err);
}

/* Exports to several files, one after the other. */
static enum sluice_status
export_model(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_model_export_options options = {.struct_bytes = sizeof options,
                                                  .run = run_of(halt)};

    options.form = SLUICE_MODEL_CSV;
    return sluice_model_export(place->model, place->output, &options, err);
}

static enum sluice_status verify(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_check_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    return sluice_check(place->store, &options, NULL, err);
}

static enum sluice_status
ttv(struct place *place, bool sort, struct halt *halt, struct sluice_error *err)
{
    const double *vectors[ORDER] = {NULL, NULL, place->matrices[2]};
    struct sluice_ttv_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    options.sort = sort;
    return sluice_ttv(place->open, vectors, place->output, &options, NULL, err);
}

static enum sluice_status
ttv_sorted(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return ttv(place, true, halt, err);
}

static enum sluice_status
ttv_ordered(struct place *place, struct halt *halt, struct sluice_error *err)
{
    return ttv(place, false, halt, err);
}

/* Multiplies with a temporary store, because there is no layout of whole fibers. */
static enum sluice_status ttm(struct place *place, struct halt *halt, struct sluice_error *err)
{
    struct sluice_ttm_options options = {.struct_bytes = sizeof options, .run = run_of(halt)};

    return sluice_ttm(place->open, MODE, RANK, place->matrices[MODE], place->output, &options, NULL,
                      err);
}

static enum sluice_status mttkrp(struct place *place, struct halt *halt, struct sluice_error *err)
{
    const double *factors[ORDER] = {place->matrices[0], NULL, place->matrices[2]};

    const struct sluice_mttkrp_options options = {.struct_bytes = sizeof options,
                                                  .run = run_of(halt)};

    return sluice_mttkrp(place->open, MODE, RANK, factors, place->matrices[MODE], dims[MODE] * RANK,
                         &options, err);
}

static enum sluice_status
predict_text(struct place *place, struct halt *halt, struct sluice_error *err)
{
    const struct sluice_predict_text_options options = {.struct_bytes = sizeof options,
                                                        .run = run_of(halt)};

    return sluice_predict_text(place->model, place->text, place->output, &options, NULL, err);
}

static enum sluice_status predict(struct place *place, struct halt *halt, struct sluice_error *err)
{
    const struct sluice_predict_options options = {.struct_bytes = sizeof options,
                                                   .run = {.stop = &halt->stop}};

    return sluice_predict(place->model, NNZ, (const uint64_t *const *)place->coords, place->values,
                          &options, err);
}

/* Names and sizes of all files in a folder, sorted by name. */
static void list(const char *folder, char *text, size_t room)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);

    CU_ASSERT_FATAL(count >= 2);
    for (int i = 0; i < count; i++) {
        char path[1200];
        struct stat stat;

        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && lstat(path, &stat) == 0) {
            const size_t used = strlen(text);

            (void)snprintf(text + used, room - used, "%s %lld\n", path,
                           S_ISDIR(stat.st_mode) ? 0LL : (long long)stat.st_size);
            if (S_ISDIR(stat.st_mode)) {
                list(path, text, room);
            }
        }
        free(entries[i]);
    }
    free(entries);
}

/* Makes one call and stops it at the `at`-th progress report; false if it finished. */
static bool is_stopped(struct place *place, call_fn *call, struct halt *halt)
{
    static char before[1 << 16], after[1 << 16];
    struct sluice_error err = SLUICE_ERROR_INIT;
    enum sluice_status status;

    before[0] = after[0] = '\0';
    list(place->folder, before, sizeof before);
    status = call(place, halt, &err);
    if (status == SLUICE_OK) {
        return false;
    }
    CU_ASSERT_EQUAL(status, SLUICE_ERR_INTERRUPTED);
    CU_ASSERT_STRING_EQUAL(err.message, "stopped before its end");
    list(place->folder, after, sizeof after);
    CU_ASSERT_STRING_EQUAL(after, before);
    return true;
}

static void make_numbers(struct place *place)
{
    uint64_t state = slc_test_seed();

    place->values = calloc(NNZ, sizeof *place->values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place->values);
    for (unsigned n = 0; n < ORDER; n++) {
        place->coords[n] = calloc(NNZ, sizeof *place->coords[n]);
        place->matrices[n] = calloc(dims[n] * RANK, sizeof *place->matrices[n]);
        CU_ASSERT_FATAL(place->coords[n] != NULL && place->matrices[n] != NULL);
        for (uint64_t i = 0; i < dims[n] * RANK; i++) {
            place->matrices[n][i] = (double)(i % 7 + 1);
        }
        for (unsigned i = 0; i < NNZ; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            place->coords[n][i] = (state >> 33) % dims[n];
            place->values[i] = 1 + i % 5;
        }
    }
}

static void make_place(struct place *place)
{
    const char *folder = slc_test_folder();
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_generate_options small = {.struct_bytes = sizeof small};
    FILE *file;

    place->folder = folder;
    (void)snprintf(place->text, sizeof place->text, "%s/in.tns", folder);
    (void)snprintf(place->more, sizeof place->more, "%s/more.tns", folder);
    (void)snprintf(place->store, sizeof place->store, "%s/in.slc", folder);
    (void)snprintf(place->grown, sizeof place->grown, "%s/grown.slc", folder);
    make_numbers(place);
    file = fopen(place->more, "w");
    CU_ASSERT_FATAL(file != NULL && fputs("1 1 1 2\n301 1 1 2\n", file) > 0 && fclose(file) == 0);
    small.output.block_bytes = 4096;
    API_OK(sluice_generate(place->text, ORDER, dims, NNZ, NULL, &err), &err);
    API_OK(sluice_generate(place->store, ORDER, dims, STORE_NNZ, &small, &err), &err);
    API_OK(sluice_convert(place->text, place->grown, NULL, NULL, &err), &err);
    API_OK(sluice_layout_add(place->grown, SLUICE_LAYOUT_SORTED, 0, NULL, &err), &err);
    API_OK(sluice_store_open(place->store, &place->open, &err), &err);
    API_OK(sluice_model_create(ORDER, dims, RANK, NULL, (const double *const *)place->matrices,
                               &place->model, &err),
           &err);
}

static void drop_place(struct place *place)
{
    sluice_store_close(place->open);
    sluice_model_destroy(place->model);
    for (unsigned n = 0; n < ORDER; n++) {
        free(place->coords[n]);
        free(place->matrices[n]);
    }
    free(place->values);
}

/* Stops each call at its first report, then at its second, and so on, until the call finishes. */
static void stop_each(void)
{
    static const struct {
        const char *name;
        call_fn *call;
        unsigned stops; /* minimum number of stops midway */
    } calls[] = {{"convert", convert, 2},
                 {"convert-spilled", convert_spilled, 1},
                 {"convert-table", convert_table, 1},
                 {"build", build, 1},
                 {"append", append, 3},
                 {"generate-store", generate_store, 2},
                 {"generate-text", generate_text, 1},
                 {"slice", slice, 2},
                 {"permute", permute, 2},
                 {"export", export, 1},
                 {"export-model", export_model, 2},
                 {"check", verify, 1},
                 {"ttv-sorted", ttv_sorted, 2},
                 {"ttv-ordered", ttv_ordered, 1},
                 {"ttm", ttm, 2},
                 {"mttkrp", mttkrp, 0},
                 {"predict-text", predict_text, 0},
                 {"predict", predict, 0}};
    struct place place = {.open = NULL};

    make_place(&place);
    for (unsigned c = 0; c < SLC_COUNT(calls); c++) {
        struct halt halt = {.stop = 1};
        unsigned stops = 0;

        (void)snprintf(place.output, sizeof place.output, "%s/%s", place.folder, calls[c].name);
        CU_ASSERT_TRUE(is_stopped(&place, calls[c].call, &halt));
        do {
            halt = (struct halt){.at = stops};
        } while (is_stopped(&place, calls[c].call, &halt) && ++stops < CALLS_MAX);
        if (stops == CALLS_MAX) {
            halt = (struct halt){.at = UINT32_MAX};
            CU_ASSERT_FALSE(is_stopped(&place, calls[c].call, &halt));
        }
        printf("# %s: stopped %u times midway\n", calls[c].name, stops);
        CU_ASSERT(stops >= calls[c].stops);
    }
    drop_place(&place);
}

/* A stopped layout keeps its finished work, and the store stays valid. */
static void stop_layouts(void)
{
    struct place place = {.open = NULL};

    make_place(&place);
    for (unsigned kind = SLUICE_LAYOUT_SORTED; kind <= SLUICE_LAYOUT_FIBER; kind++) {
        enum sluice_status status = SLUICE_ERR_INTERRUPTED;

        for (unsigned at = 0; status != SLUICE_OK; at++) {
            struct halt halt = {.stop = at == 0, .at = at - 1};
            const struct sluice_layout_options options = {.struct_bytes = sizeof options,
                                                          .run = run_of(&halt)};
            struct sluice_error err = SLUICE_ERROR_INIT;

            status =
                sluice_layout_add(place.store, (enum sluice_layout_kind)kind, MODE, &options, &err);
            CU_ASSERT(status == SLUICE_OK || status == SLUICE_ERR_INTERRUPTED);
            CU_ASSERT(status == (at == 0 ? SLUICE_ERR_INTERRUPTED : status));
            err = (struct sluice_error)SLUICE_ERROR_INIT;
            API_OK(sluice_check(place.store, NULL, NULL, &err), &err);
            CU_ASSERT_FATAL(at < 100);
        }
    }
    drop_place(&place);
}

static const struct slc_test tests[] = {
    {"every long call can be stopped and leaves nothing", stop_each},
    {"layouts that are stopped go on", stop_layouts}};

SLC_SUITE(stop)
{
    return slc_test_main("api_stop", tests, SLC_COUNT(tests), argc, argv);
}
