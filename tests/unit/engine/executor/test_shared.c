/* MTTKRPs and CP-ALS shared by the CPU and a device: every block is computed once by one of them,
 * from cache, device or drive and with any number of slots; the sums of both; and their plans. */
#include "engine/planning/planning.h"
#include "shared_run.h"
#include "slc_test.h"

#include <math.h>

static const struct slc_hybrid_wish adaptive = {SLC_HYBRID_ADAPTIVE, 0};
static struct shared_problem many, one, empty;

/* Checks that `passes` passes computed every nonzero once each, on one side or the other. */
static void
check_parts(const struct shared_run *shared, const struct slc_hybrid *share, uint64_t passes)
{
    const uint64_t nnz = slc_reader_info(shared->run.store.reader)->nnz;
    const double fraction = slc_hybrid_fraction(share->parts);

    CU_ASSERT_EQUAL(share->passes, passes);
    CU_ASSERT_EQUAL(share->parts[0].nnz + share->parts[1].nnz, passes * nnz);
    if (share->wish.kind == SLC_HYBRID_STATIC && shared->problem == &many) {
        /* The fraction is right to within a block. */
        CU_ASSERT_DOUBLE_EQUAL(fraction, share->wish.fraction, 0.03);
        CU_ASSERT(share->wish.fraction > 0 || fraction == 0);
        CU_ASSERT(share->wish.fraction < 1 || fraction == 1);
    }
    for (unsigned side = 0; side < SLC_HYBRID_PARTS; side++) {
        CU_ASSERT((share->parts[side].nnz > 0) <= (share->parts[side].seconds > 0));
    }
}

static void run_variant(const struct shared_problem *problem,
                        const struct slc_plan_request *request,
                        uint64_t device_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct shared_run shared;
    struct slc_stream_stats stats;
    enum slc_status status =
        shared_open(&shared, problem, NULL, request, device_bytes, SHARED_LATE_US, &err);
    uint64_t added = 0;

    if (status == SLC_ERR_UNSUPPORTED && request->io == SLC_IO_URING) {
        shared_close(&shared);
        return;
    }
    SLC_ASSERT_OK(status, &err);
    for (unsigned pass = 0; pass < 4; pass++) {
        shared_check(&shared, pass / 2);
        added += shared.hybrid[pass / 2].last[SLC_HYBRID_CPU].nnz > 0;
    }
    check_parts(&shared, &shared.hybrid[0], 2);
    check_parts(&shared, &shared.hybrid[1], 2);
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->outputs_added, added);
    slc_stream_stats(shared.run.stream, &stats);
    CU_ASSERT_EQUAL(stats.blocks, 4 * slc_reader_info(shared.run.store.reader)->block_count);
    if (request->hybrid.kind == SLC_HYBRID_ADAPTIVE && problem == &many) {
        for (unsigned mode = 0; mode < 2; mode++) {
            const double measured = slc_hybrid_rates_fraction(&shared.hybrid[mode].rates);

            CU_ASSERT(measured > 0 && measured < 1);
        }
    }
    shared_close(&shared);
}

static void test_passes(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_URING, SLC_IO_MMAP};

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t w = 0; w < SHARED_WISHES; w++) {
        for (unsigned variant = 0; variant < 6; variant += slc_test_threads_only() ? 2 : 1) {
            const struct slc_plan_request request =
                shared_request(kinds[variant % 3], 1 + (variant + (unsigned)w) % 3,
                               variant % 2 == 0, &shared_wishes[w]);
            uint64_t least, all;

            shared_limits(&many, &request, &least, &all);
            run_variant(&many, &request, variant < 4 ? least : (least + all) / 2);
        }
    }
}

/* Some blocks are resident on the device, some in the host's cache, and the rest is read. */
static void test_both_sets(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t w = 1; w < SHARED_WISHES; w++) {
        struct slc_plan_request request = shared_request(SLC_IO_PREAD, 2, true, &shared_wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared_run shared;
        uint64_t least, all;

        /* Use one value for both plans, because the process may grow between them. */
        request.resident_bytes = slc_memory_resident();
        shared_limits(&many, &request, &least, &all);
        request.memory_bytes = 1;
        SLC_ASSERT_FAILS(shared_open(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10),
                                     SHARED_LATE_US, &err),
                         SLC_ERR_BUDGET, &err, "MiB of memory or more");
        request.memory_bytes =
            shared.run.plan.minimum_bytes + shared.run.plan.slot_bytes + (UINT64_C(24) << 10);
        shared_close(&shared);
        slc_error_clear(&err);
        SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10),
                                  SHARED_LATE_US, &err),
                      &err);
        CU_ASSERT(shared.run.plan.cached_blocks > 0);
        CU_ASSERT(shared.run.plan.gpu.kept_blocks > 0);
        CU_ASSERT(shared.run.plan.iteration_read_bytes > 0);
        for (unsigned pass = 0; pass < 3; pass++) {
            shared_check(&shared, 1);
        }
        check_parts(&shared, &shared.hybrid[1], 3);
        shared_close(&shared);
    }
}

/* One block, and no block. */
static void test_few_blocks(void)
{
    shared_problem(&one, "one", 500, UINT32_C(1) << 20);
    shared_problem(&empty, "empty", 0, 4096);
    for (size_t w = 0; w < SHARED_WISHES; w++) {
        const struct slc_plan_request request =
            shared_request(SLC_IO_PREAD, 2, w % 2 == 0, &shared_wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared_run shared;

        SLC_ASSERT_OK(
            shared_open(&shared, &one, NULL, &request, UINT64_C(1) << 40, SHARED_LATE_US, &err),
            &err);
        CU_ASSERT_EQUAL(slc_reader_info(shared.run.store.reader)->block_count, 1);
        shared_check(&shared, 2);
        shared_check(&shared, 2);
        check_parts(&shared, &shared.hybrid[2], 2);
        /* A single block is not shared: the device has it, unless its part is less than half. */
        CU_ASSERT_EQUAL(slc_hybrid_fraction(shared.hybrid[2].parts),
                        shared_wishes[w].kind != SLC_HYBRID_STATIC ||
                            shared_wishes[w].fraction == 1);
        shared_close(&shared);
        SLC_ASSERT_OK(
            shared_open(&shared, &empty, NULL, &request, UINT64_C(1) << 40, SHARED_LATE_US, &err),
            &err);
        shared_check(&shared, 0);
        check_parts(&shared, &shared.hybrid[0], 1);
        CU_ASSERT(slc_hybrid_fraction(shared.hybrid[0].parts) < 0);
        shared_close(&shared);
    }
}

/* Contents of a plan with a split. */
static void test_plans(void)
{
    struct slc_plan_request request = shared_request(SLC_IO_PREAD, 2, true, &shared_wishes[4]);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan alone, shared;
    struct slc_layouts layouts;
    struct slc_store store;
    struct shared_run open;

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    SLC_ASSERT_OK(shared_open(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    shared = open.run.plan;
    shared_close(&open);
    /* Resident blocks are unavailable to the CPU: some are not resident, however much memory
     * there is. */
    CU_ASSERT(shared.layouts[0].resident_bytes > 0);
    CU_ASSERT(shared.layouts[0].resident_bytes * 8 <= shared.layouts[0].store_bytes * 7);
    for (unsigned n = 0; n < 3; n++) {
        CU_ASSERT(shared.choices[n].chosen == SLC_CONFLICT_PRIVATE ||
                  shared.choices[n].chosen == SLC_CONFLICT_LOCKED);
        CU_ASSERT_EQUAL(shared.choices[n].rival, SLC_CONFLICT_AUTO);
    }
    request.hybrid.kind = SLC_HYBRID_NONE;
    SLC_ASSERT_OK(shared_open(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    alone = open.run.plan;
    shared_close(&open);
    /* The CPU uses the factors of the result; it has its own output and scratch. */
    CU_ASSERT_EQUAL(alone.output_bytes, 0);
    CU_ASSERT_EQUAL(alone.scratch_bytes, 0);
    CU_ASSERT(shared.output_bytes > 0 && shared.scratch_bytes > 0);
    /* Subtract the process, which may have grown between the two plans. */
    CU_ASSERT(shared.minimum_bytes - shared.process_bytes >
              alone.minimum_bytes - alone.process_bytes);
    /* No more blocks are resident than the device computes. */
    request.hybrid = (struct slc_hybrid_wish){SLC_HYBRID_STATIC, 0.25};
    SLC_ASSERT_OK(shared_open(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    CU_ASSERT(open.run.plan.layouts[0].resident_bytes > 0);
    CU_ASSERT(open.run.plan.layouts[0].resident_bytes * 4 <= open.run.plan.layouts[0].store_bytes);
    shared_close(&open);

    request.deterministic = true;
    SLC_ASSERT_FAILS(shared_open(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err),
                     SLC_ERR_USAGE, &err, "are not deterministic");
    shared_close(&open);
    request.deterministic = false;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_store_open(NULL, many.path, &store, &err), &err);
    layouts = slc_layouts_one(store.reader);
    SLC_ASSERT_FAILS(slc_plan_make(&layouts, &request, &alone, &err), SLC_ERR_USAGE, &err,
                     "one device");
    slc_store_close(&store);
}

static void test_misuse(void)
{
    const struct slc_plan_request request =
        shared_request(SLC_IO_PREAD, 1, false, &shared_wishes[4]);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_hybrid share = {.wish = shared_wishes[4]};
    const struct slc_pass pass = {.kind = SLC_PASS_HYBRID, .hybrid = {.sharing = &share}};
    struct shared_run shared;
    uint64_t least, all;

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    shared_limits(&many, &request, &least, &all);
    SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request, least, 0, &err), &err);
    slc_stream_detach(shared.run.stream);
    SLC_ASSERT_FAILS(slc_stream_pass(shared.run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "number of devices than the stream has, 0");
    shared_close(&shared);
}

/* An adaptive split leaves passes to the device while the CPU's part costs too much. */
static void test_without_cpu(void)
{
    const struct slc_plan_request request = shared_request(SLC_IO_PREAD, 2, true, &adaptive);
    struct slc_error err = SLC_ERROR_INIT;
    struct shared_run shared;
    struct slc_hybrid *share = &shared.hybrid[1];
    uint64_t least, all;
    unsigned added;

    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    shared_limits(&many, &request, &least, &all);
    for (unsigned resident = 0; resident < 2; resident++) {
        SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request,
                                  resident == 1 ? (least + all) / 2 : least, SHARED_LATE_US, &err),
                      &err);
        for (unsigned pass = 0; pass < 2; pass++) {
            shared_check(&shared, 1);
            CU_ASSERT(share->last[SLC_HYBRID_CPU].nnz > 0);
        }
        CU_ASSERT(share->cost_seconds > 0);
        added = fake_counts(shared.run.device)->outputs_added;
        for (unsigned pass = 0; pass < 3; pass++) {
            share->cost_seconds = 1e6;
            shared_check(&shared, 1);
            CU_ASSERT_EQUAL(share->last[SLC_HYBRID_CPU].nnz, 0);
            CU_ASSERT_EQUAL(share->passes_alone, pass + 1);
        }
        CU_ASSERT_EQUAL(fake_counts(shared.run.device)->outputs_added, added);
        share->cost_seconds = 0;
        shared_check(&shared, 1);
        CU_ASSERT(share->last[SLC_HYBRID_CPU].nnz > 0);
        check_parts(&shared, share, 6);
        shared_close(&shared);
    }
}

/* Returns the number of copies of blocks made so far. */
static uint64_t copies_made(const struct shared_run *shared)
{
    const uint64_t blocks = slc_reader_info(shared->run.store.reader)->block_count;
    uint64_t copies = 0;

    for (uint64_t b = 0; b < blocks; b++) {
        copies += fake_counts(shared->run.device)->copied[b];
    }
    return copies;
}

/* With enough memory, blocks that are cached for the CPU are copied once. */
static void test_copied_once(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (unsigned enough = 0; enough < 2; enough++) {
        const struct slc_plan_request request = shared_request(SLC_IO_PREAD, 2, true, &adaptive);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared_run shared;
        struct slc_hybrid *share = &shared.hybrid[1];
        uint64_t least, all, blocks, copies;

        shared_limits(&many, &request, &least, &all);
        SLC_ASSERT_OK(shared_open(&shared, &many, NULL, &request,
                                  enough == 1 ? UINT64_C(1) << 40 : least + (UINT64_C(64) << 10),
                                  SHARED_LATE_US, &err),
                      &err);
        blocks = slc_reader_info(shared.run.store.reader)->block_count;
        CU_ASSERT_EQUAL(shared.run.plan.gpu.keeps_cached, enough == 1);
        shared_check(&shared, 1);
        share->cost_seconds = 1e6;
        shared_check(&shared, 1);
        CU_ASSERT_EQUAL(share->passes_alone, 1);
        CU_ASSERT_EQUAL(slc_stream_copies(shared.run.stream, 0), enough == 0);
        copies = copies_made(&shared);
        share->cost_seconds = 1e6;
        shared_check(&shared, 1);
        CU_ASSERT_EQUAL(copies_made(&shared) == copies, enough == 1);
        share->cost_seconds = 0;
        shared_check(&shared, 1);
        CU_ASSERT(share->last[SLC_HYBRID_CPU].nnz > 0);
        CU_ASSERT(enough == 0 || copies_made(&shared) <= 2 * blocks);
        shared_close(&shared);
    }
}

/* ---- CP-ALS */

/* Fit and factors equal those of the CPU alone; the device may hold more than the factors. */
static void check_decomposition(const struct slc_hybrid_wish *wish, unsigned add_us)
{
    struct slc_plan_request request = shared_request(SLC_IO_PREAD, 2, true, wish);
    struct slc_cp_options options = fixture_options(SHARED_RANK, 4);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result cpu, result;
    struct fixture_run run;
    struct shared_run shared;
    uint64_t least, all, alone = 0;
    double distance = 0.0;
    unsigned read;

    shared_limits(&many, &request, &least, &all);
    request.hybrid.kind = SLC_HYBRID_NONE;
    SLC_ASSERT_OK(fixture_open(&run, many.path, &request, &err), &err);
    SLC_ASSERT_OK(slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &cpu, &err),
                  &err);
    fixture_close(&run);
    request.hybrid = *wish;
    SLC_ASSERT_OK(
        shared_open(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10), 100, &err), &err);
    fake_delay_add(shared.run.device, add_us);
    options.parts.gpu = shared.run.device;
    SLC_ASSERT_OK(slc_cp_run(&shared.run.store, shared.run.stream, shared.backend, &shared.run.plan,
                             &options, &result, &err),
                  &err);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, 1e-10);
    for (unsigned n = 0; n < 3; n++) {
        for (uint64_t i = 0; i < result.factors[n].rows; i++) {
            for (uint32_t r = 0; r < SHARED_RANK; r++) {
                distance = fmax(distance, fabs(slc_matrix_get(&result.factors[n], i, r) -
                                               slc_matrix_get(&cpu.factors[n], i, r)));
            }
        }
        check_parts(&shared, &result.hybrid[n], 4);
        shared.hybrid[n] = result.hybrid[n];
        alone += result.hybrid[n].passes_alone;
    }
    CU_ASSERT(distance <= 1e-8);
    /* Factors are written by the test and at the start. They are read back before the next MTTKRP
     * and at the end. */
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->factors_written, 6);
    read = fake_counts(shared.run.device)->factors_read;
    if (wish->kind != SLC_HYBRID_ADAPTIVE) {
        CU_ASSERT_EQUAL(read, 3 * 4 - 1 + 3);
    } else if (add_us > 0) {
        /* In one pass of each mode, the cost of the CPU's part is measured. If passes are slow, the
         * second pass is a trial. The other passes need no factor. */
        CU_ASSERT(alone >= 3 * 2);
        CU_ASSERT_EQUAL(fake_counts(shared.run.device)->outputs_added, 3 * 4 - alone);
        CU_ASSERT(alone < 3 * 3 || read == 2 + 3);
    } else {
        CU_ASSERT(read >= 2 + 3 && read <= 3 * 4 - 1 + 3);
    }
    slc_cp_result_destroy(&result);
    slc_cp_result_destroy(&cpu);
    shared_close(&shared);
}

static void test_decompositions(void)
{
    shared_problem(&many, "many", SHARED_DRAWS, 4096);
    for (size_t w = slc_test_threads_only() ? 3 : 0; w < SHARED_WISHES; w++) {
        check_decomposition(&shared_wishes[w], 0);
    }
    check_decomposition(&adaptive, 500 * 1000);
}

static const struct slc_test tests[] = {
    {"every block once, by either side", test_passes},
    {"some blocks stay on the device, others in the cache", test_both_sets},
    {"one block, or none", test_few_blocks},
    {"plans", test_plans},
    {"passes that cannot be", test_misuse},
    {"passes without the CPU", test_without_cpu},
    {"with enough memory every block is copied once", test_copied_once},
    {"CP-ALS agrees with the CPU", test_decompositions},
};

SLC_SUITE(shared)
{
    const int code = slc_test_main("shared", tests, SLC_COUNT(tests), argc, argv);

    shared_problem_free(&many);
    shared_problem_free(&one);
    shared_problem_free(&empty);
    return code;
}
