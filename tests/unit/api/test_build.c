/* Stores built from pushed nonzeros, and their layouts, through the public API. */
#include "api_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORDER = 3, ENTRIES = 50000 };
static const uint64_t dims[ORDER] = {300, 200, 100};

/* Nonzeros with repeated coordinates, the same for the same seed. */
struct entries {
    uint64_t *coords[ORDER];
    double *values;
};

static struct entries draw(unsigned seed)
{
    struct entries e;
    uint64_t state = seed;

    for (unsigned n = 0; n < ORDER; n++) {
        e.coords[n] = calloc(ENTRIES, sizeof *e.coords[n]);
        for (unsigned i = 0; i < ENTRIES; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            e.coords[n][i] = (state >> 33) % dims[n];
        }
    }
    e.values = calloc(ENTRIES, sizeof *e.values);
    for (unsigned i = 0; i < ENTRIES; i++) {
        e.values[i] = 1 + i % 7;
    }
    return e;
}

static void drop(struct entries *e)
{
    for (unsigned n = 0; n < ORDER; n++) {
        free(e->coords[n]);
    }
    free(e->values);
}

/* Pushes all nonzeros, `piece` at a time. */
static void push_all(struct sluice_builder *builder, const struct entries *e, uint64_t piece)
{
    struct sluice_error err = SLUICE_ERROR_INIT;

    for (uint64_t at = 0; at < ENTRIES; at += piece) {
        const uint64_t *coords[ORDER] = {e->coords[0] + at, e->coords[1] + at, e->coords[2] + at};
        const uint64_t count = ENTRIES - at < piece ? ENTRIES - at : piece;

        API_OK(sluice_builder_push(builder, count, coords, e->values + at, &err), &err);
    }
}

/* The bytes of the store's block file; release with free. */
static char *block_file(const char *store, size_t *bytes)
{
    char path[700];
    FILE *file;
    char *data;

    snprintf(path, sizeof path, "%s/blco.blk", store);
    file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    data = malloc(*bytes);
    CU_ASSERT_EQUAL(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

static void same_store_as_from_text(void)
{
    static const uint64_t pieces[] = {ENTRIES, 777, 40000};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct entries e = draw(5);
    char text[600], path[600];
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    size_t want_bytes, got_bytes;
    char *want;
    FILE *file;

    snprintf(text, sizeof text, "%s/e.tns", slc_test_folder());
    snprintf(path, sizeof path, "%s/text.slc", slc_test_folder());
    file = fopen(text, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (unsigned i = 0; i < ENTRIES; i++) {
        fprintf(file, "%d %d %d %g\n", (int)e.coords[0][i] + 1, (int)e.coords[1][i] + 1,
                (int)e.coords[2][i] + 1, e.values[i]);
    }
    fclose(file);
    API_OK(sluice_convert(text, path, NULL, NULL, &err), &err);
    want = block_file(path, &want_bytes);
    for (unsigned p = 0; p < SLC_COUNT(pieces); p++) {
        struct sluice_builder *builder = NULL;
        char *got;

        snprintf(path, sizeof path, "%s/pushed-%u.slc", slc_test_folder(), p);
        API_OK(sluice_builder_create(path, ORDER, NULL, &builder, &err), &err);
        push_all(builder, &e, pieces[p]);
        API_OK(sluice_builder_finish(builder, &report, &err), &err);
        CU_ASSERT_EQUAL(report.entries, ENTRIES);
        CU_ASSERT_EQUAL(report.nnz + report.duplicates, ENTRIES);
        CU_ASSERT_TRUE(report.duplicates > 0);
        for (unsigned n = 0; n < ORDER; n++) {
            CU_ASSERT_EQUAL(report.dims[n], dims[n]);
        }
        got = block_file(path, &got_bytes);
        CU_ASSERT_EQUAL(got_bytes, want_bytes);
        CU_ASSERT_TRUE(got_bytes == want_bytes && memcmp(got, want, got_bytes) == 0);
        free(got);
    }
    free(want);
    drop(&e);
}

/* Pushed zeros, -0 and a sum that cancels are listed cells with keep_zeros, also in a slice;
 * without it they are dropped. The store reports statistics of its values. */
static void keeps_zeros(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    const uint64_t rows[6] = {0, 1, 2, 0, 0, 3}, columns[6] = {0, 1, 2, 3, 3, 0};
    const uint64_t *const coords[2] = {rows, columns};
    const double values[6] = {1.5, 0, -0.0, 2, -2, 4};
    const double want[3] = {0, 1.5, 4};
    const struct sluice_range range = {0, 0, 2};
    char path[600], part[600];

    for (uint64_t keep = 0; keep < 2; keep++) {
        struct sluice_builder_options options = {.struct_bytes = sizeof options,
                                                 .keep_zeros = keep};
        struct sluice_convert_report report = {.struct_bytes = sizeof report};
        struct sluice_store_info info = {.struct_bytes = sizeof info};
        struct sluice_builder *builder = NULL;
        struct sluice_store *store = NULL;

        snprintf(path, sizeof path, "%s/zeros-%d.slc", slc_test_folder(), (int)keep);
        snprintf(part, sizeof part, "%s/part-%d.slc", slc_test_folder(), (int)keep);
        API_OK(sluice_builder_create(path, 2, &options, &builder, &err), &err);
        API_OK(sluice_builder_push(builder, 6, coords, values, &err), &err);
        API_OK(sluice_builder_finish(builder, &report, &err), &err);
        CU_ASSERT(report.nnz == (keep ? 5 : 2) && report.listed_zeros == (keep ? 3 : 0));
        CU_ASSERT_EQUAL(report.explicit_zeros, keep ? 0 : 3);
        API_OK(sluice_store_open(path, &store, &err), &err);
        API_OK(sluice_store_get_info(store, &info, &err), &err);
        CU_ASSERT(info.keep_zeros == keep && info.listed_zeros == report.listed_zeros);
        CU_ASSERT(info.value_min == want[!keep] && info.value_max == 4 && !info.all_integers);
        CU_ASSERT_EQUAL(info.distinct_count, 2 + keep);
        CU_ASSERT_EQUAL(memcmp(info.distinct_values, want + !keep, (2 + keep) * sizeof *want), 0);
        CU_ASSERT_EQUAL(info.distinct_values[2 + keep], 0);
        sluice_store_close(store);
        report = (struct sluice_convert_report){.struct_bytes = sizeof report};
        API_OK(sluice_slice(path, part, 1, &range, NULL, &report, &err), &err);
        CU_ASSERT(report.nnz == (keep ? 4 : 1) && report.listed_zeros == (keep ? 3 : 0));
    }
}

/* Begins a store of two modes of sizes 3 and 4. */
static struct sluice_builder *begin_small(const char *path)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_builder_options options = {.struct_bytes = sizeof options};
    struct sluice_builder *builder = NULL;

    options.entries.dims_order = 2;
    options.entries.dims[0] = 3;
    options.entries.dims[1] = 4;
    options.entries.duplicates = SLUICE_DUPLICATES_KEEP_LAST;
    API_OK(sluice_builder_create(path, 2, &options, &builder, &err), &err);
    return builder;
}

static void rejects_invalid_nonzeros(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    const uint64_t rows[2] = {1, 1}, columns[2] = {2, 4}, inside[2] = {2, 2};
    const double values[2] = {1, 2}, infinite[2] = {1, INFINITY};
    const uint64_t *const beyond[2] = {rows, columns}, *const good[2] = {rows, inside};
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    struct sluice_builder *builder;
    char path[600];

    snprintf(path, sizeof path, "%s/small.slc", slc_test_folder());
    builder = begin_small(path);
    API_REFUSED(sluice_builder_push(builder, 2, beyond, values, &err), SLUICE_ERR_INPUT, &err,
                "entry 1 has index 4 in mode 1");
    API_REFUSED(sluice_builder_push(builder, 2, good, values, &err), SLUICE_ERR_USAGE, &err,
                "earlier push");
    API_FAILS(sluice_builder_finish(builder, NULL, &err), SLUICE_ERR_USAGE, &err, "push");
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);

    builder = begin_small(path);
    api_clear(&err);
    API_FAILS(sluice_builder_push(builder, 2, good, infinite, &err), SLUICE_ERR_INPUT, &err,
              "entry 1 is inf");
    sluice_builder_abandon(builder);
    sluice_builder_abandon(NULL);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);

    builder = begin_small(path);
    api_clear(&err);
    API_OK(sluice_builder_push(builder, 2, good, values, &err), &err);
    API_OK(sluice_builder_finish(builder, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.nnz, 1);
    CU_ASSERT_EQUAL(info.norm, 2.0);
    CU_ASSERT_TRUE(info.dims[0] == 3 && info.dims[1] == 4);
    sluice_store_close(store);
}

static void needs_lengths_without_entries(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_builder_options options = {.struct_bytes = sizeof options};
    struct sluice_builder *builder = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/none.slc", slc_test_folder());
    API_REFUSED(sluice_builder_create(path, 0, NULL, &builder, &err), SLUICE_ERR_USAGE, &err,
                "order");
    options.run.memory_bytes = 1 << 20;
    API_REFUSED(sluice_builder_create(path, 2, &options, &builder, &err), SLUICE_ERR_BUDGET, &err,
                "MiB of memory or more");
    CU_ASSERT_PTR_NULL(builder);
    API_OK(sluice_builder_create(path, 2, NULL, &builder, &err), &err);
    API_FAILS(sluice_builder_finish(builder, NULL, &err), SLUICE_ERR_INPUT, &err, "mode sizes");
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
}

/* Returns the number of layouts of a store; *found is the number of `kind` and mode 1. */
static uint32_t count_layouts(const char *path, enum sluice_layout_kind kind, unsigned *found)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_layout_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    uint32_t count;

    API_OK(sluice_store_open(path, &store, &err), &err);
    count = sluice_store_layout_count(store);
    *found = 0;
    for (uint32_t i = 0; i < count; i++) {
        API_OK(sluice_store_get_layout(store, i, &info, &err), &err);
        CU_ASSERT_TRUE(info.file_bytes > 0 && info.block_count > 0);
        *found += info.kind == kind && info.mode == 1;
    }
    API_FAILS(sluice_store_get_layout(store, count, &info, &err), SLUICE_ERR_USAGE, &err, "layout");
    sluice_store_close(store);
    return count;
}

static void adds_and_drops_layouts(void)
{
    static const enum sluice_layout_kind kinds[] = {SLUICE_LAYOUT_SORTED, SLUICE_LAYOUT_FIBER};
    struct sluice_error err = SLUICE_ERROR_INIT;
    unsigned found;
    char path[600];

    snprintf(path, sizeof path, "%s/laid.slc", slc_test_folder());
    API_OK(sluice_generate(path, ORDER, dims, 3000, NULL, &err), &err);
    for (unsigned k = 0; k < SLC_COUNT(kinds); k++) {
        CU_ASSERT_EQUAL(count_layouts(path, kinds[k], &found), 1);
        CU_ASSERT_EQUAL(found, 0);
        API_OK(sluice_layout_add(path, kinds[k], 1, NULL, &err), &err);
        API_OK(sluice_layout_add(path, kinds[k], 1, NULL, &err), &err);
        CU_ASSERT_EQUAL(count_layouts(path, kinds[k], &found), 2);
        CU_ASSERT_EQUAL(found, 1);
        API_OK(sluice_check(path, NULL, NULL, &err), &err);
        API_OK(sluice_layout_drop(path, kinds[k], 1, &err), &err);
        API_REFUSED(sluice_layout_drop(path, kinds[k], 1, &err), SLUICE_ERR_USAGE, &err, "");
    }
    API_REFUSED(sluice_layout_add(path, SLUICE_LAYOUT_SORTED, 3, NULL, &err), SLUICE_ERR_USAGE,
                &err, "mode 3");
    API_FAILS(sluice_layout_add(path, SLUICE_LAYOUT_BLCO, 0, NULL, &err), SLUICE_ERR_USAGE, &err,
              "kind");
}

/* Number of stripes of the first layout; `path` receives the path of the last. */
static uint32_t stripes_of(const char *store_path, char *path, uint64_t path_bytes)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_layout_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    uint64_t bytes = 0;

    API_OK(sluice_store_open(store_path, &store, &err), &err);
    API_OK(sluice_store_get_layout(store, 0, &info, &err), &err);
    for (uint32_t k = 0; k < info.stripes; k++) {
        API_OK(sluice_store_get_stripe(store, 0, k, path, path_bytes, &bytes, &err), &err);
        CU_ASSERT_EQUAL(bytes, strlen(path) + 1);
    }
    API_REFUSED(sluice_store_get_stripe(store, 0, info.stripes, path, path_bytes, &bytes, &err),
                SLUICE_ERR_USAGE, &err, "stripe");
    API_FAILS(sluice_store_get_stripe(store, 7, 0, path, path_bytes, &bytes, &err),
              SLUICE_ERR_USAGE, &err, "layout 7");
    sluice_store_close(store);
    return info.stripes;
}

static void stripes_and_gathers(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    char path[600], drive[2][600], found[700] = "";
    const char *folders[20] = {drive[0], drive[1]};
    struct sluice_layout_options options = {.struct_bytes = sizeof options};
    atomic_int stop = 1;

    snprintf(path, sizeof path, "%s/striped.slc", slc_test_folder());
    for (unsigned k = 0; k < 2; k++) {
        snprintf(drive[k], sizeof drive[k], "%s/drive-%u", slc_test_folder(), k);
        CU_ASSERT_EQUAL(mkdir(drive[k], 0777), 0);
    }
    API_OK(sluice_generate(path, ORDER, dims, 3000, NULL, &err), &err);
    CU_ASSERT_EQUAL(stripes_of(path, found, sizeof found), 0);
    options.run.stop = &stop;
    API_REFUSED(sluice_layout_stripe(path, SLUICE_LAYOUT_BLCO, 0, 2, folders, &options, &err),
                SLUICE_ERR_INTERRUPTED, &err, "");
    CU_ASSERT_EQUAL(stripes_of(path, found, sizeof found), 0);
    for (unsigned turn = 0; turn < 2; turn++) {
        API_OK(sluice_layout_stripe(path, SLUICE_LAYOUT_BLCO, 0, 2, folders, NULL, &err), &err);
        CU_ASSERT_EQUAL(stripes_of(path, found, sizeof found), 2);
        CU_ASSERT_EQUAL(strncmp(found, drive[1], strlen(drive[1])), 0);
        CU_ASSERT_EQUAL(access(found, R_OK), 0);
        API_OK(sluice_check(path, NULL, NULL, &err), &err);
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        API_OK(sluice_layout_gather(path, SLUICE_LAYOUT_BLCO, 0, NULL, &err), &err);
        CU_ASSERT_EQUAL(stripes_of(path, found, sizeof found), 0);
    }
    CU_ASSERT_NOT_EQUAL(access(found, R_OK), 0);
    API_REFUSED(sluice_layout_stripe(path, SLUICE_LAYOUT_SORTED, 1, 2, folders, NULL, &err),
                SLUICE_ERR_USAGE, &err, "");
    API_REFUSED(sluice_layout_stripe(path, SLUICE_LAYOUT_BLCO, 0, 20, folders, NULL, &err),
                SLUICE_ERR_USAGE, &err, "20 folders");
    folders[1] = "/nowhere/at/all";
    API_REFUSED(sluice_layout_stripe(path, SLUICE_LAYOUT_BLCO, 0, 2, folders, NULL, &err),
                SLUICE_ERR_IO, &err, "stripes");
    API_FAILS(sluice_layout_gather(path, (enum sluice_layout_kind)9, 0, NULL, &err),
              SLUICE_ERR_USAGE, &err, "kind 9");
}

static uint64_t nnz_of(const char *path, uint64_t *lengths)
{
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_store *store = NULL;
    struct sluice_error err = SLUICE_ERROR_INIT;

    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    memcpy(lengths, info.dims, ORDER * sizeof *lengths);
    sluice_store_close(store);
    return info.nnz;
}

/* A store of 3000 generated nonzeros to which those of `text` were appended. */
static void expect_origin(const char *path, const char *text, uint64_t nnz)
{
    struct sluice_store_info info = {.struct_bytes = sizeof info};
    struct sluice_appended appended = {.struct_bytes = sizeof appended};
    struct sluice_store *store = NULL;
    struct sluice_error err = SLUICE_ERROR_INIT;

    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_store_get_info(store, &info, &err), &err);
    CU_ASSERT_EQUAL(info.appended, 1);
    CU_ASSERT(info.entries == 3002 && info.nnz == nnz && info.nnz + info.duplicates == 3002);
    CU_ASSERT_STRING_EQUAL(info.dialect, "generate");
    CU_ASSERT_STRING_EQUAL(info.transforms, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(info.writer, sluice_version()));
    /* total_bytes includes further layouts. */
    CU_ASSERT(info.total_bytes > info.store_bytes && info.tile_count > 0 && info.key_bits >= 24);
    CU_ASSERT_EQUAL(info.named_modes, 0);
    API_OK(sluice_store_get_appended(store, 0, &appended, &err), &err);
    CU_ASSERT_STRING_EQUAL(appended.source, text);
    CU_ASSERT_EQUAL(appended.entries, 2);
    API_FAILS(sluice_store_get_appended(store, 1, &appended, &err), SLUICE_ERR_USAGE, &err,
              "input 1 does not exist: the store has 1");
    sluice_store_close(store);
}

static void appends_once(void)
{
    struct sluice_append_report report = {.struct_bytes = sizeof report};
    struct sluice_append_options options = {.struct_bytes = sizeof options};
    struct sluice_error err = SLUICE_ERROR_INIT;
    uint64_t lengths[ORDER];
    char path[600], text[600];
    FILE *file;

    snprintf(path, sizeof path, "%s/grown.slc", slc_test_folder());
    snprintf(text, sizeof text, "%s/more.tns", slc_test_folder());
    API_OK(sluice_generate(path, ORDER, dims, 3000, NULL, &err), &err);
    API_OK(sluice_layout_add(path, SLUICE_LAYOUT_SORTED, 1, NULL, &err), &err);
    file = fopen(text, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("301 1 1 2.5\n1 1 120 -3\n", file);
    fclose(file);
    options.fixed_modes = 1;
    API_REFUSED(sluice_append(path, text, &options, &report, &err), SLUICE_ERR_INPUT, &err,
                "must not grow");
    for (unsigned turn = 0; turn < 2; turn++) {
        API_OK(sluice_append(path, text, NULL, &report, &err), &err);
        CU_ASSERT_EQUAL(report.known, turn);
        CU_ASSERT_EQUAL(report.entries, 2);
        CU_ASSERT_EQUAL(report.layouts_dropped, 0);
        CU_ASSERT_EQUAL(nnz_of(path, lengths), report.nnz);
        CU_ASSERT(lengths[0] == 301 && lengths[1] == dims[1] && lengths[2] == 120);
        CU_ASSERT_EQUAL(memcmp(report.dims, lengths, sizeof lengths), 0);
    }
    CU_ASSERT_EQUAL(report.nnz_before, report.nnz);
    expect_origin(path, text, report.nnz);
    options.fixed_modes = 0;
    options.again = 1;
    options.drop_layouts = 1;
    API_OK(sluice_append(path, text, &options, &report, &err), &err);
    CU_ASSERT(report.known == 0 && report.layouts_dropped == 1);
    API_OK(sluice_check(path, NULL, NULL, &err), &err);
}

static void slices_and_permutes(void)
{
    static const struct sluice_range ranges[] = {{.mode = 2, .first = 10, .last = 19},
                                                 {.mode = 2, .first = 15, .last = 24},
                                                 {.mode = 0, .first = 290, .last = UINT64_MAX}};
    static const uint32_t order[] = {2, 0, 1}, wrong[] = {2, 0, 2};
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    struct sluice_reshape_options options = {.struct_bytes = sizeof options};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_range bad = {.mode = 0, .first = 3, .last = 2};
    uint64_t lengths[ORDER];
    char path[600], cut[600], turned[600];

    snprintf(path, sizeof path, "%s/whole.slc", slc_test_folder());
    snprintf(cut, sizeof cut, "%s/cut.slc", slc_test_folder());
    snprintf(turned, sizeof turned, "%s/turned.slc", slc_test_folder());
    API_OK(sluice_generate(path, ORDER, dims, 90000, NULL, &err), &err);
    options.transform = "binarize,scale=3";
    API_OK(sluice_slice(path, cut, 3, ranges, &options, &report, &err), &err);
    CU_ASSERT(report.nnz > 0 && report.nnz < report.entries);
    CU_ASSERT_EQUAL(nnz_of(cut, lengths), report.nnz);
    CU_ASSERT(lengths[0] == 10 && lengths[1] == dims[1] && lengths[2] == 15);
    API_OK(sluice_permute(path, turned, ORDER, order, NULL, &report, &err), &err);
    CU_ASSERT_EQUAL(nnz_of(turned, lengths), report.entries);
    CU_ASSERT(lengths[0] == dims[2] && lengths[1] == dims[0] && lengths[2] == dims[1]);
    API_REFUSED(sluice_permute(path, turned, ORDER, order, NULL, NULL, &err), SLUICE_ERR_IO, &err,
                "exists");
    options.output.overwrite = 1;
    API_REFUSED(sluice_permute(path, turned, ORDER, wrong, &options, NULL, &err), SLUICE_ERR_USAGE,
                &err, "each of the modes 0 to 2 once");
    API_REFUSED(sluice_permute(path, turned, 0, wrong, &options, NULL, &err), SLUICE_ERR_USAGE,
                &err, "modes has 0 numbers");
    API_REFUSED(sluice_slice(path, cut, 1, &bad, &options, NULL, &err), SLUICE_ERR_USAGE, &err,
                "range 0");
    bad = (struct sluice_range){.mode = 3, .first = 0, .last = 0};
    API_REFUSED(sluice_slice(path, cut, 1, &bad, &options, NULL, &err), SLUICE_ERR_USAGE, &err,
                "mode 3 does not exist; the tensor has modes 0 to 2");
    bad = (struct sluice_range){.mode = 1, .first = 0, .last = dims[1]};
    API_REFUSED(sluice_slice(path, cut, 1, &bad, &options, NULL, &err), SLUICE_ERR_USAGE, &err,
                "of mode 1 does not exist");
    options.transform = "binarize,,";
    API_FAILS(sluice_slice(path, cut, 0, NULL, &options, NULL, &err), SLUICE_ERR_USAGE, &err,
              "transform");
}

/* Every export format of a tensor of `order` modes converts back to the same store. */
static void export_and_back(const char *path, const char *const *names, unsigned count)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_convert_report report = {.struct_bytes = sizeof report};
    uint64_t lengths[SLUICE_MAX_ORDER], lines = 0;
    const uint64_t nnz = nnz_of(path, lengths);

    for (unsigned k = 0; k < count; k++) {
        struct sluice_export_options options = {.struct_bytes = sizeof options};
        char output[600], back[600];

        options.form =
            strcmp(names[k], "scipy.npz") == 0 ? SLUICE_EXPORT_SCIPY : SLUICE_EXPORT_AUTO;
        snprintf(output, sizeof output, "%s.%s", path, names[k]);
        snprintf(back, sizeof back, "%s.%s.slc", path, names[k]);
        API_OK(sluice_export(path, output, &options, &lines, &err), &err);
        CU_ASSERT_EQUAL(lines, nnz);
        if (strcmp(names[k], "mat") != 0) {
            API_OK(sluice_convert(output, back, NULL, &report, &err), &err);
            CU_ASSERT_EQUAL(report.nnz, nnz);
        }
        API_REFUSED(sluice_export(path, output, &options, NULL, &err), SLUICE_ERR_IO, &err,
                    "exists");
    }
}

static void exports_in_every_form(void)
{
    static const char *const three[] = {"tns", "bin", "npz", "mat"}, *const two[] = {"scipy.npz"};
    static const uint64_t square[] = {50, 60};
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_export_options options = {.struct_bytes = sizeof options};
    char path[600], output[600];

    snprintf(path, sizeof path, "%s/three", slc_test_folder());
    snprintf(output, sizeof output, "%s/three.slc", slc_test_folder());
    API_OK(sluice_generate(output, ORDER, dims, 3000, NULL, &err), &err);
    CU_ASSERT_EQUAL(rename(output, path), 0);
    export_and_back(path, three, SLC_COUNT(three));
    options.form = SLUICE_EXPORT_NPZ;
    API_REFUSED(sluice_export(path, "-", &options, NULL, &err), SLUICE_ERR_USAGE, &err,
                "name a file");
    options.form = SLUICE_EXPORT_SCIPY;
    API_REFUSED(sluice_export(path, output, &options, NULL, &err), SLUICE_ERR_UNSUPPORTED, &err,
                "");
    options.form = (enum sluice_export_form)9;
    API_REFUSED(sluice_export(path, output, &options, NULL, &err), SLUICE_ERR_USAGE, &err,
                "form 9");
    snprintf(path, sizeof path, "%s/two.slc", slc_test_folder());
    API_OK(sluice_generate(path, 2, square, 600, NULL, &err), &err);
    export_and_back(path, two, SLC_COUNT(two));
}

static void plans_an_mttkrp(void)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_plan plan = {.struct_bytes = sizeof plan};
    struct sluice_store *store = NULL;
    char path[600];

    snprintf(path, sizeof path, "%s/planned.slc", slc_test_folder());
    API_OK(sluice_generate(path, ORDER, dims, 3000, NULL, &err), &err);
    API_OK(sluice_store_open(path, &store, &err), &err);
    API_OK(sluice_mttkrp_plan(store, 2, 8, NULL, &plan, &err), &err);
    CU_ASSERT_TRUE(plan.total_bytes > 0 && plan.total_bytes <= plan.budget_bytes);
    CU_ASSERT_EQUAL(plan.passes, 1);
    API_FAILS(sluice_mttkrp_plan(store, 3, 8, NULL, &plan, &err), SLUICE_ERR_USAGE, &err, "mode 3");
    sluice_store_close(store);
}

SLC_SUITE(build)
{
    static const struct slc_test tests[] = {
        {"entries that are pushed make the store that text makes", same_store_as_from_text},
        {"zeros are kept on request", keeps_zeros},
        {"invalid nonzeros are rejected", rejects_invalid_nonzeros},
        {"lengths, orders and budgets that do not do", needs_lengths_without_entries},
        {"layouts are added, listed and dropped", adds_and_drops_layouts},
        {"layouts move to other folders, and back", stripes_and_gathers},
        {"nonzeros are appended once", appends_once},
        {"slices and permutations", slices_and_permutes},
        {"stores in every form", exports_in_every_form},
        {"the plan of an MTTKRP", plans_an_mttkrp},
    };

    return slc_test_main("api: build", tests, SLC_COUNT(tests), argc, argv);
}
