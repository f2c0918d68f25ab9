/*
 * MTTKRPs and CP-ALS that the CPU shares with a device: every block once, by one of them, from
 * wherever it lies and however few the slots; the sums of both; and faults on either side.
 */
#include "device_run.h"
#include "faulty_files.h"
#include "forge_file.h"
#include "slc_test.h"

#include "cpu/cpu.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 3, DRAWS = 40000, LATE_US = 200 };

static const struct slc_share_wish wishes[] = {{SLC_SHARE_STATIC, 0},
                                               {SLC_SHARE_STATIC, 0.3},
                                               {SLC_SHARE_STATIC, 1},
                                               {SLC_SHARE_ADAPTIVE, 0},
                                               {SLC_SHARE_QUEUE, 0}};

/* A tensor, its store, factors of integers and the oracle's sums. */
struct problem {
    struct fixture_tensor tensor;
    char path[512];
    struct slc_matrix factors[SLC_MAX_ORDER];
    double *want[SLC_MAX_ORDER];
};

static struct problem many, one, empty;

static void make_problem(struct problem *problem, const char *name, uint64_t draws, uint32_t block)
{
    const struct slc_matrix *views[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    if (problem->path[0] != '\0') {
        return;
    }
    device_run_tensor(&problem->tensor, draws);
    fixture_store(&problem->tensor, slc_test_folder(), name, SLC_CODEC_PACKED, block,
                  problem->path);
    view = fixture_view(&problem->tensor);
    for (unsigned n = 0; n < 3; n++) {
        const uint64_t rows = problem->tensor.dims[n];

        SLC_ASSERT_OK(slc_matrix_create(&problem->factors[n], SLC_F64, rows, RANK, &err), &err);
        for (uint64_t i = 0; i < rows * RANK; i++) {
            slc_matrix_set(&problem->factors[n], i / RANK, (uint32_t)(i % RANK),
                           (double)(1 + (i + n) % 5));
        }
        views[n] = &problem->factors[n];
        problem->want[n] = calloc(rows * RANK, sizeof(double));
    }
    for (unsigned n = 0; n < 3; n++) {
        slc_reference_mttkrp(&view, views, n, problem->tensor.dims[n], RANK, problem->want[n]);
    }
}

static void free_problem(struct problem *problem)
{
    for (unsigned n = 0; n < 3; n++) {
        slc_matrix_destroy(&problem->factors[n]);
        free(problem->want[n]);
    }
    fixture_destroy(&problem->tensor);
}

/* device_run_limits, as if nothing was shared, for then all blocks may stay. */
static void limits(const struct slc_plan_request *request, uint64_t *least, uint64_t *all)
{
    struct slc_plan_request wanted = *request;

    wanted.share.kind = SLC_SHARE_NONE;
    device_run_limits(many.path, &wanted, least, all);
}

/* A device and a backend that share, and what they know of one another. */
struct shared {
    struct device_run run;
    struct slc_backend *backend;
    struct slc_share shares[SLC_MAX_ORDER];
    const struct problem *problem;
};

static enum slc_status open_shared(struct shared *shared,
                                   const struct problem *problem,
                                   const struct slc_files *files,
                                   const struct slc_plan_request *request,
                                   uint64_t device_bytes,
                                   unsigned late_us,
                                   struct slc_error *err)
{
    enum slc_status status;

    memset(shared, 0, sizeof *shared);
    shared->problem = problem;
    device_run_store(&shared->run, problem->path, files, device_bytes, late_us);
    status = device_run_start(&shared->run, request, err);
    if (status == SLC_OK) {
        status = slc_cpu_backend_create(&shared->backend, err);
    }
    for (unsigned n = 0; n < 3 && status == SLC_OK; n++) {
        shared->shares[n].wish = request->share;
        status =
            shared->run.device->ops->factor_write(shared->run.device, n, &problem->factors[n], err);
    }
    return status;
}

static void close_shared(struct shared *shared)
{
    if (shared->backend != NULL) {
        shared->backend->ops->destroy(shared->backend);
    }
    device_run_close(&shared->run);
}

static enum slc_status compute(struct shared *shared,
                               unsigned mode,
                               const volatile int *stop,
                               void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                               void *context,
                               struct slc_error *err)
{
    const struct slc_plan *plan = &shared->run.plan;
    struct slc_matrix output = {0};
    struct slc_mttkrp_job job = {.order = 3,
                                 .mode = mode,
                                 .rank = RANK,
                                 .nnz = shared->problem->tensor.nnz,
                                 .workers = plan->threads,
                                 .conflict = plan->choices[mode].chosen,
                                 .output = &output};
    const struct slc_accelerator_cpu cpu = {shared->backend, &job, &shared->shares[mode]};
    enum slc_status status;

    for (unsigned n = 0; n < 3; n++) {
        job.factors[n] = &shared->problem->factors[n];
    }
    SLC_ASSERT_OK(
        slc_matrix_create(&output, SLC_F64, shared->problem->tensor.dims[mode], RANK, err), err);
    status = slc_accelerator_mttkrp_shared(shared->run.device, shared->run.stream, plan, &cpu, stop,
                                           progress, context, err);
    slc_matrix_destroy(&output);
    return status;
}

/* An MTTKRP that has to go well; integers add up exactly, in any order. */
static void check(struct shared *shared, unsigned mode)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix output = {0};
    uint64_t wrong = 0;

    SLC_ASSERT_OK(compute(shared, mode, NULL, NULL, NULL, &err), &err);
    SLC_ASSERT_OK(
        slc_matrix_create(&output, SLC_F64, shared->problem->tensor.dims[mode], RANK, &err), &err);
    SLC_ASSERT_OK(shared->run.device->ops->output_read(shared->run.device, &output, &err), &err);
    for (uint64_t i = 0; i < output.rows; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            wrong += slc_matrix_get(&output, i, r) != shared->problem->want[mode][i * RANK + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_matrix_destroy(&output);
}

static struct slc_plan_request
request_of(enum slc_io_kind io, unsigned threads, bool cache, const struct slc_share_wish *wish)
{
    struct slc_plan_request request = fixture_request(RANK);

    request.io = io;
    request.threads = threads;
    request.cache = cache;
    request.slots = 2;
    request.streams = 2;
    request.share = *wish;
    return request;
}

/* Of what was asked for: every nonzero once in each of `passes` passes. */
static void check_parts(const struct shared *shared, const struct slc_share *share, uint64_t passes)
{
    const uint64_t nnz = slc_reader_info(shared->run.store.reader)->nnz;
    const double fraction = slc_share_fraction(share->parts);

    CU_ASSERT_EQUAL(share->passes, passes);
    CU_ASSERT_EQUAL(share->parts[0].nnz + share->parts[1].nnz, passes * nnz);
    if (share->wish.kind == SLC_SHARE_STATIC && shared->problem == &many) {
        /* Within a block. */
        CU_ASSERT_DOUBLE_EQUAL(fraction, share->wish.fraction, 0.03);
        CU_ASSERT(share->wish.fraction > 0 || fraction == 0);
        CU_ASSERT(share->wish.fraction < 1 || fraction == 1);
    }
    for (unsigned side = 0; side < SLC_SHARE_SIDES; side++) {
        CU_ASSERT((share->parts[side].nnz > 0) <= (share->parts[side].seconds > 0));
    }
}

static void run_variant(const struct problem *problem,
                        const struct slc_plan_request *request,
                        uint64_t device_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct shared shared;
    struct slc_stream_stats stats;
    enum slc_status status =
        open_shared(&shared, problem, NULL, request, device_bytes, LATE_US, &err);
    uint64_t added = 0;

    if (status == SLC_ERR_UNSUPPORTED && request->io == SLC_IO_URING) {
        close_shared(&shared);
        return;
    }
    SLC_ASSERT_OK(status, &err);
    for (unsigned pass = 0; pass < 4; pass++) {
        check(&shared, pass / 2);
        added += shared.shares[pass / 2].last[SLC_SHARE_CPU].nnz > 0;
    }
    check_parts(&shared, &shared.shares[0], 2);
    check_parts(&shared, &shared.shares[1], 2);
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->outputs_added, added);
    slc_stream_stats(shared.run.stream, &stats);
    CU_ASSERT_EQUAL(stats.blocks, 4 * slc_reader_info(shared.run.store.reader)->block_count);
    if (request->share.kind == SLC_SHARE_ADAPTIVE && problem == &many) {
        for (unsigned mode = 0; mode < 2; mode++) {
            const double measured = slc_share_rates_fraction(&shared.shares[mode].rates);

            CU_ASSERT(measured > 0 && measured < 1);
        }
    }
    close_shared(&shared);
}

static void test_passes(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_URING, SLC_IO_MMAP};

    make_problem(&many, "many", DRAWS, 4096);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        for (unsigned variant = 0; variant < 6; variant += slc_test_threads_only() ? 2 : 1) {
            const struct slc_plan_request request = request_of(
                kinds[variant % 3], 1 + (variant + (unsigned)w) % 3, variant % 2 == 0, &wishes[w]);
            uint64_t least, all;

            limits(&request, &least, &all);
            run_variant(&many, &request, variant < 4 ? least : (least + all) / 2);
        }
    }
}

/* Some blocks stay on the device, some in the host's cache, and the rest is read. */
static void test_both_sets(void)
{
    make_problem(&many, "many", DRAWS, 4096);
    for (size_t w = 1; w < SLC_COUNT(wishes); w++) {
        struct slc_plan_request request = request_of(SLC_IO_PREAD, 2, true, &wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared shared;
        uint64_t least, all;

        limits(&request, &least, &all);
        request.memory_bytes = 1;
        SLC_ASSERT_FAILS(open_shared(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10),
                                     LATE_US, &err),
                         SLC_ERR_BUDGET, &err, "--memory");
        request.memory_bytes =
            shared.run.plan.minimum_bytes + shared.run.plan.slot_bytes + (UINT64_C(24) << 10);
        close_shared(&shared);
        slc_error_clear(&err);
        SLC_ASSERT_OK(open_shared(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10),
                                  LATE_US, &err),
                      &err);
        CU_ASSERT(shared.run.plan.cached_blocks > 0);
        CU_ASSERT(shared.run.plan.accelerator.kept_blocks > 0);
        CU_ASSERT(shared.run.plan.iteration_read_bytes > 0);
        for (unsigned pass = 0; pass < 3; pass++) {
            check(&shared, 1);
        }
        check_parts(&shared, &shared.shares[1], 3);
        close_shared(&shared);
    }
}

/* One block, and none. */
static void test_few_blocks(void)
{
    make_problem(&one, "one", 500, UINT32_C(1) << 20);
    make_problem(&empty, "empty", 0, 4096);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        const struct slc_plan_request request = request_of(SLC_IO_PREAD, 2, w % 2 == 0, &wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared shared;

        SLC_ASSERT_OK(open_shared(&shared, &one, NULL, &request, UINT64_C(1) << 40, LATE_US, &err),
                      &err);
        CU_ASSERT_EQUAL(slc_reader_info(shared.run.store.reader)->block_count, 1);
        check(&shared, 2);
        check(&shared, 2);
        check_parts(&shared, &shared.shares[2], 2);
        /* Nobody shares a block: the device has it, unless less than half is to be its part. */
        CU_ASSERT_EQUAL(slc_share_fraction(shared.shares[2].parts),
                        wishes[w].kind != SLC_SHARE_STATIC || wishes[w].fraction == 1);
        close_shared(&shared);
        SLC_ASSERT_OK(
            open_shared(&shared, &empty, NULL, &request, UINT64_C(1) << 40, LATE_US, &err), &err);
        check(&shared, 0);
        check_parts(&shared, &shared.shares[0], 1);
        CU_ASSERT(slc_share_fraction(shared.shares[0].parts) < 0);
        close_shared(&shared);
    }
}

/* What a plan with a share holds. */
static void test_plans(void)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, 2, true, &wishes[4]);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan alone, shared;
    struct slc_layouts layouts;
    struct slc_store store;
    struct shared open;

    make_problem(&many, "many", DRAWS, 4096);
    SLC_ASSERT_OK(open_shared(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    shared = open.run.plan;
    close_shared(&open);
    /* The CPU cannot have what stays: some does not, however much room there is. */
    CU_ASSERT(shared.layouts[0].resident_bytes > 0);
    CU_ASSERT(shared.layouts[0].resident_bytes * 8 <= shared.layouts[0].store_bytes * 7);
    for (unsigned n = 0; n < 3; n++) {
        CU_ASSERT(shared.choices[n].chosen == SLC_CONFLICT_PRIVATE ||
                  shared.choices[n].chosen == SLC_CONFLICT_LOCKED);
        CU_ASSERT_EQUAL(shared.choices[n].rival, SLC_CONFLICT_AUTO);
    }
    request.share.kind = SLC_SHARE_NONE;
    SLC_ASSERT_OK(open_shared(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    alone = open.run.plan;
    close_shared(&open);
    /* The CPU's factors are the result's; its output and scratch are its own. */
    CU_ASSERT_EQUAL(alone.output_bytes, 0);
    CU_ASSERT_EQUAL(alone.scratch_bytes, 0);
    CU_ASSERT(shared.output_bytes > 0 && shared.scratch_bytes > 0);
    CU_ASSERT(shared.minimum_bytes > alone.minimum_bytes);
    /* No more stays with the device than it is to compute. */
    request.share = (struct slc_share_wish){SLC_SHARE_STATIC, 0.25};
    SLC_ASSERT_OK(open_shared(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err), &err);
    CU_ASSERT(open.run.plan.layouts[0].resident_bytes > 0);
    CU_ASSERT(open.run.plan.layouts[0].resident_bytes * 4 <= open.run.plan.layouts[0].store_bytes);
    close_shared(&open);

    request.deterministic = true;
    SLC_ASSERT_FAILS(open_shared(&open, &many, NULL, &request, UINT64_C(1) << 40, 0, &err),
                     SLC_ERR_USAGE, &err, "the same bits");
    close_shared(&open);
    request.deterministic = false;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_store_open(NULL, many.path, &store, &err), &err);
    layouts = slc_layouts_one(store.reader);
    SLC_ASSERT_FAILS(slc_plan_make(&layouts, &request, &alone, &err), SLC_ERR_USAGE, &err,
                     "one device");
    slc_store_close(&store);
}

static void test_failing_reads(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_MMAP};

    make_problem(&many, "many", DRAWS, 4096);
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        const struct slc_plan_request request = request_of(kinds[k], 2, false, &wishes[3 + k]);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_faulty faulty;
        struct shared shared;
        uint64_t least, all, blocks;

        limits(&request, &least, &all);
        slc_faulty_init(&faulty);
        SLC_ASSERT_OK(open_shared(&shared, &many, &faulty.table, &request, least, LATE_US, &err),
                      &err);
        blocks = slc_reader_info(shared.run.store.reader)->block_count;
        for (uint64_t read = 1; read <= blocks; read += 5) {
            slc_error_clear(&err);
            slc_faulty_fail(&faulty,
                            kinds[k] == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED, read,
                            EIO);
            SLC_ASSERT_FAILS(compute(&shared, 0, NULL, NULL, NULL, &err), SLC_ERR_IO, &err,
                             "reading");
            CU_ASSERT(err.block < blocks && err.offset != SLC_NOWHERE);
        }
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
        CU_ASSERT_EQUAL(shared.shares[0].passes, 0);
        check(&shared, 0);
        close_shared(&shared);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
}

/* Damage of a block that either side has. */
static void test_damage(void)
{
    make_problem(&many, "many", DRAWS, 4096);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        const struct slc_plan_request request = request_of(SLC_IO_PREAD, 2, false, &wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_block_entry entry;
        struct slc_forged forged;
        struct shared shared;
        const char *file;
        uint64_t least, all;
        uint8_t byte;

        limits(&request, &least, &all);
        SLC_ASSERT_OK(open_shared(&shared, &many, NULL, &request, least, LATE_US, &err), &err);
        file = slc_reader_path(shared.run.store.reader);
        slc_reader_entry(shared.run.store.reader, 5, &entry);
        slc_forged_load(&forged, file);
        byte = forged.bytes[entry.offset + 100];
        slc_forged_release(&forged);
        slc_forged_poke(file, entry.offset + 100, byte ^ 4U);
        SLC_ASSERT_FAILS(compute(&shared, 0, NULL, NULL, NULL, &err), SLC_ERR_DAMAGED, &err, NULL);
        CU_ASSERT_EQUAL(err.block, 5);
        CU_ASSERT_EQUAL(err.offset, entry.offset);
        slc_forged_poke(file, entry.offset + 100, byte);
        check(&shared, 0);
        close_shared(&shared);
    }
}

/* The k-th call that the device refuses ends the pass and both jobs. */
static void test_refusals(void)
{
    make_problem(&many, "many", DRAWS, 4096);
    for (unsigned cache = 0; cache < 2; cache++) {
        const struct slc_plan_request request =
            request_of(SLC_IO_PREAD, 2, cache != 0, &wishes[3 + cache]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared shared;
        uint64_t least, all, calls;

        limits(&request, &least, &all);
        SLC_ASSERT_OK(open_shared(&shared, &many, NULL, &request, (least + all) / 2, 0, &err),
                      &err);
        (void)fake_refuse(shared.run.device, 0);
        check(&shared, 1);
        calls = fake_refuse(shared.run.device, 0);
        /* How many there are is chance; two thirds of them there will be again. */
        for (uint64_t k = 1; k < calls * 2 / 3; k += 1 + calls / 20) {
            const unsigned begun = fake_counts(shared.run.device)->begun;

            slc_error_clear(&err);
            (void)fake_refuse(shared.run.device, k);
            if (compute(&shared, 1, NULL, NULL, NULL, &err) != SLC_OK) {
                CU_ASSERT_EQUAL(err.status, SLC_ERR_SYSTEM);
                CU_ASSERT(strstr(err.message, "was refused") != NULL);
            }
            (void)fake_refuse(shared.run.device, 0);
            CU_ASSERT_EQUAL(fake_counts(shared.run.device)->begun, begun + (k > 1));
            CU_ASSERT_EQUAL(fake_counts(shared.run.device)->ended, begun + (k > 1));
        }
        check(&shared, 1);
        close_shared(&shared);
    }
}

static void raise_stop(void *context, uint64_t done, uint64_t blocks, uint64_t bytes)
{
    (void)blocks;
    (void)bytes;
    if (done > 2) {
        __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
    }
}

static void test_stop(void)
{
    make_problem(&many, "many", DRAWS, 4096);
    for (size_t w = 2; w < SLC_COUNT(wishes); w++) {
        const struct slc_plan_request request = request_of(SLC_IO_PREAD, 1, false, &wishes[w]);
        struct slc_error err = SLC_ERROR_INIT;
        struct shared shared;
        uint64_t least, all;
        int stop = 1;

        limits(&request, &least, &all);
        /* Progress is reported ten times a second, which the device is late enough for. */
        SLC_ASSERT_OK(open_shared(&shared, &many, NULL, &request, least, 20000, &err), &err);
        SLC_ASSERT_FAILS(compute(&shared, 0, &stop, NULL, NULL, &err), SLC_ERR_INTERRUPTED, &err,
                         NULL);
        if (w == 2) {
            stop = 0;
            slc_error_clear(&err);
            SLC_ASSERT_FAILS(compute(&shared, 0, &stop, raise_stop, &stop, &err),
                             SLC_ERR_INTERRUPTED, &err, NULL);
        }
        CU_ASSERT_EQUAL(shared.shares[0].passes, 0);
        close_shared(&shared);
    }
}

static void test_misuse(void)
{
    const struct slc_plan_request request = request_of(SLC_IO_PREAD, 1, false, &wishes[4]);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_share share = {.wish = wishes[4]};
    struct slc_pass pass = {.share = &share};
    struct shared shared;
    uint64_t least, all;

    make_problem(&many, "many", DRAWS, 4096);
    limits(&request, &least, &all);
    SLC_ASSERT_OK(open_shared(&shared, &many, NULL, &request, least, 0, &err), &err);
    SLC_ASSERT_FAILS(slc_stream_pass(shared.run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "are shared between");
    pass.device = shared.run.device;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_stream_pass(shared.run.stream, &pass, &err), SLC_ERR_USAGE, &err,
                     "are shared between");
    close_shared(&shared);
}

/* ---- CP-ALS */

/* The fit and the factors of the CPU alone, and what a device may hold but the factors. */
static void check_decomposition(const struct slc_share_wish *wish)
{
    struct slc_plan_request request = request_of(SLC_IO_PREAD, 2, true, wish);
    struct slc_cp_als_options options = fixture_options(RANK, 4);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_result cpu, result;
    struct fixture_run run;
    struct shared shared;
    uint64_t least, all;
    double distance = 0.0;

    limits(&request, &least, &all);
    request.share.kind = SLC_SHARE_NONE;
    SLC_ASSERT_OK(fixture_open(&run, many.path, &request, &err), &err);
    SLC_ASSERT_OK(slc_cp_als(&run.store, run.stream, run.backend, &run.plan, &options, &cpu, &err),
                  &err);
    fixture_close(&run);
    request.share = *wish;
    SLC_ASSERT_OK(
        open_shared(&shared, &many, NULL, &request, least + (UINT64_C(64) << 10), 100, &err), &err);
    options.accelerator = shared.run.device;
    SLC_ASSERT_OK(slc_cp_als(&shared.run.store, shared.run.stream, shared.backend, &shared.run.plan,
                             &options, &result, &err),
                  &err);
    CU_ASSERT_DOUBLE_EQUAL(result.fit, cpu.fit, 1e-10);
    for (unsigned n = 0; n < 3; n++) {
        for (uint64_t i = 0; i < result.factors[n].rows; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                distance = fmax(distance, fabs(slc_matrix_get(&result.factors[n], i, r) -
                                               slc_matrix_get(&cpu.factors[n], i, r)));
            }
        }
        check_parts(&shared, &result.shares[n], 4);
    }
    CU_ASSERT(distance <= 1e-8);
    /* Written by the test and at the start; back after each update, and at the end. */
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->factors_written, 6);
    CU_ASSERT_EQUAL(fake_counts(shared.run.device)->factors_read, 3 * (4 + 1));
    slc_cp_result_destroy(&result);
    slc_cp_result_destroy(&cpu);
    close_shared(&shared);
}

static void test_decompositions(void)
{
    make_problem(&many, "many", DRAWS, 4096);
    for (size_t w = slc_test_threads_only() ? 3 : 0; w < SLC_COUNT(wishes); w++) {
        check_decomposition(&wishes[w]);
    }
}

static const struct slc_test tests[] = {
    {"every block once, by either side", test_passes},
    {"some blocks stay on the device, others in the cache", test_both_sets},
    {"one block, or none", test_few_blocks},
    {"plans", test_plans},
    {"reads fail", test_failing_reads},
    {"blocks are damaged", test_damage},
    {"calls are refused", test_refusals},
    {"a signal stops a pass", test_stop},
    {"passes that cannot be", test_misuse},
    {"CP-ALS finds what the CPU finds", test_decompositions},
};

int main(int argc, char **argv)
{
    const int code = slc_test_main("shared", tests, SLC_COUNT(tests), argc, argv);

    free_problem(&many);
    free_problem(&one);
    free_problem(&empty);
    return code;
}
