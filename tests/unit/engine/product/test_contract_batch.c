/* Several vectors of one mode in one pass.
 *
 * Identity: each result has the bytes of a run with its vector alone, for sums in order and sorted
 * sums, whole and short vectors, and on either side with integers. The pass reads the store once.
 * Errors leave no result. */
#include "base/error/fault.h"
#include "contract_fixture.h"
#include "fake_products.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 3 };

struct batch_case {
    uint64_t dims[3];
    uint64_t count;
    unsigned mode;
    unsigned bits; /* fiber bits of the mode; 0: auto */
    bool relabel, sort;
};

static const struct batch_case cases[] = {
    {{100, 2000, 60}, 150000, 1, 11, false, false}, /* sums in order, several tiles */
    {{100, 2000, 60}, 150000, 1, 11, false, true},
    {{100, 2000, 60}, 50000, 0, 0, false, false},
    {{100, 2000, 60}, 50000, 2, 0, true, false},
    {{1 << 18, 50, 30}, 20000, 0, 18, false, false}, /* short vectors */
    {{1 << 18, 50, 30}, 20000, 0, 0, true, false},
    {{100, 20, 60}, 0, 1, 5, false, false},
};

/* A problem, and vectors and paths of further results. */
struct batch {
    struct problem problem;
    double *vectors[RESULTS];
    char paths[RESULTS][300];
    struct slc_contract_more more[RESULTS - 1];
};

static void create(struct batch *batch, const struct batch_case *c)
{
    struct problem *problem = &batch->problem;
    struct build build = plenty;

    build.relabel = c->relabel ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    build.fibers = c->bits > 0 ? SLC_FIBERS_GIVEN : SLC_FIBERS_AUTO;
    build.run = (struct slc_fiber_run){c->mode, c->bits};
    problem_create(problem, 3, c->dims, c->count, 1U << c->mode, UNIFORM, true, &build);
    problem->options.overwrite = true;
    problem->options.sort = c->sort;
    for (unsigned r = 0; r < RESULTS; r++) {
        batch->vectors[r] = malloc(c->dims[c->mode] * sizeof(double));
        for (uint64_t i = 0; i < c->dims[c->mode]; i++) {
            batch->vectors[r][i] = (double)((i * 7 + r) % 5) - (double)r;
        }
        (void)snprintf(batch->paths[r], sizeof batch->paths[r], "%s/out-%u.slc", test_folder(), r);
    }
    problem->options.output = batch->paths[0];
    problem->options.vectors[0].path = NULL;
    problem->options.vectors[0].values = batch->vectors[0];
    for (unsigned r = 1; r < RESULTS; r++) {
        batch->more[r - 1] =
            (struct slc_contract_more){.values = batch->vectors[r], .output = batch->paths[r]};
    }
}

static void several(struct batch *batch)
{
    batch->problem.options.more_count = RESULTS - 1;
    batch->problem.options.more = batch->more;
}

static void destroy(struct batch *batch)
{
    for (unsigned r = 0; r < RESULTS; r++) {
        if (exists(batch->paths[r])) {
            remove_store(batch->paths[r]);
        }
        free(batch->vectors[r]);
    }
    problem_destroy(&batch->problem);
}

/* Makes every result alone, and keeps the hashes of their blocks and their reports. */
static void
make_alone(const struct batch *batch, uint64_t *hashes, struct slc_contract_report *reports)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned r = 0; r < RESULTS; r++) {
        struct slc_contract_options alone = batch->problem.options;

        alone.vectors[0].values = batch->vectors[r];
        alone.output = batch->paths[r];
        SLC_ASSERT_OK(slc_contract(&alone, &reports[r], &err), &err);
        hashes[r] = hash_of(path_in(batch->paths[r], "blco.blk"));
        remove_store(batch->paths[r]);
    }
}

static void check_results(const struct batch *batch, const uint64_t *hashes)
{
    for (unsigned r = 0; r < RESULTS; r++) {
        CU_ASSERT_EQUAL(hash_of(path_in(batch->paths[r], "blco.blk")), hashes[r]);
    }
}

static void test_like_single_runs(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
        struct slc_contract_report alone[RESULTS], report;
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t hashes[RESULTS];
        struct batch batch;

        create(&batch, &cases[i]);
        batch.problem.options.stream = &tiles;
        make_alone(&batch, hashes, alone);
        const uint64_t bytes_read = tiles.stats.bytes_read;
        several(&batch);
        SLC_ASSERT_OK(slc_contract(&batch.problem.options, &report, &err), &err);
        check_results(&batch, hashes);
        CU_ASSERT_EQUAL(tiles.stats.bytes_read, bytes_read);
        CU_ASSERT_EQUAL(report.ordered, cases[i].bits > 0 && !cases[i].sort);
        CU_ASSERT_EQUAL(report.zero_sums, alone[0].zero_sums);
        for (unsigned r = 1; r < RESULTS; r++) {
            CU_ASSERT_EQUAL(batch.more[r - 1].zero_sums, alone[r].zero_sums);
            CU_ASSERT_EQUAL(batch.more[r - 1].build.summary.nnz, alone[r].build.summary.nnz);
            CU_ASSERT_EQUAL(batch.more[r - 1].build.explicit_zeros, alone[r].build.explicit_zeros);
        }
        batch.problem.options.memory_bytes = report.least_bytes + (UINT64_C(8) << 20);
        batch.problem.options.threads = 5;
        SLC_ASSERT_OK(slc_contract(&batch.problem.options, &report, &err), &err);
        check_results(&batch, hashes);
        destroy(&batch);
    }
}

/* A device gets the vectors as columns of one matrix. */
static void test_device(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i += 2) {
        struct slc_contract_report alone[RESULTS], report;
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t hashes[RESULTS];
        struct batch batch;

        create(&batch, &cases[i]);
        make_alone(&batch, hashes, alone);
        several(&batch);
        for (unsigned side = FAKE_ALL; side <= FAKE_ODD; side++) {
            struct fake_products fake = {
                .side = (enum fake_side)side, .lanes = 2, .room = 700, .columns = RESULTS};

            fake_products_begin(&fake);
            batch.problem.options.products = &fake.table;
            SLC_ASSERT_OK(slc_contract(&batch.problem.options, &report, &err), &err);
            check_results(&batch, hashes);
            fake_products_end(&fake);
        }
        destroy(&batch);
    }
}

static void test_refused(void)
{
    struct slc_contract_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct batch batch;

    create(&batch, &cases[0]);
    several(&batch);
    struct slc_contract_options *options = &batch.problem.options;
    options->vectors[1].mode = 2;
    options->vectors[1].values = batch.vectors[1];
    options->vector_count = 2;
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err,
                     "exactly one mode to multiply");
    options->vector_count = 1;
    options->more_count = SLC_CONTRACT_RESULTS_MAX;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_USAGE, &err, "1 to 64");
    options->more_count = RESULTS - 1;
    batch.more[1].values = NULL;
    batch.more[1].path = "/nonexistent.npy";
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_contract(options, &report, &err), SLC_ERR_IO, &err, "");
    for (unsigned r = 0; r < RESULTS; r++) {
        CU_ASSERT_FALSE(exists(batch.paths[r]));
    }
    destroy(&batch);
}

/* Every allocation fails once: no unfinished result is left. */
static void test_failing_memory(void)
{
    for (unsigned sorted = 0; sorted < 2; sorted++) {
        struct batch_case c = {{40, 30, 20}, 3000, 1, sorted == 0 ? 5 : 0, false, sorted == 1};
        struct slc_contract_report report;
        struct batch batch;

        create(&batch, &c);
        several(&batch);
        for (uint64_t k = 1;; k += slc_test_quick() ? 5 : 1) {
            struct slc_error err = SLC_ERROR_INIT;

            slc_fault_arm(SLC_FAULT_ALLOCATION, k);
            const enum slc_status status = slc_contract(&batch.problem.options, &report, &err);
            const bool over = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            if (over) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 20);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
            for (unsigned r = 0; r < RESULTS; r++) {
                char part[320];

                (void)snprintf(part, sizeof part, "%s.part", batch.paths[r]);
                CU_ASSERT_FALSE(exists(part));
                /* Results that were published before the failure are complete. */
                if (exists(batch.paths[r])) {
                    remove_store(batch.paths[r]);
                }
            }
        }
        destroy(&batch);
    }
}

static const struct slc_test tests[] = {
    {"the bytes of single runs", test_like_single_runs},
    {"a device", test_device},
    {"refusals", test_refused},
    {"failing memory", test_failing_memory},
};

SLC_SUITE(contract_batch)
{
    return slc_test_main("contract batch", tests, SLC_COUNT(tests), argc, argv);
}
