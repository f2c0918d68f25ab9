/* Random input for the builder, and the reference implementation that its stores are compared
 * with. */
#include "builder_fixture.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "convert/build/build_memory.h"
#include "convert/publish/build_complete.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One folder for the whole program: the harness creates a new one at every call. */
const char *test_folder(void)
{
    static const char *folder;

    if (folder == NULL) {
        folder = slc_test_folder();
    }
    return folder;
}

void input_create(struct input *input,
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

void input_destroy(struct input *input)
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

struct slc_fiber_run run_of(const char *path)
{
    struct slc_store store = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_fiber_run run;

    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    run = slc_reader_info(store.reader)->keys.run;
    slc_store_close(&store);
    return run;
}

void expected_create(struct expected *e,
                     const struct input *input,
                     struct slc_fiber_run run,
                     enum slc_duplicates policy,
                     bool single)
{
    struct entry *entries = malloc((input->count + 1) * sizeof *entries);
    uint64_t i, coords[SLC_MAX_ORDER];
    unsigned m;

    *e = (struct expected){0};
    SLC_ASSERT_OK(slc_key_layout_init_run(&e->layout, input->order, input->dims, run, NULL), NULL);
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
        const uint64_t begin = i;

        for (i++; i < input->count && entries[i].key == key; i++) {
            double later = input->values[entries[i].at];

            e->duplicates++;
            switch (policy) {
            case SLC_DUPLICATES_SUM:
            case SLC_DUPLICATES_MEAN:
                value += later;
                break;
            case SLC_DUPLICATES_MIN:
                value = fmin(value, later);
                break;
            case SLC_DUPLICATES_MAX:
                value = fmax(value, later);
                break;
            default:
                value = policy == SLC_DUPLICATES_KEEP_LAST ? later : value;
            }
        }
        value = policy == SLC_DUPLICATES_MEAN ? value / (double)(i - begin) : value;
        value = single ? (double)(float)value : value;
        if (value == 0 && !input->keep_zeros) {
            e->zeros++;
            continue;
        }
        value = value == 0 ? 0 : value; /* turns -0 into 0 */
        e->keys[e->count] = key;
        e->values[e->count++] = value;
    }
    free(entries);
}

void expected_destroy(struct expected *e)
{
    free(e->keys);
    free(e->values);
}

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
    status = slc_builder_sample(builder, &entries,
                                build->stretches > 0 ? build->stretches : build->sample,
                                build->entries_expected, err);
    for (m = 0; m < input->order; m++) {
        free(columns[m]);
    }
    return status;
}

enum slc_status run_build(const struct input *input,
                          const struct build *build,
                          const char *output,
                          bool overwrite,
                          struct slc_builder_report *report,
                          struct slc_error *err)
{
    const struct slc_files *files = build->files != NULL ? build->files : slc_quick_files();
    struct slc_builder_options options = {.files = files,
                                          .output = output,
                                          .temp_folder = build->temp_folder,
                                          .overwrite = overwrite,
                                          .codec = build->codec ? build->codec : SLC_CODEC_PACKED,
                                          .value = build->value,
                                          .duplicates = build->duplicates,
                                          .keep_zeros = input->keep_zeros,
                                          .fibers = build->fibers,
                                          .run = build->run,
                                          .relabel = build->relabel,
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

const char *path_in(const char *folder, const char *name)
{
    static char paths[8][2000];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Returns the path of the store that the test builds; there is one at a time. */
const char *store_in_folder(const char *name)
{
    static char path[700];

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

bool exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

uint64_t hash_of(const char *path)
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

void remove_store(const char *path)
{
    SLC_ASSERT_OK(slc_folder_remove(slc_files_system(), path, NULL), NULL);
}

/* Compares a tile with the specification from nonzero `at` on; returns the number of
 * differences. */
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

void check_store(const char *path, const struct expected *e)
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

/* Removes the store built at `path`. */
static void
note_built(const char *path, const struct slc_builder_report *report, struct built *built)
{
    *built = (struct built){.hash = hash_of(path_in(path, "blco.blk")),
                            .manifest_hash = hash_of(path_in(path, "tensor.json")),
                            .nnz = report->summary.nnz,
                            .duplicates = report->duplicates,
                            .zeros = report->explicit_zeros};
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "x.slc.part")));
    remove_store(path);
}

void build_and_check(const struct input *input, const struct build *build, struct built *built)
{
    const char *path = store_in_folder("x.slc");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct expected e;

    SLC_ASSERT_OK(run_build(input, build, path, false, &report, &err), &err);
    expected_create(&e, input, run_of(path), build->duplicates, build->value == SLC_VALUE_F32);
    check_store(path, &e);
    note_built(path, &report, built);
    CU_ASSERT_EQUAL(report.entries, input->count);
    CU_ASSERT_EQUAL(built->duplicates, e.duplicates);
    CU_ASSERT_EQUAL(built->zeros, e.zeros);
    CU_ASSERT_EQUAL(built->nnz, e.count);
    expected_destroy(&e);
}

void build_again(const struct input *input, const struct build *build, const struct built *built)
{
    const char *path = store_in_folder("x.slc");
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct built again;

    SLC_ASSERT_OK(run_build(input, build, path, false, &report, &err), &err);
    note_built(path, &report, &again);
    CU_ASSERT_EQUAL(report.entries, input->count);
    CU_ASSERT_EQUAL(again.duplicates, built->duplicates);
    CU_ASSERT_EQUAL(again.zeros, built->zeros);
    CU_ASSERT_EQUAL(again.nnz, built->nnz);
    CU_ASSERT_EQUAL(again.hash, built->hash);
    CU_ASSERT_EQUAL(again.manifest_hash, built->manifest_hash);
}
