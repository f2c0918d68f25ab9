/* Plans of row updates: the bytes that an iteration reads are those of the plan, for any
 * number of traversals; only a row that exceeds the ring is read again; every budget from the
 * minimum on suffices; and what is impossible is refused. */
#include "rows_fixture.h"

#include "base/memory/checked.h"
#include "engine/planning/planning.h"
#include "slc_test.h"

#include <string.h>

enum { TRAVERSALS = 10 };

static const struct rows_shape plain = {
    "plain", 3, {400, 300, 500}, 60000, 0, SLC_NOWHERE, 500, 1000, 4096, 7};
static const struct rows_shape heavy = {"heavy", 3, {400, 300, 500}, 60000, 1, 7, 500, 1000,
                                        4096,    7};
static const struct rows_shape blco_only = {"blco_only", 3, {900, 700, 500}, 400000, 0, 5,
                                            0,           0, 16384,           0};

/* A plan for `memory_bytes`; 0: for the minimum. */
static enum slc_status make_plan(struct sorted_run *run,
                                 const struct rows_store *made,
                                 struct slc_plan_request *request,
                                 uint64_t memory_bytes,
                                 struct slc_error *err)
{
    struct slc_error unused = SLC_ERROR_INIT;

    request->resident_bytes = UINT64_C(1) << 20;
    request->memory_bytes = memory_bytes;
    if (memory_bytes == 0) {
        request->memory_bytes = 1;
        CU_ASSERT_EQUAL(plan_run(run, made->path, request, &unused), SLC_ERR_BUDGET);
        request->memory_bytes = run->plan.minimum_bytes;
        slc_error_clear(&unused);
        close_run(run);
    }
    return plan_run(run, made->path, request, err);
}

/* Makes two iterations as planned, and returns the bytes that the second reads. */
static uint64_t two_iterations(struct sorted_run *run,
                               const struct rows_store *made,
                               struct slc_matrix *factors,
                               uint64_t *repeated,
                               uint64_t *streamed)
{
    struct slc_row_passes *passes = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream_stats before, after;

    make_rows_factors(made, SLC_F64, factors);
    CU_ASSERT_TRUE_FATAL(start_run(run, NULL));
    SLC_ASSERT_OK(slc_row_passes_open(run->stream, &run->plan, NULL, &passes, &err), &err);
    memset(&before, 0, sizeof before);
    for (unsigned step = 0; step < 2 * made->tensor.order; step++) {
        struct rows_solver solver;

        if (step % made->tensor.order == 0) {
            slc_stream_stats(run->stream, &before);
            *repeated = 0;
            *streamed = 0;
        }
        rows_solver_init(&solver, made, step % made->tensor.order, run->plan.threads, TRAVERSALS);
        struct slc_row_pass pass = {
            .solver = &solver.solver, .about = &solver.about, .factors = factors, .measure = true};
        SLC_ASSERT_OK(slc_row_pass_run(passes, &pass, &err), &err);
        CU_ASSERT_EQUAL(pass.most, TRAVERSALS);
        *repeated += pass.repeated_bytes;
        *streamed += pass.streamed_rows;
    }
    slc_stream_stats(run->stream, &after);
    slc_row_passes_close(passes);
    return after.bytes_read - before.bytes_read;
}

static uint64_t second_iteration(struct sorted_run *run,
                                 const struct rows_store *made,
                                 uint64_t *repeated,
                                 uint64_t *streamed)
{
    struct slc_matrix factors[SLC_MAX_ORDER];
    const uint64_t bytes = two_iterations(run, made, factors, repeated, streamed);

    destroy_rows_factors(made, factors);
    return bytes;
}

static uint64_t store_bytes(const struct slc_plan *plan, unsigned order)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < order; n++) {
        bytes += plan->layouts[plan->mode_layout[n]].store_bytes;
    }
    return bytes;
}

/* One read per mode, with a ring and a cache of less than a quarter of the layouts. */
static void one_read_per_mode(void)
{
    struct rows_store made;

    make_rows_store(&made, &plain);
    for (unsigned cached = 0; cached < 2; cached++) {
        struct slc_plan_request request = rows_request(TRAVERSALS + 1);
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;
        uint64_t repeated, streamed;

        request.layouts = SLC_LAYOUTS_SORTED;
        SLC_ASSERT_OK(make_plan(&run, &made, &request, 0, &err), &err);
        const uint64_t all = store_bytes(&run.plan, 3);
        if (cached == 1) {
            close_run(&run);
            SLC_ASSERT_OK(make_plan(&run, &made, &request, run.plan.minimum_bytes + all / 5, &err),
                          &err);
            CU_ASSERT_TRUE(run.plan.cache_bytes + run.plan.slot_count * run.plan.slot_bytes <
                           all / 4);
        }
        const uint64_t read = second_iteration(&run, &made, &repeated, &streamed);
        CU_ASSERT_EQUAL(read, run.plan.iteration_read_bytes);
        CU_ASSERT_EQUAL(read, all - run.plan.cache_bytes);
        CU_ASSERT_EQUAL(repeated, 0);
        CU_ASSERT_EQUAL(streamed, 0);
        close_run(&run);
    }
    destroy_rows_store(&made);
}

/* A row that exceeds the ring is read once per traversal; all other blocks once. */
static void only_the_large_row_again(void)
{
    struct rows_store made;

    make_rows_store(&made, &heavy);
    for (unsigned cached = 0; cached < 2; cached++) {
        struct slc_plan_request request = rows_request(TRAVERSALS + 1);
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;
        uint64_t repeated, streamed;

        request.layouts = SLC_LAYOUTS_SORTED;
        request.slots = 8;
        SLC_ASSERT_OK(make_plan(&run, &made, &request, 0, &err), &err);
        const uint64_t all = store_bytes(&run.plan, 3);
        if (cached == 1) {
            close_run(&run);
            SLC_ASSERT_OK(make_plan(&run, &made, &request, run.plan.minimum_bytes + all / 5, &err),
                          &err);
            CU_ASSERT_TRUE(run.plan.cached_blocks > 0);
        }
        CU_ASSERT_EQUAL(run.plan.rows.streamed_rows[0], 0);
        CU_ASSERT_EQUAL(run.plan.rows.streamed_rows[1], 1);
        CU_ASSERT_EQUAL(run.plan.rows.streamed_rows[2], 0);
        const uint64_t read = second_iteration(&run, &made, &repeated, &streamed);
        CU_ASSERT_EQUAL(streamed, 1);
        CU_ASSERT_EQUAL(read, run.plan.iteration_read_bytes);
        CU_ASSERT_EQUAL(repeated, TRAVERSALS * run.plan.rows.streamed_bytes[1]);
        CU_ASSERT_EQUAL(read - repeated, all - run.plan.cache_bytes);
        close_run(&run);
    }
    destroy_rows_store(&made);
}

/* With enough memory the ring holds the large row, and nothing is read again. */
static void larger_ring(void)
{
    struct slc_plan_request request = rows_request(TRAVERSALS + 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct rows_store made;
    struct sorted_run run;
    uint64_t repeated, streamed;

    make_rows_store(&made, &heavy);
    request.layouts = SLC_LAYOUTS_SORTED;
    request.cache = false;
    SLC_ASSERT_OK(make_plan(&run, &made, &request, UINT64_C(1) << 30, &err), &err);
    CU_ASSERT_EQUAL(run.plan.rows.streamed_rows[1], 0);
    CU_ASSERT_EQUAL(run.plan.rows.repeated_bytes, 0);
    const uint64_t read = second_iteration(&run, &made, &repeated, &streamed);
    CU_ASSERT_EQUAL(read, run.plan.iteration_read_bytes);
    CU_ASSERT_EQUAL(streamed, 0);
    close_run(&run);
    destroy_rows_store(&made);
}

static void gathered(void)
{
    struct slc_plan_request request = rows_request(TRAVERSALS + 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct rows_store made;
    struct sorted_run run;
    uint64_t repeated, streamed, passes = 0;

    make_rows_store(&made, &blco_only);
    SLC_ASSERT_OK(make_plan(&run, &made, &request, UINT64_C(1) << 30, &err), &err);
    CU_ASSERT_EQUAL(run.plan.rows.gathered, 7);
    CU_ASSERT_EQUAL(run.plan.rows.gather_passes[0], 1);
    CU_ASSERT_EQUAL(run.plan.iteration_read_bytes, 0);
    CU_ASSERT_EQUAL(second_iteration(&run, &made, &repeated, &streamed), 0);
    close_run(&run);
    SLC_ASSERT_OK(make_plan(&run, &made, &request, 0, &err), &err);
    for (unsigned n = 0; n < 3; n++) {
        CU_ASSERT_TRUE(run.plan.rows.gather_passes[n] > 2);
        passes += run.plan.rows.gather_passes[n];
    }
    CU_ASSERT_EQUAL(run.plan.passes, (double)passes);
    CU_ASSERT_EQUAL(run.plan.rows.missing_bytes, 3 * run.plan.layouts[0].store_bytes);
    CU_ASSERT_TRUE(run.plan.rows.sorted_read_bytes < run.plan.iteration_read_bytes);
    close_run(&run);
    destroy_rows_store(&made);
}

/* Modes keep their gathered nonzeros as far as the budget holds them, which does not change bits.
 */
static void kept_nonzeros(void)
{
    struct slc_plan_request request = rows_request(TRAVERSALS + 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix first[SLC_MAX_ORDER], factors[SLC_MAX_ORDER];
    struct rows_store made;
    uint64_t repeated, streamed, budget = UINT64_C(1) << 30;
    int before = 3, seen = 0;

    make_rows_store(&made, &blco_only);
    while (before > 0) {
        struct sorted_run run;

        SLC_ASSERT_OK(make_plan(&run, &made, &request, budget, &err), &err);
        const struct slc_plan_rows *rows = &run.plan.rows;
        const uint64_t each = slc_row_gather_bytes(3, rows->gather_nnz);
        const int kept = __builtin_popcount(rows->gather_kept);

        CU_ASSERT_TRUE(kept <= before);
        CU_ASSERT_EQUAL(rows->gather_bytes, (uint64_t)(kept < 3 ? kept + 1 : 3) * each);
        budget = run.plan.total_bytes - each / 2;
        (void)two_iterations(&run, &made, seen == 0 ? first : factors, &repeated, &streamed);
        for (unsigned n = 0; seen != 0 && n < 3; n++) {
            CU_ASSERT_EQUAL(
                memcmp(first[n].buffer.data, factors[n].buffer.data, first[n].buffer.bytes), 0);
        }
        if (seen != 0) {
            destroy_rows_factors(&made, factors);
        }
        seen |= 1 << kept;
        before = kept;
        close_run(&run);
    }
    CU_ASSERT_EQUAL(seen, 1 << 3 | 1 << 1 | 1 << 0);
    destroy_rows_factors(&made, first);
    destroy_rows_store(&made);
}

/* Sorted layouts are read if gathering would decode `blco` many times, even if `blco` fits in the
 * cache. */
static void few_gather_passes(void)
{
    struct rows_shape shape = blco_only;
    struct slc_plan_request request = rows_request(3);
    struct slc_error err = SLC_ERROR_INIT;
    struct rows_store made;
    struct sorted_run run;

    shape.name = "both";
    shape.sorted = 7;
    shape.target_nnz = 50000;
    make_rows_store(&made, &shape);
    request.layouts = SLC_LAYOUTS_BLCO;
    SLC_ASSERT_OK(make_plan(&run, &made, &request, 0, &err), &err);
    const uint64_t needed = run.plan.minimum_bytes + run.plan.layouts[0].store_bytes;
    close_run(&run);
    SLC_ASSERT_OK(make_plan(&run, &made, &request, needed, &err), &err);
    CU_ASSERT_EQUAL(run.plan.iteration_read_bytes, 0);
    CU_ASSERT_TRUE(run.plan.rows.gather_passes[0] > 2);
    close_run(&run);
    request.layouts = SLC_LAYOUTS_AUTO;
    SLC_ASSERT_OK(make_plan(&run, &made, &request, needed, &err), &err);
    CU_ASSERT_EQUAL(run.plan.rows.gathered, 0);
    CU_ASSERT_TRUE(run.plan.iteration_read_bytes > 0);
    close_run(&run);
    destroy_rows_store(&made);
}

/* The sum of the parts is within the budget, and every budget from the minimum on suffices. */
static void budgets(void)
{
    const struct rows_shape *shapes[] = {&plain, &heavy, &blco_only};

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        struct slc_plan_request request = rows_request(3);
        struct slc_error err = SLC_ERROR_INIT;
        struct rows_store made;
        struct sorted_run run;
        unsigned layouts[SLC_MAX_ORDER];

        make_rows_store(&made, shapes[s]);
        request.deterministic = true;
        SLC_ASSERT_OK(make_plan(&run, &made, &request, 0, &err), &err);
        const uint64_t least = run.plan.minimum_bytes;
        memcpy(layouts, run.plan.mode_layout, sizeof layouts);
        close_run(&run);
        SLC_ASSERT_FAILS(make_plan(&run, &made, &request, least - 1, &err), SLC_ERR_BUDGET, &err,
                         "rows");
        slc_error_clear(&err);
        close_run(&run);
        for (uint64_t extra = 0; extra < UINT64_C(64) << 20; extra = 3 * extra + 5000) {
            SLC_ASSERT_OK(make_plan(&run, &made, &request, least + extra, &err), &err);
            const struct slc_plan *plan = &run.plan;
            const uint64_t sum = plan->process_bytes + plan->index_bytes + plan->factor_bytes +
                                 plan->output_bytes + plan->dense_bytes + plan->scratch_bytes +
                                 plan->decoder_bytes + plan->label_bytes + plan->copies_bytes +
                                 slc_plan_rows_bytes(&plan->rows) +
                                 plan->slot_count * plan->slot_bytes + plan->cache_bytes;
            CU_ASSERT_EQUAL(plan->total_bytes, sum);
            CU_ASSERT_TRUE(sum <= plan->budget_bytes);
            CU_ASSERT_EQUAL(plan->minimum_bytes, least);
            CU_ASSERT_EQUAL(plan->output_bytes, 0);
            CU_ASSERT_EQUAL(memcmp(layouts, plan->mode_layout, sizeof layouts), 0);
            close_run(&run);
        }
        destroy_rows_store(&made);
    }
}

static void refusals(void)
{
    static const struct rows_shape wide = {
        "wide", 2, {UINT64_C(1) << 33, 3}, 9, 0, SLC_NOWHERE, 0, 0, 4096, 0};
    struct slc_plan_request request = rows_request(3);
    struct slc_error err = SLC_ERROR_INIT;
    struct rows_store made;
    struct sorted_run run;

    make_rows_store(&made, &plain);
    request.cpu_groups = 2;
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_UNSUPPORTED, &err,
                     "CPU threads");
    slc_error_clear(&err);
    close_run(&run);
    request = rows_request(3);
    request.copies = SLC_COPIES_ALWAYS;
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_UNSUPPORTED, &err,
                     "replicas");
    slc_error_clear(&err);
    close_run(&run);
    request = rows_request(3);
    request.passes = SLC_PASSES_FUSED;
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_UNSUPPORTED, &err,
                     "update two modes");
    slc_error_clear(&err);
    close_run(&run);
    destroy_rows_store(&made);
    make_rows_store(&made, &wide);
    request = rows_request(3);
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_UNSUPPORTED, &err,
                     "at most 2^32");
    slc_error_clear(&err);
    close_run(&run);
    destroy_rows_store(&made);
}

SLC_SUITE(row_plan)
{
    static const struct slc_test tests[] = {
        {"one read per mode", one_read_per_mode},
        {"only the large row again", only_the_large_row_again},
        {"a ring that holds the large row", larger_ring},
        {"gathered modes", gathered},
        {"kept nonzeros", kept_nonzeros},
        {"few gather passes", few_gather_passes},
        {"budgets", budgets},
        {"what is refused", refusals},
    };

    return slc_test_main("engine row_plan", tests, SLC_COUNT(tests), argc, argv);
}
