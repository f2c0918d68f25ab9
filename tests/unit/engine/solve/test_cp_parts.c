/* Decompositions interrupted within passes: at every part by a stop, or by a failing read, and
 * resumed from the checkpoint with other threads and another I/O method. The factors are bitwise
 * those of an uninterrupted run, and no computed part is read twice. */
#include "sorted_fixture.h"

#include "engine/solve/cp_checkpoint.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MODES = 3, ITERATIONS = 3, COMPONENTS = 5, TILE_NNZ = 900, NNZ = 24000, BLOCK_BYTES = 4096 };

/* A store with a layout for each mode, partitions of several blocks, and split rows of mode 1;
 * or the same in blocks of several tiles. */
static const char *make_store_in(bool large_blocks)
{
    static const uint64_t dims[MODES] = {300, 5, 90};
    static char paths[2][512];
    char *path = paths[large_blocks];
    const uint64_t block_bytes = large_blocks ? 8 * BLOCK_BYTES : BLOCK_BYTES;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;

    if (path[0] != '\0') {
        return path;
    }
    (void)snprintf(path, sizeof paths[0], "%s/parts%d.slc", slc_test_folder(), (int)large_blocks);
    slc_made_tensor_create(&tensor, MODES, dims, NNZ, SLC_MADE_DOUBLES, slc_test_seed());
    tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, path, SLC_CODEC_PACKED, block_bytes, &err),
                  &err);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(
            slc_made_store_add_sorted(&tensor, path, n, 2500, SLC_CODEC_PACKED, block_bytes, &err),
            &err);
    }
    slc_made_tensor_destroy(&tensor);
    return path;
}

static const char *make_store(void)
{
    return make_store_in(false);
}

/* A kind of run, without options that do not affect the result. */
struct way {
    enum slc_layout_choice layouts;
    enum slc_passes passes;
    enum slc_value_type precision;
};

static const struct way ways[] = {
    {SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN, SLC_F64},
    {SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN, SLC_F32},
    {SLC_LAYOUTS_SORTED, SLC_PASSES_PLAIN, SLC_F64},
    {SLC_LAYOUTS_SORTED, SLC_PASSES_PLAIN, SLC_F32},
    {SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED, SLC_F64},
    {SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED, SLC_F32},
};

static struct slc_plan_request request_of(const struct way *way, unsigned variant)
{
    struct slc_plan_request request = fixture_request(COMPONENTS);

    request.layouts = way->layouts;
    request.passes = way->passes;
    request.precision = way->precision;
    request.copies = SLC_COPIES_NEVER;
    request.deterministic = true;
    request.threads = 1 + variant % 3;
    request.io = variant % 2 == 0 ? SLC_IO_PREAD : SLC_IO_MMAP;
    request.cache = false;
    return request;
}

/* Reasons to end a run early. */
struct leaving {
    uint64_t checkpoints; /* stops after this many checkpoints; 0: never */
    uint64_t reads;       /* number of the read that fails; 0: none */
    unsigned iterations;  /* allowed iterations; 0: ITERATIONS */
    uint64_t seen;
    volatile int stop;
};

static void count_checkpoint(void *context, const struct slc_cp_checkpointed *checkpointed)
{
    struct leaving *leaving = context;

    CU_ASSERT_TRUE(checkpointed->bytes > 0);
    if (++leaving->seen == leaving->checkpoints) {
        __atomic_store_n(&leaving->stop, 1, __ATOMIC_RELAXED);
    }
}

/* Computes one run, which resumes from the checkpoint in `folder` if there is one, and adds the
 * bytes that it reads to *bytes. */
static enum slc_status run_once(const char *path,
                                const char *folder,
                                const struct slc_plan_request *request,
                                struct leaving *leaving,
                                struct slc_cp_result *result,
                                uint64_t *bytes,
                                struct slc_error *err)
{
    struct slc_cp_options options =
        fixture_options(COMPONENTS, leaving->iterations != 0 ? leaving->iterations : ITERATIONS);
    struct slc_checkpoint *checkpoint = NULL;
    struct slc_stream_stats stats;
    struct slc_faulty faulty;
    struct sorted_run run;
    enum slc_status status;

    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(plan_run(&run, path, request, err), err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, &faulty.table));
    if (folder != NULL) {
        SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, false, &checkpoint, err), err);
    }
    options.deterministic = request->deterministic;
    options.checkpoint = checkpoint;
    options.checkpoint_seconds = 0.0;
    options.part_bytes = 9000;
    options.stop = &leaving->stop;
    options.checkpointed = count_checkpoint;
    options.context = leaving;
    if (leaving->reads != 0) {
        slc_faulty_fail(&faulty, SLC_FAULTY_READ, leaving->reads, EIO);
    }
    status = slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, result, err);
    slc_stream_stats(run.stream, &stats);
    *bytes += stats.bytes_read;
    slc_checkpoint_close(checkpoint);
    close_run(&run);
    return status;
}

static bool same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = a->iterations == b->iterations && memcmp(&a->fit, &b->fit, sizeof a->fit) == 0 &&
                memcmp(a->lambda, b->lambda, a->rank * sizeof *a->lambda) == 0;

    for (unsigned n = 0; n < MODES; n++) {
        const struct slc_matrix *x = &a->factors[n];
        const struct slc_matrix *y = &b->factors[n];

        same =
            same && memcmp(x->buffer.data, y->buffer.data, x->rows * slc_matrix_row_bytes(x)) == 0;
    }
    return same;
}

/* Returns the state in the checkpoint of the folder. */
static struct slc_cp_saved saved_in(const char *folder)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_checkpoint *checkpoint;
    struct slc_checkpoint_reader *reader;
    char identity[SLC_CP_IDENTITY_BYTES];
    struct slc_cp_saved saved = {0};

    SLC_ASSERT_OK(slc_checkpoint_open(slc_quick_files(), folder, false, &checkpoint, &err), &err);
    reader = slc_checkpoint_found(checkpoint);
    if (reader != NULL) {
        SLC_ASSERT_OK(slc_cp_saved_read(reader, identity, &saved, &err), &err);
    }
    slc_checkpoint_close(checkpoint);
    return saved;
}

static bool stands_in_a_pass(const char *folder)
{
    return saved_in(folder).part.position != 0;
}

/* Runs to the end with interruptions: after this many checkpoints, or at the read. */
static void check_way(const char *path, unsigned number, uint64_t checkpoints, uint64_t reads)
{
    const struct way *way = &ways[number];
    struct slc_plan_request request = request_of(way, 0);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result whole, result;
    struct leaving never = {0};
    uint64_t whole_bytes = 0, bytes = 0;
    unsigned runs = 0, within = 0;
    char folder[600];
    bool done = false;

    (void)snprintf(folder, sizeof folder, "%s/%u-%u-%u.ckpt", slc_test_folder(), number,
                   (unsigned)checkpoints, (unsigned)reads);
    SLC_ASSERT_OK(run_once(path, NULL, &request, &never, &whole, &whole_bytes, &err), &err);
    while (!done && runs < 400) {
        struct leaving leaving = {.checkpoints = checkpoints, .reads = reads};
        enum slc_status status;

        request = request_of(way, ++runs);
        request.io = reads != 0 ? SLC_IO_PREAD : request.io;
        slc_error_clear(&err);
        status = run_once(path, folder, &request, &leaving, &result, &bytes, &err);
        done = status == SLC_OK && result.reason == SLC_STOP_ITERATIONS;
        if (status != SLC_OK) {
            SLC_ASSERT_FAILS(status, SLC_ERR_IO, &err, "");
        } else if (!done) {
            CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
            slc_cp_result_destroy(&result);
        }
        within += !done && stands_in_a_pass(folder);
    }
    CU_ASSERT_TRUE_FATAL(done);
    CU_ASSERT_TRUE(runs > 3 && within > 2);
    CU_ASSERT_TRUE(same_bits(&result, &whole));
    CU_ASSERT_EQUAL(result.checkpoints.resumes, runs - 1);
    if (reads == 0) {
        CU_ASSERT_EQUAL(bytes, whole_bytes);
    }
    slc_cp_result_destroy(&whole);
    slc_cp_result_destroy(&result);
}

static void stops_within_passes(void)
{
    const char *path = make_store();

    for (unsigned number = 0; number < SLC_COUNT(ways); number++) {
        check_way(path, number, 5, 0);
        if (!slc_test_quick()) {
            check_way(path, number, 1, 0);
        }
    }
}

/* Runs that fail within a pass resume from the last checkpoint, as after a kill. */
static void failures_within_passes(void)
{
    const char *path = make_store();

    for (unsigned number = slc_test_quick() ? 4 : 0; number < SLC_COUNT(ways); number++) {
        check_way(path, number, 0, 23);
    }
}

/* Passes that differ from those of a checkpoint: a pass for one mode begins anew; a pass for two
 * modes cannot be resumed. */
static void other_passes(void)
{
    for (unsigned fused = 0; fused < 2; fused++) {
        struct slc_plan_request request = request_of(&ways[fused == 1 ? 4 : 2], 1);
        struct leaving leaving = {.checkpoints = 2};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        const char *path = make_store();
        char folder[600];
        uint64_t bytes = 0;

        (void)snprintf(folder, sizeof folder, "%s/other%u.ckpt", slc_test_folder(), fused);
        request.deterministic = false;
        memcpy(request.mode_order, (const unsigned[]){0, 1, 2}, 3 * sizeof(unsigned));
        request.mode_order_set = true;
        SLC_ASSERT_OK(run_once(path, folder, &request, &leaving, &result, &bytes, &err), &err);
        CU_ASSERT_EQUAL(result.reason, SLC_STOP_SIGNAL);
        CU_ASSERT_TRUE(stands_in_a_pass(folder));
        slc_cp_result_destroy(&result);
        leaving = (struct leaving){0};
        request.passes = SLC_PASSES_PLAIN;
        request.layouts = SLC_LAYOUTS_BLCO;
        if (fused == 1) {
            SLC_ASSERT_FAILS(run_once(path, folder, &request, &leaving, &result, &bytes, &err),
                             SLC_ERR_USAGE, &err, "within a pass that updates mode");
        } else {
            SLC_ASSERT_OK(run_once(path, folder, &request, &leaving, &result, &bytes, &err), &err);
            CU_ASSERT_EQUAL(result.iterations, ITERATIONS);
            slc_cp_result_destroy(&result);
        }
    }
}

/* If the store has other blocks than before, an interrupted pass for one mode begins again, and an
 * interrupted pass for two modes cannot be resumed. */
static void other_blocks(void)
{
    static const unsigned numbers[] = {0, 2, 4};

    for (unsigned i = 0; i < SLC_COUNT(numbers); i++) {
        struct slc_plan_request request = request_of(&ways[numbers[i]], 0);
        struct leaving leaving = {.checkpoints = 2}, never = {0};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result whole, result;
        char folder[600];
        uint64_t bytes = 0;

        (void)snprintf(folder, sizeof folder, "%s/blocks%u.ckpt", slc_test_folder(), i);
        request.deterministic = false;
        request.schedule = SLC_SCHEDULE_FILE;
        memcpy(request.mode_order, (const unsigned[]){0, 1, 2}, 3 * sizeof(unsigned));
        request.mode_order_set = true;
        SLC_ASSERT_OK(run_once(make_store(), folder, &request, &leaving, &result, &bytes, &err),
                      &err);
        CU_ASSERT_TRUE(stands_in_a_pass(folder));
        slc_cp_result_destroy(&result);
        if (ways[numbers[i]].passes == SLC_PASSES_FUSED) {
            SLC_ASSERT_FAILS(
                run_once(make_store_in(true), folder, &request, &never, &result, &bytes, &err),
                SLC_ERR_USAGE, &err, "within a pass that updates mode");
            continue;
        }
        SLC_ASSERT_OK(run_once(make_store_in(true), NULL, &request, &never, &whole, &bytes, &err),
                      &err);
        SLC_ASSERT_OK(
            run_once(make_store_in(true), folder, &request, &never, &result, &bytes, &err), &err);
        CU_ASSERT_DOUBLE_EQUAL(result.fit, whole.fit, 1e-10);
        slc_cp_result_destroy(&whole);
        slc_cp_result_destroy(&result);
    }
}

/* Interrupts a run in its second iteration, within a pass for its second and third modes. */
static void leave_in_second_iteration(const struct slc_plan_request *request, const char *folder)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_saved saved;
    uint64_t bytes = 0;

    do {
        struct leaving leaving = {.checkpoints = 1};
        struct slc_cp_result result;

        SLC_ASSERT_OK(run_once(make_store(), folder, request, &leaving, &result, &bytes, &err),
                      &err);
        CU_ASSERT_EQUAL_FATAL(result.reason, SLC_STOP_SIGNAL);
        slc_cp_result_destroy(&result);
        saved = saved_in(folder);
    } while (saved.iterations == 0 || saved.part.position == 0);
    CU_ASSERT_TRUE_FATAL(saved.iterations == 1 && saved.place == 1 && saved.part.fused);
}

/* Within a pass for two modes, with no more iterations allowed than were made: some rows of the
 * factor are new and some are not, so its update is finished, as in a run that is stopped there. */
static void no_more_iterations(void)
{
    const struct slc_plan_request request = request_of(&ways[4], 0);
    struct leaving leaving = {.iterations = 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result done, stopped;
    char folders[2][600];
    uint64_t bytes = 0;
    bool within;

    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(folders[i], sizeof folders[i], "%s/no-more%u.ckpt", slc_test_folder(), i);
        leave_in_second_iteration(&request, folders[i]);
    }
    SLC_ASSERT_OK(run_once(make_store(), folders[0], &request, &leaving, &done, &bytes, &err),
                  &err);
    CU_ASSERT_EQUAL(done.reason, SLC_STOP_ITERATIONS);
    do {
        leaving = (struct leaving){.checkpoints = 1};
        SLC_ASSERT_OK(
            run_once(make_store(), folders[1], &request, &leaving, &stopped, &bytes, &err), &err);
        within = stands_in_a_pass(folders[1]);
        if (within) {
            slc_cp_result_destroy(&stopped);
        }
    } while (within);
    CU_ASSERT_TRUE(same_bits(&done, &stopped));
    slc_cp_result_destroy(&done);
    slc_cp_result_destroy(&stopped);
}

static const struct slc_test tests[] = {
    {"stops within passes", stops_within_passes},
    {"failures within passes", failures_within_passes},
    {"other passes than those that were left", other_passes},
    {"other blocks than those that were read", other_blocks},
    {"no more iterations within a pass for two modes", no_more_iterations},
};

SLC_SUITE(cp_parts)
{
    return slc_test_main("engine cp parts", tests, SLC_COUNT(tests), argc, argv);
}
