/*
 * Builds that are interrupted: wherever one stops, whatever fails, and whatever is altered of what
 * it left, the store comes out as that of a build that was not, or what was left is thrown away.
 */
#include "base/fault.h"
#include "base/random.h"
#include "builder_fixture.h"
#include "convert/build_folder.h"
#include "convert/state_file.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUT = 3000 };

/* A build of which commits are made. */
struct trial {
    struct input input;
    unsigned workers;
    unsigned assumed_base;
    uint64_t memory;
    uint32_t sample; /* coordinates */
    enum slc_fibers fibers;
    enum slc_relabel relabel;
    uint64_t every;               /* pieces between commits */
    uint64_t hash, manifest_hash; /* of the store that is wanted */
};

static uint64_t pieces_of(const struct trial *trial)
{
    return (trial->input.count + CUT - 1) / CUT;
}

static const char *output(void)
{
    return store_in_folder("r.slc");
}

static const char *left(const char *name)
{
    return path_in(path_in(test_folder(), "r.slc.part"), name);
}

static enum slc_status push(const struct input *input,
                            struct slc_builder *builder,
                            unsigned worker,
                            uint64_t piece,
                            struct slc_error *err)
{
    uint64_t begin = piece * CUT;
    uint64_t rest = input->count - begin;
    struct slc_entries entries = {.order = input->order,
                                  .count = rest < CUT ? (uint32_t)rest : CUT,
                                  .values = input->values + begin,
                                  .sequence = piece};

    for (unsigned m = 0; m < input->order; m++) {
        entries.coords[m] = input->coords[m] + begin;
    }
    return slc_builder_push(builder, worker, &entries, err);
}

static enum slc_status commit(struct slc_builder *builder, uint64_t pieces, struct slc_error *err)
{
    struct slc_state note = {.bytes = NULL};
    enum slc_status status;

    slc_state_put(&note, pieces);
    status = slc_builder_commit(builder, &note, err);
    slc_state_destroy(&note);
    return status;
}

static enum slc_status
sample(const struct trial *trial, struct slc_builder *builder, struct slc_error *err)
{
    const struct input *input = &trial->input;
    struct slc_entries entries = {.order = input->order, .count = trial->sample};
    uint64_t *columns = malloc(trial->sample * (size_t)input->order * sizeof *columns);
    enum slc_status status;

    for (unsigned m = 0; m < input->order; m++) {
        uint64_t *column = columns + (size_t)m * trial->sample;

        for (uint32_t i = 0; i < trial->sample; i++) {
            column[i] = input->coords[m][i * input->count / trial->sample];
        }
        entries.coords[m] = column;
    }
    status = slc_builder_sample(builder, &entries, trial->sample, input->count, err);
    free(columns);
    return status;
}

static struct slc_builder_options options_of(const struct trial *trial,
                                             const struct slc_files *files)
{
    struct slc_builder_options options = {.files = files != NULL ? files : slc_quick_files(),
                                          .output = output(),
                                          .codec = SLC_CODEC_PACKED,
                                          .fibers = trial->fibers,
                                          .relabel = trial->relabel,
                                          .block_bytes = 64 << 10,
                                          .memory_bytes = trial->memory,
                                          .workers = trial->workers,
                                          .assumed_base = trial->assumed_base,
                                          .resumable = true,
                                          .identity = {11, 22},
                                          .commit_seconds = 1e-9};

    if (options.memory_bytes == 0) {
        options.memory_bytes = slc_builder_memory_min(&options, trial->input.order);
    }
    return options;
}

/*
 * Builds with these options, from where an earlier build was, up to piece `stop`, where it ends as
 * after a fault that may not come again. *begun: the first piece that it pushed.
 */
static enum slc_status build_with(const struct trial *trial,
                                  const struct slc_builder_options *options,
                                  uint64_t stop,
                                  uint64_t *begun,
                                  struct slc_builder_report *report,
                                  struct slc_error *err)
{
    struct slc_store_origin origin = {.source = "test", .dialect = "tns", .writer = "test"};
    const struct input *input = &trial->input;
    struct slc_builder *builder = NULL;
    struct slc_state *note;
    uint64_t piece = 0;
    enum slc_status status = slc_builder_create(options, input->order, &builder, err);

    if (status != SLC_OK) {
        return status;
    }
    note = slc_builder_resumed(builder);
    if (note != NULL) {
        piece = slc_state_get(note, pieces_of(trial));
        CU_ASSERT_FALSE(note->bad);
    } else if (trial->sample > 0) {
        status = sample(trial, builder, err);
    }
    *begun = piece;
    while (status == SLC_OK && piece < pieces_of(trial) && piece < stop) {
        status = push(input, builder, (unsigned)(piece % options->workers), piece, err);
        piece++;
        if (status == SLC_OK && trial->every > 0 &&
            (piece % trial->every == 0 || piece == pieces_of(trial))) {
            status = commit(builder, piece, err);
        }
    }
    if (status == SLC_OK && piece == stop) {
        status = SLC_ERR_IO;
    }
    if (status != SLC_OK) {
        slc_builder_end(builder, status);
        return status;
    }
    return slc_builder_finish(builder, input->base, input->dims, &origin, report, err);
}

static enum slc_status build_to(const struct trial *trial,
                                const struct slc_files *files,
                                uint64_t stop,
                                uint64_t *begun,
                                struct slc_error *err)
{
    struct slc_builder_options options = options_of(trial, files);
    struct slc_builder_report report;

    return build_with(trial, &options, stop, begun, &report, err);
}

/* The store is the one that is wanted, and nothing else is there. */
static void check_built(const struct trial *trial)
{
    CU_ASSERT_EQUAL(hash_of(path_in(output(), "blco.blk")), trial->hash);
    CU_ASSERT_EQUAL(hash_of(path_in(output(), "tensor.json")), trial->manifest_hash);
    CU_ASSERT_FALSE(exists(left("")));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_SPILL_NAME)));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_PUSHED_STATE_NAME)));
    CU_ASSERT_FALSE(exists(path_in(output(), SLC_SORTED_STATE_NAME)));
    remove_store(output());
}

/* Builds what is left to be built. */
static void go_on(const struct trial *trial)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t begun;

    SLC_ASSERT_OK(build_to(trial, NULL, UINT64_MAX, &begun, &err), &err);
    check_built(trial);
}

/* The store that an uninterrupted build without commits makes. */
static void want(struct trial *trial)
{
    struct slc_builder_options options = options_of(trial, NULL);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    uint64_t every = trial->every, begun;

    trial->every = 0;
    options.resumable = false;
    SLC_ASSERT_OK(build_with(trial, &options, UINT64_MAX, &begun, &report, &err), &err);
    trial->every = every;
    trial->hash = hash_of(path_in(output(), "blco.blk"));
    trial->manifest_hash = hash_of(path_in(output(), "tensor.json"));
    remove_store(output());
}

/* With duplicates and zeros in all of it; skewed, so that buckets do not fit an area. */
static void create_trial(struct trial *trial, uint64_t count, enum shape shape)
{
    static const uint64_t dims[] = {700, 60, 4000};

    *trial = (struct trial){.workers = 2, .assumed_base = 1, .every = 7};
    input_create(&trial->input, 3, dims, count, 1, shape, 5);
    for (uint64_t i = 0; i < count; i += 37) {
        trial->input.values[i] = 0;
    }
}

/* Stops at every piece in turn; then goes on, with others of memory and threads. */
static void check_stops(struct trial *trial)
{
    const unsigned workers = trial->workers;
    const uint64_t memory = trial->memory;
    const uint64_t step = slc_test_full() ? 1 : slc_test_threads_only() ? 11 : 3;

    want(trial);
    for (uint64_t stop = 1; stop < pieces_of(trial); stop += step) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t begun;

        SLC_ASSERT_FAILS(build_to(trial, NULL, stop, &begun, &err), SLC_ERR_IO, NULL, NULL);
        CU_ASSERT_EQUAL(exists(left(SLC_PUSHED_STATE_NAME)), stop >= trial->every);
        trial->workers = 1 + (unsigned)(stop % 3);
        if (memory > 0) {
            trial->memory = memory + (stop % 2 << 24);
        }
        SLC_ASSERT_OK(build_to(trial, NULL, UINT64_MAX, &begun, &err), &err);
        CU_ASSERT(begun == stop - stop % trial->every || begun == 0);
        CU_ASSERT(begun > 0 || stop < trial->every || memory == 0);
        check_built(trial);
        trial->workers = workers;
        trial->memory = memory;
    }
}

static void test_stops(void)
{
    struct trial trial;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    check_stops(&trial);
    trial.sample = 500;
    check_stops(&trial);
    /* Buckets are put together and split: another base than was assumed. */
    trial.assumed_base = 0;
    check_stops(&trial);
    /* One bucket after the other has to be split. */
    trial.assumed_base = 1;
    trial.memory = 0;
    trial.sample = 0;
    check_stops(&trial);
    trial.fibers = SLC_FIBERS_NONE;
    trial.relabel = SLC_RELABEL_FREQUENCY;
    trial.memory = 60 << 20;
    check_stops(&trial);
    input_destroy(&trial.input);
}

/* Stopped again and again, each time a little later. */
static void test_many_stops(void)
{
    struct trial trial;
    uint64_t begun = 0, stop = 0, before = 0;

    create_trial(&trial, 60000, SKEWED);
    trial.memory = 60 << 20;
    trial.sample = 500;
    trial.every = 2;
    want(&trial);
    while (stop < pieces_of(&trial) - 1) {
        struct slc_error err = SLC_ERROR_INIT;

        stop = begun + 3 < pieces_of(&trial) ? begun + 3 : pieces_of(&trial) - 1;
        SLC_ASSERT_FAILS(build_to(&trial, NULL, stop, &begun, &err), SLC_ERR_IO, NULL, NULL);
        CU_ASSERT(begun == before);
        before = stop - stop % 2;
        begun = before;
    }
    go_on(&trial);
    input_destroy(&trial.input);
}

/*
 * From the k-th operation on files on, nothing works, as if the process had been killed there; then
 * the build is run again. Of each kind alone, too, where what follows still works.
 */
static void test_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_ANY,  SLC_FAULTY_OPEN,     SLC_FAULTY_READ,   SLC_FAULTY_WRITE,
        SLC_FAULTY_SYNC, SLC_FAULTY_TRUNCATE, SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK};
    struct trial trial;

    create_trial(&trial, slc_test_threads_only() ? 20000 : 60000, SKEWED);
    trial.sample = 200;
    trial.memory = 16 << 20;
    want(&trial);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k += 1 + k / (slc_test_full() ? 1000 : slc_test_quick() ? 1 : 4)) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_faulty faulty;
            enum slc_status status;
            uint64_t begun;

            slc_faulty_init(&faulty);
            if (kinds[i] == SLC_FAULTY_ANY) {
                slc_faulty_fail_from(&faulty, kinds[i], k, EIO);
            } else {
                slc_faulty_fail(&faulty, kinds[i], k, EIO);
            }
            status = build_to(&trial, &faulty.table, UINT64_MAX, &begun, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                check_built(&trial);
                break;
            }
            if (exists(output())) {
                check_built(&trial); /* only what was to go, or to be synced, after it failed */
                if (exists(left(""))) {
                    remove_store(left(""));
                }
            } else {
                go_on(&trial);
            }
        }
    }
    input_destroy(&trial.input);
}

static void test_memory(void)
{
    struct trial trial;
    unsigned lost = 0;

    create_trial(&trial, 30000, SKEWED);
    trial.sample = 200;
    trial.memory = 30 << 20;
    want(&trial);
    for (uint64_t k = 1;; k += slc_test_threads_only() ? 1 + k / 2
                               : slc_test_quick()      ? 1 + k / 8
                                                       : 1) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;
        uint64_t begun;

        SLC_ASSERT_FAILS(build_to(&trial, NULL, 8, &begun, &err), SLC_ERR_IO, NULL, NULL);
        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = build_to(&trial, NULL, UINT64_MAX, &begun, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT_EQUAL(begun, 7);
            check_built(&trial);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        slc_error_clear(&err);
        SLC_ASSERT_OK(build_to(&trial, NULL, UINT64_MAX, &begun, &err), &err);
        lost += begun == 0;
        check_built(&trial);
    }
    /* Only at the very end, where nothing is kept any more: the store is complete. */
    CU_ASSERT(lost < 10);
    input_destroy(&trial.input);
}

/* Flips a bit of a file, or cuts it there. */
static void alter(const char *path, uint64_t at, bool cut)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    if (cut) {
        CU_ASSERT_EQUAL(ftruncate(fileno(file), (off_t)at), 0);
    } else {
        CU_ASSERT_EQUAL(fseek(file, (long)at, SEEK_SET), 0);
        byte = fgetc(file);
        CU_ASSERT_EQUAL(fseek(file, (long)at, SEEK_SET), 0);
        CU_ASSERT_NOT_EQUAL(fputc(byte ^ 4, file), EOF);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static uint64_t bytes_of(const char *path)
{
    struct slc_file_stat stat;
    const struct slc_files *files = slc_files_system();

    return files->stat_path(files->self, path, &stat) == 0 ? stat.bytes : 0;
}

/* The write at which a build is at its last blocks: behind it come the file's end and manifest. */
static uint64_t write_in_sort(const struct trial *trial)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    uint64_t begun;

    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), &err);
    check_built(trial);
    return slc_faulty_seen(&faulty, SLC_FAULTY_WRITE) - 9;
}

/* Leaves a build that is stopped at that write. */
static void stop_in_sort(const struct trial *trial, uint64_t write)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;
    uint64_t begun;

    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, write, EIO);
    SLC_ASSERT_FAILS(build_to(trial, &faulty.table, UINT64_MAX, &begun, &err), SLC_ERR_IO, NULL,
                     NULL);
    CU_ASSERT(exists(left(SLC_PUSHED_STATE_NAME)) && exists(left(SLC_SORTED_STATE_NAME)));
    CU_ASSERT(exists(left("blco.blk.journal")));
}

static void test_sorted_part(void)
{
    struct slc_builder_options options;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct trial trial;
    uint64_t begun;

    create_trial(&trial, 300000, UNIFORM);
    trial.sample = 1000;
    trial.memory = 20 << 20;
    trial.every = 50;
    want(&trial);
    stop_in_sort(&trial, write_in_sort(&trial));
    options = options_of(&trial, NULL);
    SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
    CU_ASSERT_EQUAL(begun, pieces_of(&trial));
    CU_ASSERT(report.resumed && report.kept_nnz > 0);
    check_built(&trial);
    input_destroy(&trial.input);
}

/* Whatever is altered of what was left: the same store, at once or, after a refusal, anew. */
static void test_altered(void)
{
    static const char *const names[] = {SLC_PUSHED_STATE_NAME, SLC_SORTED_STATE_NAME,
                                        SLC_SPILL_NAME, "blco.blk", "blco.blk.journal"};
    const unsigned rounds = slc_test_full() ? 40 : 2;
    struct trial trial;
    unsigned refused = 0;
    uint64_t write;

    create_trial(&trial, 300000, UNIFORM);
    trial.sample = 1000;
    trial.memory = 20 << 20;
    trial.every = 50;
    want(&trial);
    write = write_in_sort(&trial);
    for (size_t i = 0; i < SLC_COUNT(names); i++) {
        for (unsigned round = 0; round < rounds; round++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;
            const char *path;
            uint64_t begun;

            stop_in_sort(&trial, write);
            path = left(names[i]);
            alter(path, slc_random_below(slc_test_seed(), i, round, bytes_of(path)),
                  round % 2 == 1);
            status = build_to(&trial, NULL, UINT64_MAX, &begun, &err);
            if (status == SLC_ERR_DAMAGED) {
                refused++;
                CU_ASSERT_FALSE(exists(left("")));
                go_on(&trial);
            } else {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(i != 0 || begun == 0);
                check_built(&trial);
            }
        }
    }
    CU_ASSERT(refused > 0 && refused <= rounds);
    input_destroy(&trial.input);
}

/* What is of another build is not gone on with. */
static void test_others(void)
{
    struct trial trial;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 30 << 20;
    trial.sample = 200;
    want(&trial);
    for (unsigned change = 0; change < 5; change++) {
        struct slc_builder_options options = options_of(&trial, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_builder_report report;
        uint64_t begun = 0;

        SLC_ASSERT_FAILS(build_to(&trial, NULL, 8, &begun, &err), SLC_ERR_IO, NULL, NULL);
        switch (change) {
        case 0:
            options.identity.input++;
            break;
        case 1:
            options.identity.options++;
            break;
        case 2:
            options.restart = true;
            break;
        case 3:
            options.resumable = false;
            trial.every = 0;
            break;
        default:
            options.memory_bytes = slc_builder_memory_min(&options, 3);
            break;
        }
        SLC_ASSERT_OK(build_with(&trial, &options, UINT64_MAX, &begun, &report, &err), &err);
        CU_ASSERT(begun == 0 || change == 4);
        CU_ASSERT_EQUAL(report.resumed, begun > 0);
        trial.every = 7;
        check_built(&trial);
    }
    input_destroy(&trial.input);
}

/* Bad input leaves nothing, whatever was committed. */
static void test_bad_input(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct trial trial;
    uint64_t begun;

    create_trial(&trial, 30000, SKEWED);
    trial.memory = 30 << 20;
    trial.input.dims[2] = 5;
    SLC_ASSERT_FAILS(build_to(&trial, NULL, UINT64_MAX, &begun, &err), SLC_ERR_INPUT, &err,
                     "mode 3");
    CU_ASSERT_FALSE(exists(left("")));
    input_destroy(&trial.input);
}

static const struct slc_test tests[] = {
    {"a stop at every piece", test_stops},    {"many stops", test_many_stops},
    {"a stop in the sort", test_sorted_part}, {"failing file operations", test_faults},
    {"failing memory", test_memory},          {"altered leftovers", test_altered},
    {"leftovers of others", test_others},     {"bad input", test_bad_input},
};

int main(int argc, char **argv)
{
    return slc_test_main("builder_resume", tests, SLC_COUNT(tests), argc, argv);
}
