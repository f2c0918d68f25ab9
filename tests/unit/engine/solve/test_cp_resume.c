/* A deterministic run that was stopped after any update, or killed at any write of a checkpoint,
 * resumes to the bits of an uninterrupted run, for any number of threads; and a checkpoint of
 * another run is rejected. */
#include "base/error/fault.h"
#include "cp_fixture.h"
#include "cpu_groups_fixture.h"
#include "engine/solve/cp_checkpoint.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { COMPONENTS = 5, ITERATIONS = 4, PARTS_MAX = 80 };

static const uint64_t lengths[3] = {60, 31, 17};

/* One part of a run: its plan, its stop, and its messages. */
struct part {
    struct slc_plan_request request;
    struct slc_cp_options options;
    const char *folder;            /* folder of the checkpoint; NULL: none */
    const struct slc_files *files; /* files of the checkpoint */
    bool restart;
    /* number of the solver's allocation that fails, from 1; number of its allocations */
    uint64_t fail_allocation, allocations;
    /* Stops after the first update, or while the `stop_at`-th block is read. */
    bool stop_after_update;
    unsigned stop_at;
    volatile int stop;
    atomic_uint reads;
    struct slc_files table; /* file operations of the stream */

    unsigned resumed_at, resumed_mode, past;
    struct slc_cp_result result;
};

static void on_checkpoint(void *context, const struct slc_cp_checkpointed *checkpointed)
{
    struct part *part = context;

    CU_ASSERT_TRUE(checkpointed->iteration > 0 && checkpointed->bytes > 0);
    part->stop = part->stop_after_update;
}

static void on_resume(void *context, const struct slc_cp_resume *resume)
{
    struct part *part = context;

    part->resumed_at = resume->iteration;
    part->resumed_mode = resume->mode;
    part->past = resume->past_count;
    CU_ASSERT_EQUAL(resume->past_count, resume->iteration - 1);
}

static int64_t stopping_read(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    struct part *part = self;

    if (atomic_fetch_add(&part->reads, 1) + 1 == part->stop_at) {
        __atomic_store_n(&part->stop, 1, __ATOMIC_RELAXED);
    }
    return slc_quick_files()->read_at(slc_quick_files()->self, fd, data, bytes, offset);
}

/* A deterministic run over the store that saves every update. */
static struct part
part_of(const char *folder, enum slc_layout_choice layouts, enum slc_passes passes)
{
    struct part part = {.request = fixture_request(COMPONENTS),
                        .options = fixture_options(COMPONENTS, ITERATIONS),
                        .folder = folder,
                        .files = slc_quick_files()};

    part.request.deterministic = part.options.deterministic = true;
    part.request.layouts = layouts;
    part.request.passes = passes;
    part.options.seed = 3;
    return part;
}

/* Opens stream and backend, reading through `files`. */
static void start(struct devices_run *run, const struct slc_files *files)
{
    const unsigned count = run->plan.cpu_groups > 0 ? run->plan.cpu_groups : 1;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_stream_open(files, &run->layouts, &run->plan, &run->stream, &err), &err);
    for (unsigned d = 0; d < count; d++) {
        SLC_ASSERT_OK(slc_cpu_backend_create(&run->backends[d], &err), &err);
    }
}

/* Runs a part over the layouts of its plan, including the stream. */
static enum slc_status run_part(const char *path, struct part *part, struct slc_error *err)
{
    struct devices_run run;
    struct slc_checkpoint *checkpoint = NULL;
    enum slc_status status;

    part->table = *slc_quick_files();
    if (part->stop_at > 0) {
        part->table.self = part;
        part->table.read_at = stopping_read;
    }
    status = devices_run_plan(&run, path, &part->request, err);
    if (status != SLC_OK) {
        devices_run_close(&run);
        return status;
    }
    start(&run, part->stop_at > 0 ? &part->table : NULL);
    slc_fault_arm(SLC_FAULT_ALLOCATION, part->fail_allocation);
    if (part->folder != NULL) {
        status = slc_checkpoint_open(part->files, part->folder, part->restart, &checkpoint, err);
    }
    if (status == SLC_OK) {
        part->options.parts.groups = run.backends;
        part->options.parts.layouts = &run.layouts;
        part->options.checkpoint = checkpoint;
        part->options.stop = &part->stop;
        part->options.resumed = on_resume;
        part->options.checkpointed = on_checkpoint;
        part->options.context = part;
        status = slc_cp_run(&run.store, run.stream, run.backends[0], &run.plan, &part->options,
                            &part->result, err);
    }
    if (status == SLC_OK && part->result.reason != SLC_STOP_SIGNAL &&
        part->result.reason != SLC_STOP_TIME && checkpoint != NULL) {
        status = slc_checkpoint_remove(checkpoint, err);
    }
    slc_checkpoint_close(checkpoint);
    part->allocations = slc_fault_seen(SLC_FAULT_ALLOCATION);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    devices_run_close(&run);
    return status;
}

static const char *fresh_folder(const char *name)
{
    static char path[600];
    static unsigned count;

    snprintf(path, sizeof path, "%.500s/%s-%u", slc_test_folder(), name, count++);
    return path;
}

static bool same_results(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    return devices_same_bits(a, b) && a->fit == b->fit && a->iterations == b->iterations;
}

static struct slc_cp_result uninterrupted(const char *path, struct part part)
{
    struct slc_error err = SLC_ERROR_INIT;

    part.folder = NULL;
    SLC_ASSERT_OK(run_part(path, &part, &err), &err);
    return part.result;
}

/* Resumes one update at a time, each with another number of threads. Returns the number of
 * parts. */
static unsigned step_by_step(const char *path, const struct part *like, bool exact)
{
    struct slc_cp_result whole = uninterrupted(path, *like);
    unsigned parts = 0;
    bool through = false;

    while (!through && parts < PARTS_MAX) {
        struct part part = *like;
        struct slc_error err = SLC_ERROR_INIT;

        part.request.threads = 1 + parts % 3;
        part.stop_after_update = true;
        SLC_ASSERT_OK(run_part(path, &part, &err), &err);
        CU_ASSERT_EQUAL(part.result.checkpoints.resumes, parts);
        CU_ASSERT_EQUAL(part.resumed_at == 0, parts == 0);
        through = part.result.reason != SLC_STOP_SIGNAL;
        if (through && exact) {
            CU_ASSERT_TRUE(same_results(&part.result, &whole));
        } else if (through) {
            CU_ASSERT_DOUBLE_EQUAL(part.result.fit, whole.fit, 1e-9);
        } else {
            CU_ASSERT_EQUAL(part.result.checkpoints.count, parts + 1);
        }
        parts++;
        slc_cp_result_destroy(&part.result);
    }
    CU_ASSERT_TRUE(through);
    slc_cp_result_destroy(&whole);
    return parts;
}

static void stops_after_every_update(void)
{
    struct devices_store made;
    struct part part;

    devices_store_create(&made, "steps", 3, lengths, 9000, 400);
    part = part_of(fresh_folder("fused"), SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED);
    CU_ASSERT_EQUAL(step_by_step(made.path, &part, true), 3 * ITERATIONS);
    if (slc_test_threads_only()) {
        devices_store_destroy(&made);
        return;
    }
    /* There are as many parts as updates, except that no part follows the last update. */
    part = part_of(fresh_folder("blco"), SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN);
    CU_ASSERT_EQUAL(step_by_step(made.path, &part, true), 3 * ITERATIONS);
    part = part_of(fresh_folder("sorted"), SLC_LAYOUTS_SORTED, SLC_PASSES_PLAIN);
    CU_ASSERT_EQUAL(step_by_step(made.path, &part, true), 3 * ITERATIONS);
    part = part_of(fresh_folder("f32"), SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED);
    part.request.precision = SLC_F32;
    (void)step_by_step(made.path, &part, true);
    /* For any order of mode updates, and any end by the tolerance. */
    part = part_of(fresh_folder("order"), SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN);
    part.request.mode_order_set = part.options.mode_order_set = true;
    memcpy(part.request.mode_order, ((unsigned[3]){2, 0, 1}), 3 * sizeof(unsigned));
    memcpy(part.options.mode_order, part.request.mode_order, sizeof part.options.mode_order);
    part.options.tolerance = 5e-4;
    part.options.iterations = 25;
    (void)step_by_step(made.path, &part, true);
    /* Without `deterministic`, the result is the same up to rounding. */
    part = part_of(fresh_folder("loose"), SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED);
    part.request.deterministic = part.options.deterministic = false;
    (void)step_by_step(made.path, &part, false);
    part = part_of(fresh_folder("copies"), SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN);
    part.request.deterministic = part.options.deterministic = false;
    part.request.copies = SLC_COPIES_ALWAYS;
    (void)step_by_step(made.path, &part, false);
    /* Runs on several CPU devices resume, too. */
    part = part_of(fresh_folder("devices"), SLC_LAYOUTS_SORTED, SLC_PASSES_PLAIN);
    part.request.cpu_groups = 2;
    (void)step_by_step(made.path, &part, true);
    devices_store_destroy(&made);
}

/* A run resumes after a stop at any block of a pass. */
static void stops_in_passes(void)
{
    struct devices_store made;

    devices_store_create(&made, "passes", 3, lengths, 9000, 400);
    for (unsigned fused = 0; fused < 2; fused++) {
        struct part like =
            part_of(NULL, SLC_LAYOUTS_SORTED, fused ? SLC_PASSES_FUSED : SLC_PASSES_PLAIN);
        struct slc_cp_result whole;

        like.request.cache = false;
        whole = uninterrupted(made.path, like);
        for (unsigned at = 1; at < 200; at += slc_test_quick() ? 97 : 17) {
            struct part part = like;
            struct slc_error err = SLC_ERROR_INIT;

            part.folder = fresh_folder("pass");
            part.stop_at = at;
            SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
            if (part.result.reason == SLC_STOP_SIGNAL) {
                /* A stop waits for a pass for two modes: either way the run resumes where it
                 * stopped. */
                CU_ASSERT_EQUAL(part.result.checkpoints.count > 0, true);
                CU_ASSERT_TRUE(part.result.resume_iteration > 0);
                slc_cp_result_destroy(&part.result);
                part.stop = 0;
                part.stop_at = 0;
                SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
                CU_ASSERT_EQUAL(part.result.checkpoints.resumes, 1);
            }
            CU_ASSERT_TRUE(same_results(&part.result, &whole));
            slc_cp_result_destroy(&part.result);
        }
        slc_cp_result_destroy(&whole);
    }
    devices_store_destroy(&made);
}

/* A pass for two modes that would far exceed the wait of a stop is abandoned: its factor is
 * incomplete, so the previous checkpoint is kept, and the run resumes from that. */
static void stops_in_a_slow_pass(void)
{
    struct part like = part_of(fresh_folder("slow"), SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED);
    struct devices_store made;
    struct slc_cp_result whole;
    struct slc_error err = SLC_ERROR_INIT;
    struct part part;

    devices_store_create(&made, "slow", 3, lengths, 9000, 400);
    like.request.cache = false;
    whole = uninterrupted(made.path, like);
    /* The pass leaves mode 2, so that the next one is for modes 3 and 1. */
    for (unsigned updates = 0; updates < 2; updates++) {
        part = like;
        part.stop_after_update = true;
        SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
        slc_cp_result_destroy(&part.result);
    }
    part = like;
    /* The limit allows a block or two per second. */
    part.request.read_limit = 8192;
    part.stop_at = 1;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.result.reason, SLC_STOP_SIGNAL);
    CU_ASSERT_EQUAL(part.result.checkpoints.count, 2);
    CU_ASSERT_EQUAL(part.result.resume_iteration, 1);
    CU_ASSERT_EQUAL(part.result.resume_mode, 2);
    CU_ASSERT_TRUE(part.result.times.total < 10);
    slc_cp_result_destroy(&part.result);
    part = like;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.resumed_mode, 2);
    CU_ASSERT_TRUE(same_results(&part.result, &whole));
    slc_cp_result_destroy(&part.result);
    slc_cp_result_destroy(&whole);
    devices_store_destroy(&made);
}

/* The k-th operation on the checkpoint's files, or the k-th allocation, fails: the run ends. */
static void dies_at_any_fault(bool allocations)
{
    struct part like = part_of(NULL, SLC_LAYOUTS_SORTED, SLC_PASSES_FUSED);
    struct devices_store made;
    struct slc_cp_result whole;
    struct slc_faulty faulty;
    const char *folder;
    bool through = false;

    like.options.iterations = 2;
    devices_store_create(&made, allocations ? "memory" : "files", 3, lengths, 3000, 400);
    slc_faulty_init(&faulty);
    whole = uninterrupted(made.path, like);
    folder = fresh_folder("faults");
    for (uint64_t k = 1; !through; k += slc_test_threads_only() ? 41 : slc_test_quick() ? 7 : 2) {
        struct part part = like;
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        part.folder = folder;
        part.files = &faulty.table;
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, allocations ? 0 : k, k % 2 ? EIO : ENOSPC);
        part.fail_allocation = allocations ? k : 0;
        status = run_part(made.path, &part, &err);
        through = allocations ? part.allocations < k : !slc_faulty_fired(&faulty);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        CU_ASSERT_TRUE(!through || status == SLC_OK);
        if (status == SLC_OK) {
            CU_ASSERT_TRUE(same_results(&part.result, &whole));
        }
        slc_cp_result_destroy(&part.result);
    }
    slc_cp_result_destroy(&whole);
    devices_store_destroy(&made);
}

static void dies_at_any_file_operation(void)
{
    dies_at_any_fault(false);
}

static void dies_at_any_allocation(void)
{
    dies_at_any_fault(true);
}

/* Leaves a checkpoint in the folder after the first update. */
static void leave_checkpoint(const char *path, struct part part)
{
    struct slc_error err = SLC_ERROR_INIT;

    part.stop_after_update = true;
    part.restart = true;
    SLC_ASSERT_OK(run_part(path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.result.reason, SLC_STOP_SIGNAL);
    slc_cp_result_destroy(&part.result);
}

static void refused(const char *path, struct part part, const char *difference)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(run_part(path, &part, &err), SLC_ERR_USAGE, &err, difference);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "start a new run"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.file, ".ckpt"));
}

/* Writes start factors of ones, except for one number. */
static void write_start(const char *folder, double other)
{
    struct slc_error err = SLC_ERROR_INIT;

    (void)slc_quick_files()->make_folder(NULL, folder);
    for (unsigned n = 0; n < 3; n++) {
        struct slc_matrix factor;
        char path[700];

        SLC_ASSERT_OK(slc_matrix_create(&factor, SLC_F64, lengths[n], COMPONENTS, &err), &err);
        for (uint64_t i = 0; i < lengths[n]; i++) {
            for (unsigned r = 0; r < COMPONENTS; r++) {
                slc_matrix_row_f64(&factor, i)[r] = 1.0 / (double)(1 + i + r);
            }
        }
        slc_matrix_row_f64(&factor, 3)[2] = other;
        snprintf(path, sizeof path, "%.600s/mode-%u.npy", folder, n + 1);
        SLC_ASSERT_OK(slc_npy_write(slc_quick_files(), path, &factor, &err), &err);
        slc_matrix_destroy(&factor);
    }
}

static void other_runs_are_refused(void)
{
    struct devices_store made, other;
    char start[600];
    struct part part, ours;
    struct slc_error err = SLC_ERROR_INIT;

    devices_store_create(&made, "same", 3, lengths, 3000, 400);
    devices_store_create(&other, "other", 3, lengths, 3100, 400);
    snprintf(start, sizeof start, "%s", fresh_folder("start"));
    write_start(start, 0.5);
    ours = part_of(fresh_folder("identity"), SLC_LAYOUTS_SORTED, SLC_PASSES_PLAIN);
    leave_checkpoint(made.path, ours);

    refused(other.path, ours, "tensor nonzeros is");
    part = ours;
    part.request.rank = part.options.rank = COMPONENTS + 1;
    refused(made.path, part, "rank is 6, but the checkpoint has 5");
    part = ours;
    part.options.seed++;
    refused(made.path, part, "start is random, seed 4");
    part = ours;
    part.options.init_folder = start;
    refused(made.path, part, "start is files");
    part = ours;
    fixture_regularize(&part.options, 0.25);
    refused(made.path, part, "regularization is 0.25");
    part = ours;
    part.request.mode_order_set = true;
    memcpy(part.request.mode_order, ((unsigned[3]){1, 0, 2}), 3 * sizeof(unsigned));
    refused(made.path, part, "mode order is 2,1,3, but the checkpoint has 1,2,3");
    part = ours;
    part.request.precision = SLC_F32;
    refused(made.path, part, "precision is f32");
    part = ours;
    part.request.deterministic = part.options.deterministic = false;
    refused(made.path, part, "deterministic is no");
    part = ours;
    part.request.layouts = SLC_LAYOUTS_BLCO;
    refused(made.path, part, "layouts is blco");
    part = ours;
    part.request.passes = SLC_PASSES_FUSED;
    refused(made.path, part, "passes is fused");
    part = ours;
    part.request.cpu_groups = 1;
    refused(made.path, part, "device is several");

    /* Options that may change; a start from files is the same as long as the files are. */
    part = ours;
    part.options.iterations = 3;
    part.options.tolerance = 1e-3;
    part.request.threads = 3;
    part.request.memory_bytes /= 2;
    part.request.cache = false;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.resumed_at, 1);
    CU_ASSERT_EQUAL(part.resumed_mode, 1);
    slc_cp_result_destroy(&part.result);
    ours.options.init_folder = start;
    leave_checkpoint(made.path, ours);
    write_start(start, 0.75);
    refused(made.path, ours, "start is files");
    write_start(start, 0.5);
    SLC_ASSERT_OK(run_part(made.path, &ours, &err), &err);
    CU_ASSERT_EQUAL(ours.resumed_at, 1);
    slc_cp_result_destroy(&ours.result);
    devices_store_destroy(&other);
    devices_store_destroy(&made);
}

/* A run with fewer allowed iterations than it has made ends with its current result. */
static void fewer_iterations(void)
{
    struct devices_store made;
    struct part part = part_of(fresh_folder("fewer"), SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN);
    struct slc_error err = SLC_ERROR_INIT;
    double fit = 0;

    devices_store_create(&made, "fewer", 3, lengths, 3000, 400);
    part.stop_after_update = true;
    for (unsigned updates = 0; updates < 7; updates++) {
        part.stop = 0;
        SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
        fit = part.result.fit;
        slc_cp_result_destroy(&part.result);
    }
    part.options.iterations = 2;
    part.stop_after_update = false;
    part.stop = 0;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.result.reason, SLC_STOP_ITERATIONS);
    CU_ASSERT_EQUAL(part.result.iterations, 2);
    /* Fit of the current factors, with one more mode updated. */
    CU_ASSERT_DOUBLE_EQUAL(part.result.fit, fit, 1e-12);
    slc_cp_result_destroy(&part.result);
    devices_store_destroy(&made);
}

/* By default a run of less than ten seconds writes a checkpoint only when it is stopped. */
static void automatic_interval(void)
{
    struct devices_store made;
    struct part part = part_of(fresh_folder("auto"), SLC_LAYOUTS_BLCO, SLC_PASSES_PLAIN);
    struct slc_error err = SLC_ERROR_INIT;

    devices_store_create(&made, "auto", 3, lengths, 3000, 400);
    part.options.checkpoint_seconds = -1;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.result.checkpoints.count, 0);
    slc_cp_result_destroy(&part.result);
    part.options.max_seconds = 1e-9;
    SLC_ASSERT_OK(run_part(made.path, &part, &err), &err);
    CU_ASSERT_EQUAL(part.result.reason, SLC_STOP_TIME);
    CU_ASSERT_EQUAL(part.result.checkpoints.count, 1);
    CU_ASSERT_EQUAL(part.result.resume_iteration, 1);
    slc_cp_result_destroy(&part.result);
    devices_store_destroy(&made);
}

SLC_SUITE(cp_resume)
{
    static const struct slc_test tests[] = {
        {"stops after every update", stops_after_every_update},
        {"stops in passes", stops_in_passes},
        {"stops in a slow pass", stops_in_a_slow_pass},
        {"dies at any operation on files", dies_at_any_file_operation},
        {"dies at any allocation", dies_at_any_allocation},
        {"other runs are refused", other_runs_are_refused},
        {"fewer iterations than made", fewer_iterations},
        {"the interval by default", automatic_interval},
    };

    return slc_test_main("engine: cp_resume", tests, SLC_COUNT(tests), argc, argv);
}
