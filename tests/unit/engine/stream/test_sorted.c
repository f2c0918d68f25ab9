/* Layouts sorted by a mode, from the plan to the numbers: the blocks of a partition arrive one
 * after the other at any worker; MTTKRP yields the oracle's numbers, and the same bits for any
 * threads, schedule, I/O method, slots and cache; a plan uses them if an iteration reads no
 * more. */
#include "sorted_fixture.h"

#include "engine/stream/mttkrp.h"
#include "slc_test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, PARTITIONS_MAX = 64 };

/* Observations of a consumer of partitions. */
struct watch {
    const struct slc_reader *reader;
    atomic_bool busy[PARTITIONS_MAX];
    uint64_t next_tile[PARTITIONS_MAX]; /* ordinal after the last one; 0: none received */
    atomic_uint_fast64_t nnz;
    atomic_uint faults;
};

/* A tile follows its predecessor in its partition, no other tile of which is in progress. */
static enum slc_status
watch_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct watch *watch = context;
    struct slc_partition partition;
    struct slc_block_entry first;
    uint64_t *next;
    bool right;

    (void)worker;
    (void)err;
    slc_reader_partition(watch->reader, tile->partition, &partition);
    slc_reader_entry(watch->reader, partition.first_block, &first);
    right = !atomic_exchange(&watch->busy[tile->partition], true);
    next = &watch->next_tile[tile->partition];
    right = right && tile->ordinal == (*next == 0 ? first.first_tile : *next);
    right = right && tile->continued == partition.continued;
    *next = tile->ordinal + 1;
    atomic_fetch_add(&watch->nnz, tile->nnz);
    atomic_fetch_add(&watch->faults, right ? 0 : 1);
    atomic_store(&watch->busy[tile->partition], false);
    return SLC_OK;
}

static void partitions_come_in_order(void)
{
    static const uint64_t dims[MODES] = {300, 4, 100};
    struct sorted_store made;
    unsigned streams = 0;

    /* Rows of mode 1 fill three partitions each: split rows, of several blocks. */
    make_sorted_store(&made, "partitions", MODES, dims, 900000, 1U << 0 | 1U << 1, 150000, 4096);
    for (unsigned variant = 0; variant < VARIANTS; variant += slc_test_quick() ? 4 : 1) {
        const struct slc_plan_request request = variant_request(variant, variant % 2);
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;

        SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
        CU_ASSERT_EQUAL(run.layouts.count, 2);
        if (variant % 3 == 2) {
            keep_some(&run, 1);
        }
        if (start_run(&run, NULL)) {
            streams++;
            for (unsigned round = 0; round < 3; round++) {
                struct watch watch = {.reader = run.layouts.reader[1]};
                const struct slc_pass pass = {
                    .layout = 1,
                    .tiles = {.consumer = {.tile = watch_tile, .context = &watch},
                              .order = SLC_TILES_BY_PARTITION}};

                SLC_ASSERT_OK(slc_stream_pass(run.stream, &pass, &err), &err);
                CU_ASSERT_EQUAL(atomic_load(&watch.nnz), made.tensor.nnz);
                CU_ASSERT_EQUAL(atomic_load(&watch.faults), 0);
            }
        }
        close_run(&run);
    }
    CU_ASSERT_TRUE(streams > 0);
    destroy_sorted_store(&made);
}

static enum slc_status multiply(struct sorted_run *run,
                                const struct sorted_store *made,
                                unsigned mode,
                                struct slc_matrix *output,
                                struct slc_error *err)
{
    struct slc_mttkrp_job job = {.order = MODES,
                                 .mode = mode,
                                 .rank = RANK,
                                 .nnz = run->store.manifest.nnz,
                                 .workers = run->plan.threads,
                                 .deterministic = run->plan.request.deterministic,
                                 .partitions = run->plan.partitions[mode],
                                 .conflict = run->plan.choices[mode].chosen,
                                 .output = output};

    memcpy(job.factors, made->views, sizeof made->views);
    return slc_mttkrp_stream(run->stream, run->plan.mode_layout[mode], run->backend, &job, NULL,
                             NULL, NULL, err);
}

/* Elements whose error exceeds 1e-13 of the sum of magnitudes. */
static uint64_t
count_wrong(const struct sorted_store *made, unsigned mode, const struct slc_matrix *output)
{
    const uint64_t rows = made->tensor.dims[mode];
    double *want = calloc(rows * RANK, sizeof *want);
    double *scale = calloc(rows * RANK, sizeof *scale);
    uint64_t wrong = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(want);
    CU_ASSERT_PTR_NOT_NULL_FATAL(scale);
    slc_reference_mttkrp(&made->view, made->views, mode, rows, RANK, want);
    slc_reference_mttkrp_magnitude(&made->view, made->views, mode, rows, RANK, scale);
    for (uint64_t i = 0; i < rows * RANK; i++) {
        const double got = slc_matrix_get(output, i / RANK, (uint32_t)(i % RANK));

        wrong += !(fabs(got - want[i]) <= 1e-13 * scale[i]);
    }
    free(want);
    free(scale);
    return wrong;
}

static void same_bits_in_every_way(void)
{
    static const uint64_t dims[MODES] = {400, 3, 90};
    struct sorted_store made;

    make_sorted_store(&made, "bits", MODES, dims, 500000, 7, 70000, 4096);
    for (unsigned mode = 0; mode < MODES; mode++) {
        struct slc_matrix first = {.rows = 0};

        for (unsigned variant = 0; variant < VARIANTS; variant += slc_test_threads_only() ? 11
                                                                  : slc_test_quick()      ? 7
                                                                                          : 1) {
            struct slc_plan_request request = variant_request(variant, mode);
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix output;
            struct sorted_run run;

            request.deterministic = variant % 4 == 0;
            SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
            CU_ASSERT_EQUAL(run.plan.choices[mode].chosen, SLC_CONFLICT_ROWS);
            if (start_run(&run, NULL)) {
                SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, dims[mode], RANK, &err), &err);
                SLC_ASSERT_OK(multiply(&run, &made, mode, &output, &err), &err);
                if (first.rows == 0) {
                    CU_ASSERT_EQUAL(count_wrong(&made, mode, &output), 0);
                    first = output;
                } else {
                    CU_ASSERT_EQUAL(memcmp(first.buffer.data, output.buffer.data,
                                           first.rows * first.pitch * sizeof(double)),
                                    0);
                    slc_matrix_destroy(&output);
                }
            }
            close_run(&run);
        }
        CU_ASSERT_EQUAL(first.rows, dims[mode]);
        slc_matrix_destroy(&first);
    }
    destroy_sorted_store(&made);
}

/* Modes without their own layout are read from blco; factors equal those of blco alone. */
static void decompositions_agree(void)
{
    static const uint64_t dims[MODES] = {60, 30, 20};
    static const enum slc_layout_choice choices[] = {SLC_LAYOUTS_BLCO, SLC_LAYOUTS_AUTO};
    struct slc_cp_result results[2];
    struct sorted_store made;

    make_sorted_store(&made, "cpd", MODES, dims, 20000, 1U << 0 | 1U << 2, 4000, 4096);
    for (unsigned c = 0; c < 2; c++) {
        struct slc_plan_request request = fixture_request(5);
        struct slc_cp_options options = fixture_options(5, 4);
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;

        request.layouts = choices[c];
        request.copies = SLC_COPIES_NEVER;
        SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
        CU_ASSERT_EQUAL(run.layouts.count, c == 0 ? 1 : 3);
        CU_ASSERT_EQUAL(run.plan.mode_layout[0] > 0, c == 1);
        CU_ASSERT_EQUAL(run.plan.mode_layout[1], 0);
        CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
        SLC_ASSERT_OK(
            slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &results[c], &err),
            &err);
        close_run(&run);
    }
    CU_ASSERT_DOUBLE_EQUAL(results[0].fit, results[1].fit, 1e-12);
    for (unsigned n = 0; n < MODES; n++) {
        double worst = 0.0;

        for (uint64_t i = 0; i < dims[n] * 5; i++) {
            worst =
                fmax(worst, fabs(slc_matrix_get(&results[0].factors[n], i / 5, (uint32_t)(i % 5)) -
                                 slc_matrix_get(&results[1].factors[n], i / 5, (uint32_t)(i % 5))));
        }
        CU_ASSERT_TRUE(worst <= 1e-9);
    }
    slc_cp_result_destroy(&results[0]);
    slc_cp_result_destroy(&results[1]);
    destroy_sorted_store(&made);
}

/* Plans with `room` bytes for the cache, in addition to the memory of the uncached plan in
 * `run`. */
static void plan_with_room(struct sorted_run *run,
                           const char *path,
                           struct slc_plan_request *request,
                           uint64_t room)
{
    struct slc_error err = SLC_ERROR_INIT;

    request->memory_bytes = run->plan.total_bytes - run->plan.cache_bytes + room;
    SLC_ASSERT_OK(plan_run(run, path, request, &err), &err);
    close_run(run);
}

static void plans_prefer_less_reading(void)
{
    static const uint64_t dims[MODES] = {300, 200, 100};
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan_request whole;
    struct sorted_store made;
    struct sorted_run run;
    uint64_t sorted_bytes, blco_bytes;

    make_sorted_store(&made, "plans", MODES, dims, 400000, 7, 50000, 4096);
    request.resident_bytes = slc_memory_resident();
    request.copies = SLC_COPIES_NEVER;

    /* Everything fits, so nothing is read with either choice, and sorted layouts need no locks. */
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    CU_ASSERT_EQUAL(run.layouts.count, 4);
    CU_ASSERT_EQUAL(run.plan.iteration_read_bytes, 0);
    CU_ASSERT_EQUAL(run.plan.other_read_bytes, 0);
    CU_ASSERT_EQUAL(run.plan.layouts[0].passes, 0);
    CU_ASSERT_EQUAL(run.plan.layouts[0].cache_bytes, 0);
    CU_ASSERT_EQUAL(run.plan.layouts[3].passes, 1);
    sorted_bytes = run.plan.iteration_bytes;
    blco_bytes = run.plan.layouts[0].store_bytes;
    CU_ASSERT_EQUAL(sorted_bytes, run.plan.layouts[1].store_bytes +
                                      run.plan.layouts[2].store_bytes +
                                      run.plan.layouts[3].store_bytes);
    whole = run.plan.request;
    close_run(&run);

    /* One replica fits, three do not, so only blco is read. */
    plan_with_room(&run, made.path, &request, blco_bytes);
    CU_ASSERT_EQUAL(run.plan.layout_count, 1);
    CU_ASSERT_TRUE(run.plan.other_read_bytes > run.plan.iteration_read_bytes);
    CU_ASSERT_TRUE(run.plan.other_read_bytes != UINT64_MAX);

    /* The bits of a deterministic run must not depend on the budget. */
    request.deterministic = true;
    request.memory_bytes = 0;
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    close_run(&run);
    plan_with_room(&run, made.path, &request, sorted_bytes / 2);
    CU_ASSERT_EQUAL(run.plan.layout_count, 4);
    /* The cached blocks are divided evenly over all layouts. */
    for (unsigned l = 1; l < 4; l++) {
        CU_ASSERT_TRUE(run.plan.layouts[l].cached_blocks > 0);
        CU_ASSERT_TRUE(run.plan.layouts[l].cache_bytes < run.plan.layouts[l].store_bytes);
    }
    CU_ASSERT_TRUE(run.plan.total_bytes <= run.plan.budget_bytes);

    /* Replicas per mode are made from blco. */
    request = whole;
    request.copies = SLC_COPIES_ALWAYS;
    request.memory_bytes = 0;
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    CU_ASSERT_EQUAL(run.layouts.count, 1);
    CU_ASSERT_TRUE(run.plan.copies_bytes > 0);
    close_run(&run);
    destroy_sorted_store(&made);
}

/* Plans with one byte less than the smallest budget of one choice of layouts, in which the other
 * may fit. */
static enum slc_status plan_below_smallest(struct sorted_run *run,
                                           const char *path,
                                           struct slc_plan_request *request,
                                           enum slc_layout_choice choice)
{
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status;

    request->layouts = choice;
    request->memory_bytes = 1;
    CU_ASSERT_EQUAL(plan_run(run, path, request, NULL), SLC_ERR_BUDGET);
    request->memory_bytes = run->plan.minimum_bytes - 1;
    close_run(run);
    request->layouts = SLC_LAYOUTS_AUTO;
    status = plan_run(run, path, request, &err);
    close_run(run);
    return status;
}

static void plans_choose_what_fits(void)
{
    static const uint64_t dims[MODES] = {300, 200, 100};
    struct slc_plan_request request = fixture_request(RANK);
    struct sorted_store made;
    struct sorted_run run;

    make_sorted_store(&made, "fits", MODES, dims, 400000, 7, 50000, 4096);
    request.resident_bytes = slc_memory_resident();
    request.copies = SLC_COPIES_NEVER;

    /* Two threads need scratch for separate additions with blco, but not with sorted layouts. */
    request.threads = 2;
    CU_ASSERT_EQUAL(plan_below_smallest(&run, made.path, &request, SLC_LAYOUTS_BLCO), SLC_OK);
    CU_ASSERT_EQUAL(run.plan.layout_count, 4);
    CU_ASSERT_EQUAL(run.plan.other_read_bytes, UINT64_MAX);
    CU_ASSERT_TRUE(run.plan.minimum_bytes <= run.plan.budget_bytes);

    /* One thread adds directly to the output, and blco has fewer indexes to hold. */
    request.threads = 1;
    CU_ASSERT_EQUAL(plan_below_smallest(&run, made.path, &request, SLC_LAYOUTS_SORTED), SLC_OK);
    CU_ASSERT_EQUAL(run.plan.layout_count, 1);
    CU_ASSERT_EQUAL(run.plan.other_read_bytes, UINT64_MAX);

    /* If neither fits, the error names the smaller of the two smallest budgets. */
    CU_ASSERT_EQUAL(plan_below_smallest(&run, made.path, &request, SLC_LAYOUTS_BLCO),
                    SLC_ERR_BUDGET);
    CU_ASSERT_EQUAL(run.plan.minimum_bytes, run.plan.budget_bytes + 1);
    destroy_sorted_store(&made);
}

static void rejects_missing_layouts(void)
{
    static const uint64_t dims[MODES] = {30, 20, 10};
    struct slc_plan_request request = variant_request(1, 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_pass pass = {
        .tiles = {.consumer = {.tile = watch_tile}, .order = SLC_TILES_BY_PARTITION}};
    struct sorted_store made;
    struct sorted_run run;

    make_sorted_store(&made, "refused", MODES, dims, 2000, 1U << 2, 500, 4096);
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_USAGE, &err,
                     "no layout sorted by mode 2");
    close_run(&run);
    slc_error_clear(&err);

    request.mode = 2;
    request.layouts = SLC_LAYOUTS_BLCO;
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
    SLC_ASSERT_FAILS(slc_stream_pass(run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "no partitions");
    slc_error_clear(&err);
    pass.layout = 1;
    SLC_ASSERT_FAILS(slc_stream_pass(run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "layout 1 is out of range");
    close_run(&run);
    destroy_sorted_store(&made);
}

/* Names are printed and parsed back. */
static void choices_have_names(void)
{
    enum slc_layout_choice choice = SLC_LAYOUTS_AUTO;

    CU_ASSERT_TRUE(slc_layout_choice_parse("sorted", &choice));
    CU_ASSERT_EQUAL(choice, SLC_LAYOUTS_SORTED);
    CU_ASSERT_STRING_EQUAL(slc_layout_choice_name(SLC_LAYOUTS_BLCO), "blco");
    CU_ASSERT_FALSE(slc_layout_choice_parse("fiber", &choice));
    CU_ASSERT_EQUAL(choice, SLC_LAYOUTS_SORTED);
}

static const struct slc_test tests[] = {
    {"names of choices", choices_have_names},
    {"partitions come in order, one tile at a time", partitions_come_in_order},
    {"the oracle's numbers, the same bits in every way", same_bits_in_every_way},
    {"a decomposition from sorted layouts", decompositions_agree},
    {"plans prefer the layouts that read less", plans_prefer_less_reading},
    {"plans choose layouts that fit", plans_choose_what_fits},
    {"missing layouts are rejected", rejects_missing_layouts},
};

SLC_SUITE(sorted)
{
    return slc_test_main("engine sorted", tests, SLC_COUNT(tests), argc, argv);
}
