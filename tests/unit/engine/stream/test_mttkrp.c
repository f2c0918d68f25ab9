/* MTTKRP over a stream: the oracle's numbers for every mode, strategy and schedule; after a damaged
 * block, a stop or a thread that fails to start, the same stream and device can be used again. */
#include "engine/stream/mttkrp.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cp_fixture.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 17, MODES = 3, TILE_NNZ = 6000 };

/* A store with five tiles, not full because full ones are slow to make, and random factors. */
struct problem {
    struct fixture_tensor tensor;
    char path[512];
    struct slc_matrix factors[MODES];
    const struct slc_matrix *views[MODES];
};

static void make_problem(struct problem *problem, const char *name)
{
    static const uint64_t dims[MODES] = {300, 200, 100};
    struct slc_error err = SLC_ERROR_INIT;

    memset(problem, 0, sizeof *problem);
    fixture_random(&problem->tensor, MODES, dims, 5 * TILE_NNZ, slc_test_seed());
    for (unsigned t = 0; t < 3; t++) {
        problem->tensor.tile_nnz[t] = TILE_NNZ;
    }
    fixture_store(&problem->tensor, slc_test_folder(), name, SLC_CODEC_PACKED, 4096, problem->path);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&problem->factors[n], SLC_F64, dims[n], RANK, &err), &err);
        for (uint64_t i = 0; i < dims[n]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_set(&problem->factors[n], i, r,
                               slc_random_f64(99, n, i * RANK + r) - 0.5);
            }
        }
        problem->views[n] = &problem->factors[n];
    }
}

static void destroy_problem(struct problem *problem)
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&problem->factors[n]);
    }
    fixture_destroy(&problem->tensor);
}

static enum slc_status multiply(struct fixture_run *run,
                                const struct problem *problem,
                                unsigned mode,
                                enum slc_conflict conflict,
                                const volatile int *stop,
                                struct slc_matrix *output,
                                struct slc_error *err)
{
    struct slc_mttkrp_job job = {.order = MODES,
                                 .mode = mode,
                                 .rank = RANK,
                                 .nnz = run->store.manifest.nnz,
                                 .workers = run->plan.threads,
                                 .deterministic = run->plan.request.deterministic,
                                 .conflict = conflict,
                                 .output = output};

    memcpy(job.factors, problem->views, sizeof problem->views);
    return slc_mttkrp_stream(run->stream, 0, run->backend, &job, stop, NULL, NULL, err);
}

/* The largest difference from the oracle, relative to the sum of magnitudes. */
static double
distance(const struct problem *problem, unsigned mode, const struct slc_matrix *output)
{
    const struct slc_coo_view view = fixture_view(&problem->tensor);
    const uint64_t rows = problem->tensor.dims[mode];
    double *expected = calloc(rows * RANK, sizeof *expected);
    double *scale = calloc(rows * RANK, sizeof *scale);
    double largest = 0.0;

    slc_reference_mttkrp(&view, problem->views, mode, rows, RANK, expected);
    slc_reference_mttkrp_magnitude(&view, problem->views, mode, rows, RANK, scale);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            const double difference = fabs(slc_matrix_get(output, i, r) - expected[i * RANK + r]);

            largest = fmax(largest, scale[i * RANK + r] > 0.0 ? difference / scale[i * RANK + r]
                                                              : difference);
        }
    }
    free(expected);
    free(scale);
    return largest;
}

static void yields_the_oracles_numbers(void)
{
    static const enum slc_conflict conflicts[] = {SLC_CONFLICT_AUTO, SLC_CONFLICT_PRIVATE,
                                                  SLC_CONFLICT_LOCKED, SLC_CONFLICT_COLUMNS,
                                                  SLC_CONFLICT_ORDERED};
    struct problem problem;
    struct slc_matrix output;
    struct slc_error err = SLC_ERROR_INIT;

    make_problem(&problem, "oracle");
    for (unsigned variant = 0; variant < 6; variant++) {
        struct slc_plan_request request = fixture_request(RANK);
        struct fixture_run run;

        request.threads = 1 + variant % 3;
        request.schedule = variant < 3 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
        request.cache = variant % 2 == 0;
        SLC_ASSERT_OK(fixture_open(&run, problem.path, &request, &err), &err);
        for (unsigned mode = 0; mode < MODES; mode++) {
            /* Ordered commits need tiles in file order. */
            for (size_t c = 0; c < (variant < 3 ? 5U : 4U); c++) {
                if (slc_test_quick() && (variant + mode + c) % MODES != 0) {
                    continue; /* each variant and strategy is tested with one mode */
                }
                if (slc_test_threads_only() && (variant + c) % 2 != 0) {
                    continue;
                }
                SLC_ASSERT_OK(
                    slc_matrix_create(&output, SLC_F64, problem.tensor.dims[mode], RANK, &err),
                    &err);
                SLC_ASSERT_OK(multiply(&run, &problem, mode, conflicts[c], NULL, &output, &err),
                              &err);
                CU_ASSERT_TRUE(distance(&problem, mode, &output) <= 1e-13);
                slc_matrix_destroy(&output);
            }
        }
        fixture_close(&run);
    }
    destroy_problem(&problem);
}

/* Inverts one byte in the middle of block 3. */
static void damage_block(const char *path, struct slc_store *store)
{
    struct slc_block_entry entry;
    char file[600];
    FILE *stream;
    int byte;

    slc_reader_entry(store->reader, 3, &entry);
    snprintf(file, sizeof file, "%s/blco.blk", path);
    stream = fopen(file, "r+");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    fseek(stream, (long)(entry.offset + entry.bytes / 2), SEEK_SET);
    byte = fgetc(stream);
    fseek(stream, (long)(entry.offset + entry.bytes / 2), SEEK_SET);
    fputc(byte ^ 0xff, stream);
    fclose(stream);
}

static void stops_at_a_damaged_block(void)
{
    struct problem problem;
    struct slc_matrix output;
    struct slc_error err = SLC_ERROR_INIT;

    make_problem(&problem, "damaged");
    for (unsigned variant = 0; variant < 4; variant++) {
        struct slc_plan_request request = fixture_request(RANK);
        struct fixture_run run;

        request.threads = 1 + variant;
        request.deterministic = variant % 2 == 0;
        request.cache = false;
        SLC_ASSERT_OK(fixture_open(&run, problem.path, &request, &err), &err);
        SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, problem.tensor.dims[1], RANK, &err),
                      &err);
        damage_block(problem.path, &run.store);
        SLC_ASSERT_FAILS(multiply(&run, &problem, 1, SLC_CONFLICT_AUTO, NULL, &output, &err),
                         SLC_ERR_DAMAGED, &err, "");
        CU_ASSERT_EQUAL(err.block, 3);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "blco.blk"));
        CU_ASSERT_NOT_EQUAL(err.offset, SLC_NOWHERE);

        /* After the bits are restored, the same stream and device continue. */
        damage_block(problem.path, &run.store);
        slc_error_clear(&err);
        SLC_ASSERT_OK(multiply(&run, &problem, 1, SLC_CONFLICT_AUTO, NULL, &output, &err), &err);
        CU_ASSERT_TRUE(distance(&problem, 1, &output) <= 1e-13);
        slc_matrix_destroy(&output);
        fixture_close(&run);
    }
    destroy_problem(&problem);
}

static void continues_after_a_stop(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct problem problem;
    struct fixture_run run;
    struct slc_matrix output;
    struct slc_error err = SLC_ERROR_INIT;
    int stop = 1;

    make_problem(&problem, "stopped");
    SLC_ASSERT_OK(fixture_open(&run, problem.path, &request, &err), &err);
    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, problem.tensor.dims[0], RANK, &err), &err);
    SLC_ASSERT_FAILS(multiply(&run, &problem, 0, SLC_CONFLICT_AUTO, &stop, &output, &err),
                     SLC_ERR_INTERRUPTED, &err, "");
    slc_error_clear(&err);
    slc_fault_arm(SLC_FAULT_THREAD, 1);
    SLC_ASSERT_FAILS(multiply(&run, &problem, 0, SLC_CONFLICT_AUTO, NULL, &output, &err),
                     SLC_ERR_SYSTEM, &err, "");
    slc_fault_arm(SLC_FAULT_THREAD, 0);
    slc_error_clear(&err);
    SLC_ASSERT_OK(multiply(&run, &problem, 0, SLC_CONFLICT_AUTO, NULL, &output, &err), &err);
    CU_ASSERT_TRUE(distance(&problem, 0, &output) <= 1e-13);
    slc_matrix_destroy(&output);
    fixture_close(&run);
    destroy_problem(&problem);
}

static void no_nonzeros_give_zeros(void)
{
    static const uint64_t dims[MODES] = {4, 5, 6};
    struct slc_plan_request request = fixture_request(RANK);
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_matrix factors[MODES], output;
    struct slc_mttkrp_job job = {.order = MODES, .mode = 2, .rank = RANK, .output = &output};
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    fixture_random(&tensor, MODES, dims, 0, 1);
    fixture_store(&tensor, slc_test_folder(), "empty", SLC_CODEC_PACKED, 4096, path);
    SLC_ASSERT_OK(fixture_open(&run, path, &request, &err), &err);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&factors[n], SLC_F64, dims[n], RANK, &err), &err);
        job.factors[n] = &factors[n];
    }
    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, dims[2], RANK, &err), &err);
    slc_matrix_set(&output, 3, 3, 1.0);
    job.workers = run.plan.threads;
    SLC_ASSERT_OK(slc_mttkrp_stream(run.stream, 0, run.backend, &job, NULL, NULL, NULL, &err),
                  &err);
    for (uint64_t i = 0; i < dims[2]; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            CU_ASSERT_EQUAL(slc_matrix_get(&output, i, r), 0.0);
        }
    }
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&factors[n]);
    }
    slc_matrix_destroy(&output);
    fixture_close(&run);
    fixture_destroy(&tensor);
}

SLC_SUITE(mttkrp)
{
    static const struct slc_test tests[] = {
        {"the oracle's numbers, every strategy", yields_the_oracles_numbers},
        {"a damaged block is named, and the next pass works", stops_at_a_damaged_block},
        {"after a stop the next pass works", continues_after_a_stop},
        {"no nonzeros yield zeros", no_nonzeros_give_zeros},
    };

    return slc_test_main("engine: mttkrp", tests, SLC_COUNT(tests), argc, argv);
}
