/*
 * The builder against a naive executable specification: entries in input order, stably sorted by
 * key, combined one after the other. And the property that the store is the same bytes for any
 * threads, memory, sample, cutting and order of pushing.
 */
#include "base/fault.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/team.h"
#include "convert/builder.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- input and specification */

/* One folder for the whole program: the harness gives a fresh one at every call. */
static const char *test_folder(void)
{
    static const char *folder;

    if (folder == NULL) {
        folder = slc_test_folder();
    }
    return folder;
}

struct input {
    unsigned order;
    unsigned base; /* of the coordinates as pushed */
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t count;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

struct expected {
    struct slc_key_layout layout;
    uint64_t count;
    slc_u128 *keys;
    double *values;
    uint64_t duplicates, zeros;
};

enum shape { UNIFORM, SKEWED, SORTED, EQUAL, ZEROS };

static void input_create(struct input *input,
                         unsigned order,
                         const uint64_t *dims,
                         uint64_t count,
                         unsigned base,
                         enum shape shape,
                         uint64_t seed)
{
    uint64_t i;
    unsigned m;

    *input = (struct input){.order = order, .base = base, .count = count};
    memcpy(input->dims, dims, order * sizeof *dims);
    for (m = 0; m < order; m++) {
        input->coords[m] = malloc((count + 1) * sizeof(uint64_t));
    }
    input->values = malloc((count + 1) * sizeof(double));
    for (i = 0; i < count; i++) {
        for (m = 0; m < order; m++) {
            uint64_t coord = slc_random_below(seed, m, i, dims[m]);

            if (shape == SKEWED && slc_random_below(seed, 40, i, 10) != 0) {
                coord %= 3;
            }
            coord = shape == EQUAL ? dims[m] / 2 : coord;
            coord = shape == SORTED ? (i * dims[m]) / count : coord;
            input->coords[m][i] = coord + base;
        }
        input->values[i] = slc_random_normal(seed, 41, i);
        if (shape == ZEROS) {
            input->values[i] = (double)slc_random_below(seed, 42, i, 3) - 1;
        }
    }
}

static void input_destroy(struct input *input)
{
    unsigned m;

    for (m = 0; m < input->order; m++) {
        free(input->coords[m]);
    }
    free(input->values);
}

struct entry {
    slc_u128 key;
    uint64_t at;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->at < y->at ? -1 : 1;
}

static void expected_create(struct expected *e,
                            const struct input *input,
                            enum slc_duplicates policy,
                            bool single)
{
    struct entry *entries = malloc((input->count + 1) * sizeof *entries);
    uint64_t i, coords[SLC_MAX_ORDER];
    unsigned m;

    *e = (struct expected){0};
    SLC_ASSERT_OK(slc_key_layout_init(&e->layout, input->order, input->dims, NULL), NULL);
    e->keys = malloc((input->count + 1) * sizeof *e->keys);
    e->values = malloc((input->count + 1) * sizeof *e->values);
    for (i = 0; i < input->count; i++) {
        for (m = 0; m < input->order; m++) {
            coords[m] = input->coords[m][i] - input->base;
        }
        entries[i] = (struct entry){slc_key_encode(&e->layout, coords), i};
    }
    qsort(entries, input->count, sizeof *entries, compare_entries);
    for (i = 0; i < input->count;) {
        slc_u128 key = entries[i].key;
        double value = input->values[entries[i].at];

        for (i++; i < input->count && entries[i].key == key; i++) {
            double later = input->values[entries[i].at];

            e->duplicates++;
            value = policy == SLC_DUPLICATES_SUM         ? value + later
                    : policy == SLC_DUPLICATES_KEEP_LAST ? later
                                                         : value;
        }
        value = single ? (double)(float)value : value;
        if (value == 0) {
            e->zeros++;
            continue;
        }
        e->keys[e->count] = key;
        e->values[e->count++] = value;
    }
    free(entries);
}

static void expected_destroy(struct expected *e)
{
    free(e->keys);
    free(e->values);
}

/* ---- building */

struct build {
    unsigned workers;
    unsigned assumed_base;
    uint64_t memory; /* 0: the least */
    uint32_t cut;    /* entries per push */
    uint32_t sample; /* coordinates sampled; 0: no sample */
    bool biased;     /* the sample is the first of the input */
    bool backwards;  /* pieces are pushed last first */
    uint64_t entries_expected;
    enum slc_duplicates duplicates;
    enum slc_codec codec;
    enum slc_value_choice value;
    uint64_t max_temp;
    uint64_t block_bytes;
    const char *temp_folder;
    const struct slc_files *files;
};

struct pushing {
    const struct input *input;
    const struct build *build;
    struct slc_builder *builder;
    struct slc_error errors[8];
};

static void push_worker(void *context, unsigned worker, unsigned workers)
{
    struct pushing *p = context;
    uint64_t pieces = (p->input->count + p->build->cut - 1) / p->build->cut;
    uint64_t k;
    unsigned m;

    for (k = worker; k < pieces; k += workers) {
        uint64_t piece = p->build->backwards ? pieces - 1 - k : k;
        uint64_t begin = piece * p->build->cut;
        uint64_t left = p->input->count - begin;
        struct slc_entries entries = {.order = p->input->order,
                                      .count =
                                          left < p->build->cut ? (uint32_t)left : p->build->cut,
                                      .values = p->input->values + begin,
                                      .sequence = piece * 7};

        for (m = 0; m < p->input->order; m++) {
            entries.coords[m] = p->input->coords[m] + begin;
        }
        if (slc_builder_push(p->builder, worker, &entries, &p->errors[worker]) != SLC_OK) {
            return;
        }
    }
}

static enum slc_status give_sample(const struct input *input,
                                   const struct build *build,
                                   struct slc_builder *builder,
                                   struct slc_error *err)
{
    struct slc_entries entries = {.order = input->order, .count = build->sample};
    uint64_t *columns[SLC_MAX_ORDER];
    enum slc_status status;
    unsigned m;
    uint32_t i;

    for (m = 0; m < input->order; m++) {
        columns[m] = malloc(build->sample * sizeof(uint64_t));
        entries.coords[m] = columns[m];
        for (i = 0; i < build->sample; i++) {
            columns[m][i] =
                input->coords[m][build->biased ? i : (uint64_t)i * input->count / build->sample];
        }
    }
    status = slc_builder_sample(builder, &entries, build->entries_expected, err);
    for (m = 0; m < input->order; m++) {
        free(columns[m]);
    }
    return status;
}

static enum slc_status run_build(const struct input *input,
                                 const struct build *build,
                                 const char *output,
                                 bool overwrite,
                                 struct slc_builder_report *report,
                                 struct slc_error *err)
{
    struct slc_builder_options options = {.files = build->files,
                                          .output = output,
                                          .temp_folder = build->temp_folder,
                                          .overwrite = overwrite,
                                          .codec = build->codec ? build->codec : SLC_CODEC_PACKED,
                                          .value = build->value,
                                          .duplicates = build->duplicates,
                                          .block_bytes = build->block_bytes,
                                          .memory_bytes = build->memory,
                                          .max_temp = build->max_temp,
                                          .workers = build->workers,
                                          .assumed_base = build->assumed_base};
    struct slc_store_origin origin = {.source = "test", .dialect = "tns", .writer = "test"};
    struct pushing pushing = {.input = input, .build = build};
    enum slc_status status;
    unsigned w;

    if (options.memory_bytes == 0) {
        options.memory_bytes = slc_builder_memory_min(&options, input->order);
    }
    status = slc_builder_create(&options, input->order, &pushing.builder, err);
    if (status != SLC_OK) {
        return status;
    }
    if (build->sample > 0) {
        status = give_sample(input, build, pushing.builder, err);
    }
    for (w = 0; w < build->workers; w++) {
        slc_error_clear(&pushing.errors[w]);
    }
    if (status == SLC_OK) {
        status = slc_team_run(build->workers, push_worker, &pushing, err);
    }
    for (w = 0; w < build->workers && status == SLC_OK; w++) {
        status = pushing.errors[w].status;
        if (status != SLC_OK) {
            *err = pushing.errors[w];
        }
    }
    if (status != SLC_OK) {
        slc_builder_abandon(pushing.builder);
        return status;
    }
    return slc_builder_finish(pushing.builder, input->base, input->dims, &origin, report, err);
}

/* ---- looking at what was built */

static const char *path_in(const char *folder, const char *name)
{
    static char paths[8][2000];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* The store a test builds: one at a time. */
static const char *store_in_folder(const char *name)
{
    static char path[700];

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static bool exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

static uint64_t hash_of(const char *path)
{
    void *data = NULL;
    uint64_t bytes = 0;
    uint64_t hash;

    SLC_ASSERT_OK(slc_file_load(slc_files_system(), path, UINT64_C(1) << 32, &data, &bytes, NULL),
                  NULL);
    hash = slc_hash64(data, bytes);
    slc_free(data);
    return hash;
}

static void remove_store(const char *path)
{
    SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), path, NULL), NULL);
}

/* Compares a tile with the specification from nonzero `at`; returns the differences. */
static uint64_t compare_tile(struct slc_tile_view *tile, const struct expected *e, uint64_t at)
{
    struct slc_chunk_view chunk;
    uint64_t wrong = 0;
    uint64_t coords[SLC_MAX_ORDER];
    uint32_t i;
    unsigned m;

    for (;;) {
        SLC_ASSERT_OK(tile->next(tile, 1024, &chunk, NULL), NULL);
        if (chunk.nnz == 0) {
            return wrong;
        }
        for (i = 0; i < chunk.nnz; i++, at++) {
            const double *values = chunk.values;

            for (m = 0; m < tile->order; m++) {
                coords[m] = tile->corner[m] + chunk.offset[m][i];
            }
            wrong += at >= e->count || slc_key_encode(&e->layout, coords) != e->keys[at] ||
                     memcmp(&values[i], &e->values[at], sizeof *values) != 0;
        }
    }
}

static void check_store(const char *path, const struct expected *e)
{
    struct slc_store store = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_decoder *decoder = NULL;
    const struct slc_layout_info *info;
    uint64_t block, at = 0, wrong = 0;

    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    info = slc_reader_info(store.reader);
    CU_ASSERT_EQUAL(info->nnz, e->count);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, &err), &err);
    for (block = 0; block < info->block_count; block++) {
        struct slc_block_entry entry;
        struct slc_block_view view;
        void *data;
        uint32_t t;
        int fd = open(slc_reader_path(store.reader), O_RDONLY);

        slc_reader_entry(store.reader, block, &entry);
        data = malloc(entry.padded_bytes);
        CU_ASSERT(pread(fd, data, entry.padded_bytes, (off_t)entry.offset) ==
                  (ssize_t)entry.padded_bytes);
        close(fd);
        SLC_ASSERT_OK(slc_block_open(store.reader, block, data, false, &view, &err), &err);
        for (t = 0; t < entry.tile_count; t++) {
            struct slc_tile_view tile;

            SLC_ASSERT_OK(slc_tile_open(decoder, &view, t, &tile, &err), &err);
            wrong += compare_tile(&tile, e, at);
            at += tile.nnz;
        }
        free(data);
    }
    CU_ASSERT_EQUAL(at, e->count);
    CU_ASSERT_EQUAL(wrong, 0);
    slc_decoder_destroy(decoder);
    slc_store_close(&store);
}

static void build_and_check(const struct input *input, const struct build *build, uint64_t *hash)
{
    const char *path = store_in_folder("x.slc");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct expected e;

    expected_create(&e, input, build->duplicates, build->value == SLC_VALUE_F32);
    SLC_ASSERT_OK(run_build(input, build, path, false, &report, &err), &err);
    CU_ASSERT_EQUAL(report.entries, input->count);
    CU_ASSERT_EQUAL(report.duplicates, e.duplicates);
    CU_ASSERT_EQUAL(report.explicit_zeros, e.zeros);
    CU_ASSERT_EQUAL(report.summary.nnz, e.count);
    check_store(path, &e);
    *hash = hash_of(path_in(path, "blco.blk"));
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "x.slc.part")));
    remove_store(path);
    expected_destroy(&e);
}

/* ---- tests */

static const uint64_t dims3[] = {900, 70, 5000};

static void test_every_way_gives_the_same_bytes(void)
{
    static const struct build builds[] = {
        {.workers = 1, .cut = 1u << 30, .memory = UINT64_C(1) << 30},
        {.workers = 2, .cut = 1000, .memory = UINT64_C(1) << 30, .sample = 4000},
        {.workers = 2, .cut = 1000, .sample = 4000, .entries_expected = 400000},
        {.workers = 3, .cut = 777, .sample = 100, .entries_expected = 4000000, .backwards = true},
        {.workers = 4, .cut = 10000},
        {.workers = 2, .cut = 5000, .sample = 500, .biased = true, .assumed_base = 0},
        {.workers = 2, .cut = 33, .sample = 3000, .assumed_base = 1, .entries_expected = 9000000},
        {.workers = 8, .cut = 4096, .memory = 60 << 20, .sample = 9, .entries_expected = 400000},
    };
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL, ZEROS};
    size_t s, b;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;
        uint64_t first = 0;

        input_create(&input, 3, dims3, 150000, s % 2, shapes[s], slc_test_seed());
        for (b = 0; b < SLC_COUNT(builds); b++) {
            struct build build = builds[b];
            uint64_t hash;

            if (b % 2 == 0) {
                build.assumed_base = input.base;
            }
            build_and_check(&input, &build, &hash);
            first = b == 0 ? hash : first;
            CU_ASSERT_EQUAL(hash, first);
        }
        input_destroy(&input);
    }
}

/* Large enough to spill and to overflow the least sort area several times over. */
static void test_overflow_recurses(void)
{
    static const enum shape shapes[] = {UNIFORM, SKEWED, SORTED, EQUAL};
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 30, 1};
    size_t s;

    for (s = 0; s < SLC_COUNT(shapes); s++) {
        struct input input;
        const char *path = store_in_folder("big.slc");
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        struct expected e;
        struct build small = {.workers = 2, .cut = 3000, .sample = 100, .biased = true};
        struct build large = {.workers = 1, .cut = 1u << 30, .memory = UINT64_C(1) << 30};
        uint64_t hash;

        input_create(&input, 3, s == 0 ? wide : dims3, 700000, 1, shapes[s], slc_test_seed() + 1);
        small.assumed_base = large.assumed_base = 1;
        SLC_ASSERT_OK(run_build(&input, &small, path, false, &report, &err), &err);
        CU_ASSERT(report.recursions > 0);
        CU_ASSERT(report.spill_bytes > 0);
        hash = hash_of(path_in(path, "blco.blk"));
        expected_create(&e, &input, SLC_DUPLICATES_SUM, false);
        check_store(path, &e);
        expected_destroy(&e);
        SLC_ASSERT_OK(run_build(&input, &large, path, true, &report, &err), &err);
        CU_ASSERT_EQUAL(report.recursions, 0);
        CU_ASSERT_EQUAL(report.spill_bytes, 0);
        CU_ASSERT_EQUAL(hash_of(path_in(path, "blco.blk")), hash);
        CU_ASSERT_FALSE(exists(path_in(test_folder(), "big.slc.old")));
        remove_store(path);
        input_destroy(&input);
    }
}

static void test_random_shapes(void)
{
    uint64_t seed = slc_test_seed() + 100;
    uint64_t round;

    for (round = 0; round < 60; round++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 1, round, SLC_MAX_ORDER);
        uint64_t dims[SLC_MAX_ORDER];
        unsigned m;
        struct input input;
        struct build build = {.workers = 1 + (unsigned)slc_random_below(seed, 2, round, 4),
                              .cut = 1 + (uint32_t)slc_random_below(seed, 3, round, 3000),
                              .sample = (uint32_t)slc_random_below(seed, 4, round, 300),
                              .entries_expected = slc_random_below(seed, 5, round, 10000000),
                              .assumed_base = (unsigned)slc_random_below(seed, 6, round, 2),
                              .codec =
                                  SLC_CODEC_PACKED + (unsigned)slc_random_below(seed, 7, round, 3),
                              .value = (enum slc_value_choice)slc_random_below(seed, 8, round, 3),
                              .block_bytes = round % 3 == 0 ? 4096 : 0,
                              .duplicates = round % 4 == 1   ? SLC_DUPLICATES_KEEP_FIRST
                                            : round % 4 == 2 ? SLC_DUPLICATES_KEEP_LAST
                                                             : SLC_DUPLICATES_SUM};
        uint64_t count = slc_random_below(seed, 9, round, 5000);
        uint64_t hash;

        for (m = 0; m < order; m++) {
            unsigned bits = (unsigned)slc_random_below(seed, 20 + m, round, 128 / order + 1);

            bits = bits > 62 ? 62 : bits;
            dims[m] = 1 + slc_random_below(seed, 40 + m, round, UINT64_C(1) << bits);
        }
        input_create(&input, order, dims, count, (unsigned)round % 2,
                     (enum shape)slc_random_below(seed, 10, round, 5), seed + round);
        build.sample = build.sample > count ? (uint32_t)count : build.sample;
        build_and_check(&input, &build, &hash);
        input_destroy(&input);
    }
}

/* One mode of 2^62: tiles end where their extent would pass 2^32 - 2. */
static void test_extents_cut_tiles(void)
{
    static const uint64_t dims[] = {UINT64_C(1) << 62, 3};
    struct build build = {.workers = 3, .cut = 500, .sample = 1000, .entries_expected = 1000000};
    struct build other = {.workers = 1, .cut = 100000, .memory = UINT64_C(1) << 28};
    struct input input;
    uint64_t a, b, i;

    input_create(&input, 2, dims, 70000, 0, UNIFORM, slc_test_seed());
    for (i = 0; i < input.count; i++) {
        /* Half of them in runs close enough to share tiles. */
        input.coords[0][i] >>= i % 2 == 0 ? 29 : 0;
    }
    build_and_check(&input, &build, &a);
    build_and_check(&input, &other, &b);
    CU_ASSERT_EQUAL(a, b);
    input_destroy(&input);
}

static void test_no_nonzeros_and_one(void)
{
    static const uint64_t dims[] = {1, 1, 1};
    struct build build = {.workers = 2, .cut = 10};
    uint64_t count;

    for (count = 0; count < 3; count++) {
        struct input input;
        uint64_t hash;

        input_create(&input, 3, dims, count, 1, UNIFORM, slc_test_seed());
        build_and_check(&input, &build, &hash);
        input_destroy(&input);
    }
}

static void test_messages(void)
{
    static const uint64_t dims[] = {10, 20};
    const char *path = store_in_folder("bad.slc");
    struct build build = {
        .workers = 1, .cut = 100, .memory = 100 << 20, .duplicates = SLC_DUPLICATES_ERROR};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;

    input_create(&input, 2, dims, 3, 0, UNIFORM, 1);
    memcpy(input.coords[0], (uint64_t[]){4, 9, 4}, 24);
    memcpy(input.coords[1], (uint64_t[]){6, 1, 6}, 24);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "(5, 7)");
    build.duplicates = SLC_DUPLICATES_SUM;
    input.values[0] = input.values[2] = 1.7e308;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "(5, 7)");
    build.value = SLC_VALUE_F32;
    input.values[2] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "f32");
    input.values[0] = 0.1;
    input.dims[1] = 6;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "mode 2");
    input.dims[1] = 20;
    input.base = 1;
    input.coords[0][1] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_INPUT, &err,
                     "start at 1");
    input.base = 0;
    slc_error_clear(&err);
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    CU_ASSERT_EQUAL(report.rounded_values, 2);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "exists");
    slc_error_clear(&err);
    build.memory = 1 << 20;
    SLC_ASSERT_FAILS(run_build(&input, &build, path, true, &report, &err), SLC_ERR_BUDGET, &err,
                     "at least");
    remove_store(path);
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "bad.slc.part")));
    input_destroy(&input);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static void test_leftovers(void)
{
    const char *path = store_in_folder("left.slc");
    char part[800];
    struct build build = {.workers = 1, .cut = 100};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;

    snprintf(part, sizeof part, "%s.part", path);
    input_create(&input, 3, dims3, 1000, 0, UNIFORM, 1);
    CU_ASSERT_EQUAL(mkdir(part, 0700), 0);
    write_text(path_in(part, "blco.blk"), "half");
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    CU_ASSERT_FALSE(exists(part));
    remove_store(path);
    CU_ASSERT_EQUAL(mkdir(part, 0700), 0);
    write_text(path_in(part, "thesis.tex"), "precious");
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_IO, &err,
                     "move it");
    CU_ASSERT(exists(path_in(part, "thesis.tex")));
    remove_store(part);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    write_text(path_in(path, "thesis.tex"), "precious");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, true, &report, &err), SLC_ERR_IO, &err,
                     "not a store");
    CU_ASSERT(exists(path_in(path, "thesis.tex")));
    remove_store(path);
    input_destroy(&input);
}

static void test_disk_limit_and_full_disk(void)
{
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 40};
    const char *path = store_in_folder("full.slc");
    struct build build = {.workers = 2, .cut = 3000, .max_temp = 1 << 20};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    struct input input;

    input_create(&input, 3, wide, 1000000, 0, UNIFORM, 1);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_BUDGET, &err,
                     "--max-temp");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "full.slc.part")));
    slc_faulty_init(&faulty);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_WRITE, 3, ENOSPC);
    build.max_temp = 0;
    build.temp_folder = test_folder();
    build.files = &faulty.table;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_NOSPACE, &err,
                     "writing");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "full.slc.part")));
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    input_destroy(&input);
}

/* Every file operation fails once: an error, nothing left, and the old store intact. */
static void test_failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_OPEN, SLC_FAULTY_READ,   SLC_FAULTY_WRITE,  SLC_FAULTY_SYNC,
        SLC_FAULTY_STAT, SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK, SLC_FAULTY_FOLDER};
    static const uint64_t wide[] = {UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 40};
    const char *path = store_in_folder("faulty.slc");
    struct build build = {.workers = 2, .cut = 3000};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input small, large;
    uint64_t old, new;
    size_t i;

    input_create(&small, 3, wide, 10, 0, UNIFORM, 1);
    input_create(&large, 3, wide, 300000, 0, UNIFORM, 1);
    SLC_ASSERT_OK(run_build(&large, &build, path, false, &report, &err), &err);
    CU_ASSERT(report.recursions > 0);
    new = hash_of(path_in(path, "blco.blk"));
    SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
    old = hash_of(path_in(path, "blco.blk"));
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        uint64_t k, step = 1;

        for (k = 1;; k += step, step += k / 3) {
            struct slc_faulty faulty;
            enum slc_status status;
            uint64_t hash;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            build.files = &faulty.table;
            slc_error_clear(&err);
            status = run_build(&large, &build, path, true, &report, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            hash = hash_of(path_in(path, "blco.blk"));
            CU_ASSERT(hash == old || hash == new);
            CU_ASSERT(status != SLC_OK || hash == new);
            if (!slc_faulty_fired(&faulty)) {
                break;
            }
            /* What is left is only what the failing operation itself should have removed. */
            if (kinds[i] != SLC_FAULTY_UNLINK && kinds[i] != SLC_FAULTY_FOLDER) {
                CU_ASSERT_FALSE(exists(path_in(test_folder(), "faulty.slc.part")));
            }
            build.files = NULL;
            SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
        }
        build.files = NULL;
        slc_error_clear(&err);
        SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
    }
    remove_store(path);
    input_destroy(&small);
    input_destroy(&large);
}

static void test_failing_memory_and_threads(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    const char *path = store_in_folder("memory.slc");
    struct build build = {.workers = 2, .cut = 3000, .sample = 50, .entries_expected = 100000000};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;
    uint64_t k;
    size_t i;

    input_create(&input, 3, dims3, 150000, 1, UNIFORM, 1);
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        for (k = 1;; k++) {
            enum slc_status status;

            slc_error_clear(&err);
            slc_fault_arm(kinds[i], k);
            status = run_build(&input, &build, path, false, &report, &err);
            if (slc_fault_seen(kinds[i]) < k) {
                slc_fault_arm(kinds[i], 0);
                SLC_ASSERT_OK(status, &err);
                break;
            }
            slc_fault_arm(kinds[i], 0);
            CU_ASSERT(status == (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "memory.slc.part")));
            CU_ASSERT_FALSE(exists(path));
        }
        remove_store(path);
    }
    input_destroy(&input);
}

static void test_names(void)
{
    enum slc_duplicates policy;

    CU_ASSERT_TRUE(slc_duplicates_parse("keep-first", &policy));
    CU_ASSERT_EQUAL(policy, SLC_DUPLICATES_KEEP_FIRST);
    CU_ASSERT_STRING_EQUAL(slc_duplicates_name(SLC_DUPLICATES_ERROR), "error");
    CU_ASSERT_FALSE(slc_duplicates_parse("Sum", &policy));
}

static const struct slc_test tests[] = {
    {"policy names", test_names},
    {"no nonzeros and one", test_no_nonzeros_and_one},
    {"random shapes equal the specification", test_random_shapes},
    {"every way gives the same bytes", test_every_way_gives_the_same_bytes},
    {"buckets that overflow are split", test_overflow_recurses},
    {"extents cut tiles", test_extents_cut_tiles},
    {"messages", test_messages},
    {"leftovers of other runs", test_leftovers},
    {"disk limit and full disk", test_disk_limit_and_full_disk},
    {"failing file operations", test_failing_files},
    {"failing memory and threads", test_failing_memory_and_threads},
};

int main(int argc, char **argv)
{
    return slc_test_main("builder", tests, SLC_COUNT(tests), argc, argv);
}
