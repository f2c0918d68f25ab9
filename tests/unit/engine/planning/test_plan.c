/* Plans: every part counted, the minimum exact, the rest of the budget used where it helps. */
#include "base/memory/memory.h"
#include "cp_fixture.h"
#include "one_layout.h"
#include "slc_test.h"

#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* A store of five blocks with one tile each, full except the last. */
static void open_five_blocks(struct slc_store *store)
{
    const uint64_t dims[3] = {300, 200, 100};
    struct fixture_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    fixture_random(&tensor, 3, dims, 300000, slc_test_seed());
    fixture_store(&tensor, slc_test_folder(), "five", SLC_CODEC_PACKED, 4096, path);
    fixture_destroy(&tensor);
    memset(store, 0, sizeof *store);
    SLC_ASSERT_OK(slc_store_open(NULL, path, store, &err), &err);
    CU_ASSERT_EQUAL(slc_reader_info(store->reader)->block_count, 5);
}

static void check_sum(const struct slc_plan *plan)
{
    CU_ASSERT_EQUAL(plan->total_bytes,
                    plan->process_bytes + plan->index_bytes + plan->factor_bytes +
                        plan->output_bytes + plan->dense_bytes + plan->scratch_bytes +
                        plan->decoder_bytes + plan->slot_count * plan->slot_bytes +
                        plan->cache_bytes + plan->copies_bytes);
    CU_ASSERT_TRUE(plan->total_bytes <= plan->budget_bytes);
    CU_ASSERT_TRUE(plan->minimum_bytes <= plan->total_bytes);
    CU_ASSERT_EQUAL(plan->iteration_bytes, (uint64_t)plan->passes * plan->layouts[0].store_bytes);
    CU_ASSERT_EQUAL(plan->iteration_read_bytes,
                    plan->iteration_bytes - (uint64_t)plan->passes * plan->cache_bytes);
}

static void large_budgets_cache_everything(void)
{
    struct slc_plan_request request = fixture_request(8);
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;

    open_five_blocks(&store);
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.cached_blocks, 5);
    CU_ASSERT_EQUAL(plan.cache_bytes, plan.layouts[0].store_bytes);
    CU_ASSERT_EQUAL(plan.iteration_read_bytes, 0);
    CU_ASSERT_EQUAL(plan.slot_count, 5); /* never more than the number of blocks */
    CU_ASSERT_EQUAL(plan.passes, 3);
    CU_ASSERT_EQUAL(plan.threads, 2);
    CU_ASSERT_TRUE(plan.process_bytes > slc_memory_resident() / 2);
    CU_ASSERT_EQUAL(plan.factor_bytes, slc_matrix_footprint(SLC_F64, 300, 8) +
                                           slc_matrix_footprint(SLC_F64, 200, 8) +
                                           slc_matrix_footprint(SLC_F64, 100, 8));
    CU_ASSERT_EQUAL(plan.output_bytes, slc_matrix_footprint(SLC_F64, 300, 8));

    request.cache = false;
    request.slots = 3;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.cache_bytes, 0);
    CU_ASSERT_EQUAL(plan.cached_blocks, 0);
    CU_ASSERT_EQUAL(plan.slot_count, 3);
    slc_store_close(&store);
}

static void the_minimum_works_and_less_does_not(void)
{
    struct slc_plan_request request = fixture_request(8);
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;

    open_five_blocks(&store);
    request.memory_bytes = MIB;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_BUDGET, &err,
                     "MiB of memory or more");
    CU_ASSERT_TRUE(plan.minimum_bytes > MIB);

    SLC_ASSERT_OK(fixture_plan_beyond(store.reader, &request, 0, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.slot_count, 2);
    CU_ASSERT_EQUAL(plan.cache_bytes, 0);
    CU_ASSERT_EQUAL(plan.total_bytes, request.memory_bytes);

    SLC_ASSERT_FAILS(fixture_plan_beyond(store.reader, &request, -1, &plan, &err), SLC_ERR_BUDGET,
                     &err, "MiB of memory or more");
    slc_store_close(&store);
}

static void tight_budgets_buy_slots_then_cache(void)
{
    struct slc_plan_request request = fixture_request(8);
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t slot_bytes, read_before = UINT64_MAX;

    open_five_blocks(&store);
    request.threads = 1; /* a single strategy, so that all memory goes to slots and cache */
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    slot_bytes = plan.slot_bytes;
    for (unsigned extra = 0; extra <= 8; extra++) {
        SLC_ASSERT_OK(
            fixture_plan_beyond(store.reader, &request, (int64_t)(extra * slot_bytes), &plan, &err),
            &err);
        check_sum(&plan);
        CU_ASSERT_TRUE(plan.slot_count >= 2 && plan.slot_count <= 5);
        if (extra <= 3) {
            CU_ASSERT_EQUAL(plan.slot_count, 2 + extra);
        }
        CU_ASSERT_TRUE(plan.iteration_read_bytes <= read_before);
        read_before = plan.iteration_read_bytes;
    }
    CU_ASSERT_EQUAL(plan.cached_blocks, 5);
    slc_store_close(&store);
}

/* A budget too small for any scratch: columns of the output are divided. */
static void columns_where_scratch_does_not_fit(void)
{
    /* Modes so large that the rows of a tile exceed a window and would need sorting. */
    static const uint64_t dims[3] = {200000, 100, 100};
    struct slc_plan_request request = fixture_request(16);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_tensor tensor;
    struct slc_store store;
    struct slc_plan plan;
    char path[512];

    fixture_random(&tensor, 3, dims, 20000, slc_test_seed());
    fixture_store(&tensor, slc_test_folder(), "long", SLC_CODEC_PACKED, 4096, path);
    fixture_destroy(&tensor);
    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    request.operation = SLC_OP_MTTKRP;
    request.mode = 0;
    request.threads = 2;
    request.resident_bytes = slc_memory_resident();
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.choices[0].chosen, SLC_CONFLICT_LOCKED);
    CU_ASSERT_TRUE(plan.scratch_bytes > 0);
    request.memory_bytes = plan.minimum_bytes;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.choices[0].chosen, SLC_CONFLICT_COLUMNS);
    CU_ASSERT_EQUAL(plan.choices[0].rival, SLC_CONFLICT_AUTO);
    CU_ASSERT_EQUAL(plan.choices[0].cost_count, 3);
    CU_ASSERT_EQUAL(plan.choices[0].costs[2].conflict, SLC_CONFLICT_COLUMNS);
    CU_ASSERT_EQUAL(plan.untried[0], SLC_CONFLICT_LOCKED);
    CU_ASSERT_EQUAL(plan.scratch_bytes, 0);
    slc_store_close(&store);
}

static void schedules_follow_the_blocks(void)
{
    const uint64_t dims[3] = {300, 200, 100};
    struct slc_plan_request request = fixture_request(4);
    struct fixture_tensor tensor;
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    open_five_blocks(&store);
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.schedule, SLC_SCHEDULE_FILE); /* blocks of nearly equal size */
    slc_store_close(&store);

    fixture_random(&tensor, 3, dims, 9000, slc_test_seed());
    tensor.tile_nnz[0] = 100;
    tensor.tile_nnz[1] = 110;
    tensor.tile_nnz[2] = 1000;
    fixture_store(&tensor, slc_test_folder(), "uneven", SLC_CODEC_BLCO, 4096, path);
    fixture_destroy(&tensor);
    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.schedule, SLC_SCHEDULE_LARGEST);
    request.schedule = SLC_SCHEDULE_FILE;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.schedule, SLC_SCHEDULE_FILE);

    request.schedule = SLC_SCHEDULE_AUTO;
    request.deterministic = true;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.schedule, SLC_SCHEDULE_FILE);
    for (unsigned n = 0; n < 3; n++) {
        CU_ASSERT_EQUAL(plan.choices[n].chosen, SLC_CONFLICT_ORDERED);
    }
    request.schedule = SLC_SCHEDULE_LARGEST;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_USAGE, &err,
                     "file order");
    slc_store_close(&store);
}

static void mttkrp_leaves_its_own_factor_out(void)
{
    struct slc_plan_request request = fixture_request(8);
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;

    open_five_blocks(&store);
    request.operation = SLC_OP_MTTKRP;
    request.mode = 1;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.factor_bytes,
                    slc_matrix_footprint(SLC_F64, 300, 8) + slc_matrix_footprint(SLC_F64, 100, 8));
    CU_ASSERT_EQUAL(plan.output_bytes, slc_matrix_footprint(SLC_F64, 200, 8));
    CU_ASSERT_EQUAL(plan.dense_bytes, 0);
    CU_ASSERT_EQUAL(plan.passes, 1);
    slc_store_close(&store);
}

static void the_kept_set_has_its_size_and_is_spread(void)
{
    for (uint64_t count = 1; count <= 40; count++) {
        for (uint64_t kept = 0; kept <= count; kept++) {
            uint64_t members = 0;

            for (uint64_t b = 0; b < count; b++) {
                members += slc_plan_keeps(kept, count, b);
                /* Every prefix of the file has its share, rounded up. */
                CU_ASSERT_TRUE(members * count >= b * kept);
                CU_ASSERT_TRUE(members * count < (b + 1) * kept + count);
            }
            CU_ASSERT_EQUAL(members, kept);
        }
    }
}

static void keep_bytes_read(void *context, const struct slc_cp_iteration *iteration)
{
    uint64_t *bytes_read = context;

    bytes_read[iteration->iteration - 1] = iteration->bytes_read;
}

/* With a filled cache, each pass reads exactly the planned bytes; before, the whole file. */
static void passes_read_the_planned_bytes(void)
{
    const uint64_t dims[3] = {300, 200, 100};
    struct slc_plan_request request = fixture_request(4);
    struct slc_cp_options options = fixture_options(4, 3);
    struct fixture_tensor tensor;
    struct fixture_run run;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t bytes_read[3];
    uint64_t store_bytes = 0; /* set by the first plan */
    unsigned partly = 0;
    char path[512];

    fixture_random(&tensor, 3, dims, 60000, slc_test_seed());
    tensor.tile_nnz[0] = 900;
    tensor.tile_nnz[1] = 110;
    tensor.tile_nnz[2] = 5000;
    fixture_store(&tensor, slc_test_folder(), "read", SLC_CODEC_BLCO, 4096, path);
    fixture_destroy(&tensor);
    options.tolerance = 0;
    options.iteration = keep_bytes_read;
    options.context = bytes_read;
    request.threads = 1; /* a single strategy, so that all memory goes to the cache */
    request.slots = 2;
    for (unsigned part = 0; part <= 8; part++) {
        struct slc_cp_result result;

        SLC_ASSERT_OK(fixture_open_beyond(&run, path, &request, store_bytes * part / 8, &err),
                      &err);
        store_bytes = run.plan.layouts[0].store_bytes;
        check_sum(&run.plan);
        SLC_ASSERT_OK(
            slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &result, &err),
            &err);
        CU_ASSERT_EQUAL(bytes_read[0], store_bytes + run.plan.iteration_read_bytes / 3 * 2);
        CU_ASSERT_EQUAL(bytes_read[1], run.plan.iteration_read_bytes);
        CU_ASSERT_EQUAL(bytes_read[2], run.plan.iteration_read_bytes);
        partly += run.plan.cached_blocks > 0 && run.plan.iteration_read_bytes > 0;
        slc_cp_result_destroy(&result);
        fixture_close(&run);
    }
    CU_ASSERT_TRUE(partly >= 6);
}

static void wrong_requests_are_refused(void)
{
    const struct slc_plan_request good = fixture_request(8);
    struct slc_plan_request bad[7];
    static const char *const messages[7] = {"rank is 0", "rank is 4097", "mode 4",   "threads",
                                            "slots",     "slots",        "precision"};
    struct slc_store store;
    struct slc_plan plan;

    open_five_blocks(&store);
    for (unsigned i = 0; i < 7; i++) {
        bad[i] = good;
    }
    bad[0].rank = 0;
    bad[1].rank = 4097;
    bad[2].operation = SLC_OP_MTTKRP;
    bad[2].mode = 3;
    bad[3].threads = 1025;
    bad[4].slots = 1;
    bad[5].slots = 100000;
    bad[6].precision = 0;
    for (unsigned i = 0; i < 7; i++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_FAILS(plan_one(store.reader, &bad[i], &plan, &err), SLC_ERR_USAGE, &err,
                         messages[i]);
    }
    slc_store_close(&store);
}

static void defaults_come_from_the_machine(void)
{
    struct slc_plan_request request = fixture_request(2);
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;

    open_five_blocks(&store);
    request.memory_bytes = 0;
    request.threads = 0;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_EQUAL(plan.budget_bytes, slc_memory_total() / 5 * 4);
    CU_ASSERT_TRUE(plan.threads >= 1);
    CU_ASSERT_EQUAL(plan.request.threads, plan.threads);
    slc_store_close(&store);
}

static void factors_beyond_the_address_space(void)
{
    const uint64_t dims[2] = {SLC_MAX_MODE_LENGTH, 3};
    struct slc_plan_request request = fixture_request(4096);
    struct fixture_tensor tensor;
    struct slc_store store;
    struct slc_plan plan;
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    /* One nonzero: the indices of two would differ by more than the extent of a tile can. */
    fixture_random(&tensor, 2, dims, 1, slc_test_seed());
    fixture_store(&tensor, slc_test_folder(), "long", SLC_CODEC_PACKED, 4096, path);
    fixture_destroy(&tensor);
    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_BUDGET, &err,
                     "addressed");
    slc_store_close(&store);
}

/* Replicas are planned if everything fits next to the store, and never if they are disabled. */
static void replicas_use_the_rest(void)
{
    struct slc_plan_request request = fixture_request(8);
    struct slc_store store;
    struct slc_plan plan, without;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wanted;

    open_five_blocks(&store);
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    check_sum(&plan);
    CU_ASSERT_TRUE(plan.copies_bytes > 300000 * UINT64_C(20) * 3);
    CU_ASSERT_EQUAL(plan.copies_wanted_bytes, 0);
    request.copies = SLC_COPIES_NEVER;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &without, &err), &err);
    check_sum(&without);
    CU_ASSERT_EQUAL(without.copies_bytes, 0);
    CU_ASSERT_EQUAL(without.copies_wanted_bytes, 0);
    wanted = plan.copies_bytes;
    /* Subtract the process, which may have grown between the two plans. */
    CU_ASSERT_EQUAL(without.total_bytes - without.process_bytes + plan.copies_bytes,
                    plan.total_bytes - plan.process_bytes);

    request.copies = SLC_COPIES_ALWAYS;
    request.memory_bytes = 1 + without.total_bytes;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_BUDGET, &err,
                     "replicas");
    slc_error_clear(&err);
    request.copies = SLC_COPIES_AUTO;
    request.memory_bytes = without.total_bytes;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.copies_bytes, 0);
    CU_ASSERT_EQUAL(plan.copies_wanted_bytes, wanted);
    CU_ASSERT_TRUE(plan.copies_room_bytes < wanted);

    request.memory_bytes = 0;
    request.deterministic = true;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.copies_bytes, 0);
    request.copies = SLC_COPIES_ALWAYS;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_USAGE, &err,
                     "deterministic");
    slc_error_clear(&err);
    request.deterministic = false;
    request.cache = false;
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_USAGE, &err,
                     "caching is disabled");
    request.copies = SLC_COPIES_AUTO;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.copies_bytes, 0);
    request.copies = (enum slc_copies)3;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(plan_one(store.reader, &request, &plan, &err), SLC_ERR_USAGE, &err, "always");
    slc_error_clear(&err);
    request.cache = true;
    request.copies = SLC_COPIES_ALWAYS;
    request.operation = SLC_OP_MTTKRP;
    SLC_ASSERT_OK(plan_one(store.reader, &request, &plan, &err), &err);
    CU_ASSERT_EQUAL(plan.copies_bytes, 0);
    slc_store_close(&store);
}

/* Requested replicas are part of the minimum, whatever kernels a larger budget would use. */
static void the_minimum_with_copies_works(void)
{
    static const uint32_t ranks[] = {1, 16, 333};
    struct slc_store store;

    open_five_blocks(&store);
    for (unsigned i = 0; i < 3 * SLC_COUNT(ranks); i++) {
        struct slc_plan_request request = fixture_request(ranks[i / 3]);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_plan plan;

        request.threads = 1 + 16 * (i % 3);
        request.copies = SLC_COPIES_ALWAYS;
        SLC_ASSERT_OK(fixture_plan_beyond(store.reader, &request, 0, &plan, &err), &err);
        check_sum(&plan);
        CU_ASSERT_TRUE(plan.copies_bytes > 0);
        CU_ASSERT_EQUAL(plan.minimum_bytes, request.memory_bytes);
        SLC_ASSERT_FAILS(fixture_plan_beyond(store.reader, &request, -1, &plan, &err),
                         SLC_ERR_BUDGET, &err, "replicas");
    }
    slc_store_close(&store);
}

static void copies_have_names(void)
{
    enum slc_copies copies = SLC_COPIES_AUTO;

    CU_ASSERT_TRUE(slc_copies_parse("always", &copies));
    CU_ASSERT_EQUAL(copies, SLC_COPIES_ALWAYS);
    CU_ASSERT_TRUE(slc_copies_parse("never", &copies));
    CU_ASSERT_EQUAL(copies, SLC_COPIES_NEVER);
    CU_ASSERT_FALSE(slc_copies_parse("sometimes", &copies));
    CU_ASSERT_STRING_EQUAL(slc_copies_name(SLC_COPIES_AUTO), "auto");
}

static void schedules_have_names(void)
{
    enum slc_schedule schedule = SLC_SCHEDULE_AUTO;

    CU_ASSERT_TRUE(slc_schedule_parse("largest", &schedule));
    CU_ASSERT_EQUAL(schedule, SLC_SCHEDULE_LARGEST);
    CU_ASSERT_TRUE(slc_schedule_parse("file", &schedule));
    CU_ASSERT_EQUAL(schedule, SLC_SCHEDULE_FILE);
    CU_ASSERT_TRUE(slc_schedule_parse("auto", &schedule));
    CU_ASSERT_EQUAL(schedule, SLC_SCHEDULE_AUTO);
    CU_ASSERT_FALSE(slc_schedule_parse("Largest", &schedule));
    CU_ASSERT_FALSE(slc_schedule_parse("", &schedule));
    CU_ASSERT_STRING_EQUAL(slc_schedule_name(SLC_SCHEDULE_LARGEST), "largest");
}

SLC_SUITE(plan)
{
    static const struct slc_test tests[] = {
        {"large budgets cache everything", large_budgets_cache_everything},
        {"the minimum works and one byte less does not", the_minimum_works_and_less_does_not},
        {"tight budgets buy slots first, then cache", tight_budgets_buy_slots_then_cache},
        {"columns where scratch does not fit", columns_where_scratch_does_not_fit},
        {"the schedule follows the blocks", schedules_follow_the_blocks},
        {"an MTTKRP needs no factor of its own mode", mttkrp_leaves_its_own_factor_out},
        {"the kept set has its size and is spread", the_kept_set_has_its_size_and_is_spread},
        {"passes read the planned bytes", passes_read_the_planned_bytes},
        {"wrong requests are refused", wrong_requests_are_refused},
        {"defaults come from the machine", defaults_come_from_the_machine},
        {"factors beyond the address space", factors_beyond_the_address_space},
        {"replicas per mode use the remaining memory", replicas_use_the_rest},
        {"the minimum with copies works", the_minimum_with_copies_works},
        {"schedules by name", schedules_have_names},
        {"copies by name", copies_have_names},
    };

    return slc_test_main("engine: plan", tests, SLC_COUNT(tests), argc, argv);
}
