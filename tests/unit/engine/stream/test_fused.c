/* Decompositions whose passes update two modes: the factors of plain passes in the same order of
 * modes, for 3 to 5 modes, from sorted layouts and from blco alone; as many passes and bytes as
 * pairs of modes need; bitwise repeatable for any number of threads if requested; a model that fits
 * when a pass is stopped; and the plans that choose such passes. */
#include "sorted_fixture.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS = 4, TARGET_NNZ = 3600 };

static unsigned iterations(void)
{
    return slc_test_quick() ? 3 : 10;
}

/* A tensor of rank COMPONENTS on random coordinates, so that Gram matrices are well-conditioned. */
struct low_rank {
    char path[512];
    struct slc_made_tensor tensor;
};

static void make_low_rank(struct low_rank *made,
                          const char *name,
                          unsigned order,
                          const uint64_t *dims,
                          uint64_t nnz,
                          uint32_t sorted)
{
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(made->path, sizeof made->path, "%s/%s.slc", slc_test_folder(), name);
    slc_made_tensor_create(&made->tensor, order, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed());
    for (uint64_t i = 0; i < made->tensor.nnz; i++) {
        const uint64_t hi = made->tensor.key_hi != NULL ? made->tensor.key_hi[i] : 0;
        uint64_t coords[SLC_MAX_ORDER];
        double sum = 0.0;

        slc_key_decode(&made->tensor.keys, slc_key_join(made->tensor.key_lo[i], hi), coords);
        for (unsigned r = 0; r < COMPONENTS; r++) {
            double product = 1.0;

            for (unsigned n = 0; n < order; n++) {
                product *= slc_random_f64(11 + n, r, coords[n]);
            }
            sum += product;
        }
        made->tensor.values[i] = sum;
    }
    SLC_ASSERT_OK(
        slc_made_store_write(&made->tensor, NULL, made->path, SLC_CODEC_PACKED, 4096, &err), &err);
    for (unsigned n = 0; n < order; n++) {
        if ((sorted >> n & 1U) != 0) {
            SLC_ASSERT_OK(slc_made_store_add_sorted(&made->tensor, made->path, n, TARGET_NNZ,
                                                    SLC_CODEC_PACKED, 4096, &err),
                          &err);
        }
    }
}

/* Result of a run of some iterations. */
struct outcome {
    struct slc_cp_result result;
    struct slc_plan plan;
    uint64_t passes, bytes_read; /* passes and bytes of all iterations */
    uint64_t later_bytes;        /* bytes of the last two iterations */
};

struct counts {
    struct outcome *outcome;
    unsigned count;
};

static void count_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct counts *counts = context;

    counts->outcome->passes += iteration->passes;
    counts->outcome->bytes_read += iteration->bytes_read;
    if (iteration->iteration + 2 > counts->count) {
        counts->outcome->later_bytes += iteration->bytes_read;
    }
}

static void run_cpd(const char *path,
                    const struct slc_plan_request *request,
                    unsigned count,
                    struct outcome *outcome)
{
    struct slc_cp_options options = fixture_options(request->rank, count);
    struct counts counts = {outcome, count};
    struct slc_error err = SLC_ERROR_INIT;
    struct sorted_run run;

    memset(outcome, 0, sizeof *outcome);
    options.deterministic = request->deterministic;
    options.iteration = count_iteration;
    options.context = &counts;
    SLC_ASSERT_OK(plan_run(&run, path, request, &err), &err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
    outcome->plan = run.plan;
    SLC_ASSERT_OK(slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options,
                             &outcome->result, &err),
                  &err);
    close_run(&run);
}

/* The norm of the difference of two factors, relative to that of the second. */
static double distance(const struct slc_matrix *a, const struct slc_matrix *b)
{
    double difference = 0.0, size = 0.0;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t r = 0; r < a->cols; r++) {
            const double x = slc_matrix_get(a, i, r);
            const double y = slc_matrix_get(b, i, r);

            difference += (x - y) * (x - y);
            size += y * y;
        }
    }
    return sqrt(difference / size);
}

static void check_equal(const struct outcome *a, const struct outcome *b, double tolerance)
{
    CU_ASSERT_EQUAL(a->result.iterations, b->result.iterations);
    CU_ASSERT_TRUE(fabs(a->result.fit - b->result.fit) <= tolerance);
    for (unsigned n = 0; n < a->result.order; n++) {
        CU_ASSERT_TRUE(distance(&a->result.factors[n], &b->result.factors[n]) <= tolerance);
    }
}

static struct slc_plan_request request_of(enum slc_passes passes)
{
    struct slc_plan_request request = fixture_request(COMPONENTS);

    request.copies = SLC_COPIES_NEVER;
    request.cache = false;
    request.passes = passes;
    return request;
}

/* Runs fused and plain passes in the mode order of the fused plan. */
static void run_both(const char *path,
                     struct slc_plan_request request,
                     struct outcome *fused,
                     struct outcome *plain)
{
    request.passes = SLC_PASSES_FUSED;
    run_cpd(path, &request, iterations(), fused);
    CU_ASSERT_TRUE(fused->plan.fusion.modes != 0);
    CU_ASSERT_EQUAL(fused->plan.fusion.reason, SLC_FUSION_TAKEN);
    memcpy(request.mode_order, fused->plan.mode_order, sizeof request.mode_order);
    request.mode_order_set = true;
    request.passes = SLC_PASSES_PLAIN;
    run_cpd(path, &request, iterations(), plain);
    CU_ASSERT_EQUAL(plain->plan.fusion.modes, 0);
    CU_ASSERT_EQUAL(plain->passes, (uint64_t)iterations() * fused->result.order);
}

static void destroy_both(struct outcome *fused, struct outcome *plain)
{
    slc_cp_result_destroy(&fused->result);
    slc_cp_result_destroy(&plain->result);
}

static const uint64_t lengths[] = {90, 70, 80, 65, 75};

/* An iteration makes N/2 passes with sorted layouts of all modes, ceil(N/2) with those of every
 * second mode, and N - 1 with one sorted layout. */
static void same_factors_from_sorted_layouts(void)
{
    for (unsigned order = 3; order <= 5; order++) {
        const uint32_t all = (UINT32_C(1) << order) - 1;
        const uint32_t sets[] = {all, 0x55 & (all >> 1), 1U << 1};

        for (unsigned s = 0; s < SLC_COUNT(sets); s += slc_test_quick() ? 2 : 1) {
            struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
            struct outcome fused, plain;
            struct low_rank made;
            char name[32];
            double passes = s == 2 ? order - 1 : (order + 1) / 2;

            (void)snprintf(name, sizeof name, "low%u%u", order, s);
            make_low_rank(&made, name, order, lengths, slc_test_threads_only() ? 17000 : 24000,
                          sets[s]);
            request.threads = 1 + (order + s) % 3;
            run_both(made.path, request, &fused, &plain);
            passes = s == 0 ? order / 2.0 : passes;
            CU_ASSERT_DOUBLE_EQUAL(fused.plan.passes, passes, 0);
            check_equal(&fused, &plain, 1e-8);
            /* The last iteration leaves no open pass, so it may need half a pass more. */
            CU_ASSERT_TRUE((double)fused.passes <= iterations() * passes + 0.5);
            CU_ASSERT_TRUE((double)fused.passes >= iterations() * passes);
            CU_ASSERT_TRUE(fused.plan.iteration_bytes < plain.plan.iteration_bytes);
            if (order % 2 == 0 || s > 0) {
                CU_ASSERT_EQUAL(fused.bytes_read, iterations() * fused.plan.iteration_bytes);
                CU_ASSERT_EQUAL(fused.later_bytes, 2 * fused.plan.iteration_read_bytes);
            }
            destroy_both(&fused, &plain);
            slc_made_tensor_destroy(&made.tensor);
        }
    }
}

/* With only the layout blco, whose scan completes the rows of a large mode early, an iteration
 * takes N - 1 passes. */
static void same_factors_from_blco(void)
{
    static const uint64_t long_modes[] = {30, 9000, 20, 25, 15};

    /* There are so many nonzeros that the rows form several ranges. */
    for (unsigned order = 3; order <= (slc_test_quick() ? 3 : 5); order++) {
        struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
        struct outcome fused, plain;
        struct low_rank made;
        char name[32];

        (void)snprintf(name, sizeof name, "long%u", order);
        make_low_rank(&made, name, order, long_modes, slc_test_threads_only() ? 270000 : 400000, 0);
        request.threads = 1 + order % 3;
        run_both(made.path, request, &fused, &plain);
        CU_ASSERT_EQUAL(fused.plan.fusion.modes, 1U << 1);
        CU_ASSERT_TRUE(fused.plan.fusion.ranges[1] >= 2);
        check_equal(&fused, &plain, 1e-8);
        CU_ASSERT_EQUAL(fused.passes, (uint64_t)iterations() * (order - 1));
        CU_ASSERT_EQUAL(fused.bytes_read,
                        (uint64_t)iterations() * (order - 1) * fused.plan.layouts[0].store_bytes);
        destroy_both(&fused, &plain);
        slc_made_tensor_destroy(&made.tensor);
    }
}

/* The same for f32, for cached blocks, and for rows split over partitions. */
static void other_ways(void)
{
    static const uint64_t short_mode[] = {100, 3, 80};
    struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
    struct outcome fused, plain;
    struct low_rank made;

    make_low_rank(&made, "ways", 3, short_mode, 24000, 1U << 0 | 1U << 1);
    for (unsigned way = 0; way < 4; way++) {
        request.precision = way % 2 == 0 ? SLC_F64 : SLC_F32;
        request.cache = way >= 2;
        request.schedule = way == 1 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
        run_both(made.path, request, &fused, &plain);
        check_equal(&fused, &plain, way % 2 == 0 ? 1e-8 : 2e-3);
        destroy_both(&fused, &plain);
    }
    slc_made_tensor_destroy(&made.tensor);
}

/* The same bits for any threads, I/O and budget; the mode order is that of plain passes. */
static void same_bits_when_deterministic(void)
{
    static const unsigned threads[] = {1, 2, 5};
    struct outcome first, other;
    struct low_rank made;

    make_low_rank(&made, "bits", 4, lengths, 24000, 0xF);
    for (unsigned t = 0; t < SLC_COUNT(threads) * 2; t += slc_test_quick() ? 3 : 1) {
        struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
        struct outcome *outcome = t == 0 ? &first : &other;

        request.deterministic = true;
        request.threads = threads[t / 2];
        request.cache = t % 2 == 1;
        run_cpd(made.path, &request, 4, outcome);
        CU_ASSERT_EQUAL(outcome->plan.fusion.modes, 0xF);
        CU_ASSERT_EQUAL(outcome->plan.fusion.choices[1].chosen, SLC_CONFLICT_ORDERED);
        for (unsigned n = 0; n < 4; n++) {
            CU_ASSERT_EQUAL(outcome->result.mode_order[n], n);
            CU_ASSERT_EQUAL(memcmp(first.result.factors[n].buffer.data,
                                   outcome->result.factors[n].buffer.data,
                                   first.result.factors[n].rows * first.result.factors[n].pitch *
                                       sizeof(double)),
                            0);
        }
        if (t > 0) {
            slc_cp_result_destroy(&other.result);
        }
    }
    slc_cp_result_destroy(&first.result);
    slc_made_tensor_destroy(&made.tensor);
}

/* A table of file operations that sets a flag with the k-th read. */
struct stopper {
    struct slc_files table;
    const struct slc_files *inner;
    atomic_uint reads;
    unsigned stop_at;
    volatile int stop;
};

static int64_t stopping_read(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    struct stopper *stopper = self;

    if (atomic_fetch_add(&stopper->reads, 1) + 1 == stopper->stop_at) {
        __atomic_store_n(&stopper->stop, 1, __ATOMIC_RELAXED);
    }
    return stopper->inner->read_at(stopper->inner->self, fd, data, bytes, offset);
}

/* 1 - ||X - M|| / ||X|| over the nonzeros alone, and the model's norm outside them. */
static double fit_of(const struct low_rank *made, const struct slc_cp_result *result)
{
    double inner = 0.0, model = 0.0, norm = 0.0;

    for (uint64_t i = 0; i < made->tensor.nnz; i++) {
        const uint64_t hi = made->tensor.key_hi != NULL ? made->tensor.key_hi[i] : 0;
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&made->tensor.keys, slc_key_join(made->tensor.key_lo[i], hi), coords);
        norm += made->tensor.values[i] * made->tensor.values[i];
        for (uint32_t r = 0; r < result->rank; r++) {
            double product = result->lambda[r];

            for (unsigned n = 0; n < result->order; n++) {
                product *= slc_matrix_get(&result->factors[n], coords[n], r);
            }
            inner += made->tensor.values[i] * product;
        }
    }
    for (uint32_t r = 0; r < result->rank; r++) {
        for (uint32_t s = 0; s < result->rank; s++) {
            double product = result->lambda[r] * result->lambda[s];

            for (unsigned n = 0; n < result->order; n++) {
                double gram = 0.0;

                for (uint64_t i = 0; i < result->factors[n].rows; i++) {
                    gram += slc_matrix_get(&result->factors[n], i, r) *
                            slc_matrix_get(&result->factors[n], i, s);
                }
                product *= gram;
            }
            model += product;
        }
    }
    return 1.0 - sqrt(fmax(norm + model - 2.0 * inner, 0.0) / norm);
}

/* Stopped at any read, a run leaves a model: that of its last iteration, or one with at least its
 * fit, with some rows updated and others not. */
static void stops_leave_a_model(void)
{
    struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
    struct low_rank made;
    unsigned between = 0;

    make_low_rank(&made, "stops", 3, lengths, 24000, 7);
    request.threads = 2;
    request.slots = 3;
    for (unsigned at = 1; at < 60; at += slc_test_quick() ? 11 : 2) {
        struct stopper stopper = {.table = *slc_quick_files(), .inner = slc_quick_files()};
        struct slc_cp_options options = fixture_options(COMPONENTS, 3);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_cp_result result;
        struct sorted_run run;
        double fit;

        stopper.table.self = &stopper;
        stopper.table.read_at = stopping_read;
        options.stop = &stopper.stop;
        SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
        CU_ASSERT_TRUE_FATAL(start_run(&run, &stopper.table));
        stopper.stop_at = atomic_load(&stopper.reads) + at;
        SLC_ASSERT_OK(
            slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &result, &err),
            &err);
        fit = fit_of(&made, &result);
        /* No fit is reported before the first iteration is complete. */
        CU_ASSERT_TRUE(result.iterations == 0 || fit >= result.fit - 1e-9);
        between +=
            result.reason == SLC_STOP_SIGNAL && result.iterations > 0 && fit > result.fit + 1e-9;
        slc_cp_result_destroy(&result);
        close_run(&run);
    }
    CU_ASSERT_TRUE(between > 0);
    slc_made_tensor_destroy(&made.tensor);
}

static void no_memory(void)
{
    struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
    const struct slc_cp_options options = fixture_options(COMPONENTS, 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct low_rank made;
    struct sorted_run run;
    uint64_t refused = 0;

    make_low_rank(&made, "memory", 3, lengths, 20000, 7);
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
    for (uint64_t k = 1;; k++) {
        struct slc_cp_result result;
        enum slc_status status;

        slc_error_clear(&err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status =
            slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &result, &err);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (status == SLC_OK) {
            slc_cp_result_destroy(&result);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        refused++;
    }
    CU_ASSERT_TRUE(refused > 10);
    close_run(&run);
    slc_made_tensor_destroy(&made.tensor);
}

static struct slc_plan planned(const char *path, const struct slc_plan_request *request)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct sorted_run run;

    SLC_ASSERT_OK(plan_run(&run, path, request, &err), &err);
    close_run(&run);
    return run.plan;
}

/* Plans have fused passes if these read less, and state the reason for fused or plain passes. */
static void plans_say_why(void)
{
    struct slc_plan_request request = request_of(SLC_PASSES_AUTO);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan plan;
    struct low_rank made, none;
    struct sorted_run run;

    make_low_rank(&made, "why", 3, lengths, 24000, 7);
    plan = planned(made.path, &request);
    CU_ASSERT_EQUAL(plan.fusion.reason, SLC_FUSION_TAKEN);
    CU_ASSERT_EQUAL(plan.fusion.modes, 7);
    CU_ASSERT_EQUAL(plan.fusion.seconds, 7);
    CU_ASSERT_DOUBLE_EQUAL(plan.passes, 1.5, 0);
    CU_ASSERT_TRUE(plan.iteration_read_bytes < plan.fusion.other_read_bytes);
    CU_ASSERT_TRUE(plan.slot_count >= plan.fusion.range_blocks[0]);
    CU_ASSERT_TRUE(plan.total_bytes <= plan.budget_bytes);

    request.cache = true; /* all blocks are cached, so fused passes gain nothing */
    plan = planned(made.path, &request);
    CU_ASSERT_EQUAL(plan.fusion.reason, SLC_FUSION_NO_GAIN);
    CU_ASSERT_EQUAL(plan.fusion.modes, 0);
    CU_ASSERT_EQUAL(plan.fusion.other_read_bytes, 0);

    request.copies = SLC_COPIES_AUTO;
    CU_ASSERT_EQUAL(planned(made.path, &request).fusion.reason, SLC_FUSION_COPIES);

    request = request_of(SLC_PASSES_AUTO);
    request.deterministic = true;
    CU_ASSERT_EQUAL(planned(made.path, &request).fusion.reason, SLC_FUSION_FIXED_BITS);

    request = request_of(SLC_PASSES_PLAIN);
    CU_ASSERT_EQUAL(planned(made.path, &request).fusion.reason, SLC_FUSION_NOT_ASKED);

    request = request_of(SLC_PASSES_AUTO);
    request.threads = 64; /* a layout has fewer ranges */
    CU_ASSERT_EQUAL(planned(made.path, &request).fusion.reason, SLC_FUSION_FEW_RANGES);

    /* This tensor has too many blocks per row of a mode for two slots. */
    make_low_rank(&none, "none", 3, (const uint64_t[]){100, 100, 100}, 500000, 0);
    request = request_of(SLC_PASSES_AUTO);
    request.slots = 2;
    CU_ASSERT_EQUAL(planned(none.path, &request).fusion.reason, SLC_FUSION_NO_RANGES);
    request.passes = SLC_PASSES_FUSED;
    SLC_ASSERT_FAILS(plan_run(&run, none.path, &request, &err), SLC_ERR_USAGE, &err,
                     "no pass can update two modes");
    close_run(&run);
    slc_made_tensor_destroy(&made.tensor);
    slc_made_tensor_destroy(&none.tensor);
}

/* Layouts of two modes of four, 1 and 2: in the natural order they would share a pass. */
static void plans_choose_an_order(void)
{
    struct slc_plan_request request = request_of(SLC_PASSES_AUTO);
    struct low_rank made;
    struct slc_plan plan;
    static const unsigned want[] = {0, 2, 1, 3};

    make_low_rank(&made, "order", 4, lengths, 24000, 1U << 0 | 1U << 1);
    plan = planned(made.path, &request);
    CU_ASSERT_DOUBLE_EQUAL(plan.passes, 2.0, 0);
    for (unsigned k = 0; k < 4; k++) {
        CU_ASSERT_EQUAL(plan.mode_order[k], want[k]);
    }
    for (unsigned k = 0; k < 4; k++) {
        request.mode_order[k] = k;
    }
    request.mode_order_set = true;
    plan = planned(made.path, &request);
    CU_ASSERT_DOUBLE_EQUAL(plan.passes, 3.0, 0);
    slc_made_tensor_destroy(&made.tensor);
}

static void names_and_refusals(void)
{
    struct slc_plan_request request = request_of(SLC_PASSES_FUSED);
    struct slc_cp_options options = fixture_options(COMPONENTS, 1);
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_passes passes = SLC_PASSES_AUTO;
    struct slc_cp_result result;
    struct low_rank made;
    struct sorted_run run;

    CU_ASSERT_TRUE(slc_passes_parse("fused", &passes));
    CU_ASSERT_EQUAL(passes, SLC_PASSES_FUSED);
    CU_ASSERT_STRING_EQUAL(slc_passes_name(SLC_PASSES_PLAIN), "plain");
    CU_ASSERT_FALSE(slc_passes_parse("both", &passes));

    make_low_rank(&made, "refused", 3, lengths, 20000, 7);
    request.copies = SLC_COPIES_ALWAYS;
    request.cache = true;
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_USAGE, &err,
                     "replicas make no passes");
    close_run(&run);
    slc_error_clear(&err);

    request = request_of(SLC_PASSES_FUSED);
    request.mode_order_set = true; /* the order names mode 1 three times */
    SLC_ASSERT_FAILS(plan_run(&run, made.path, &request, &err), SLC_ERR_USAGE, &err,
                     "the mode order");
    close_run(&run);
    slc_error_clear(&err);

    /* A run whose mode order differs from the plan's, which determined the passes. */
    request.mode_order_set = false;
    SLC_ASSERT_OK(plan_run(&run, made.path, &request, &err), &err);
    CU_ASSERT_TRUE_FATAL(start_run(&run, NULL));
    options.mode_order_set = true;
    for (unsigned k = 0; k < 3; k++) {
        options.mode_order[k] = 2 - k;
    }
    SLC_ASSERT_FAILS(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &result, &err),
        SLC_ERR_USAGE, &err, "a different order");
    close_run(&run);
    slc_made_tensor_destroy(&made.tensor);
}

static const struct slc_test tests[] = {
    {"the factors of plain passes, from sorted layouts", same_factors_from_sorted_layouts},
    {"the factors of plain passes, from blco", same_factors_from_blco},
    {"f32, cached blocks, split rows", other_ways},
    {"the same bits for any threads", same_bits_when_deterministic},
    {"stops leave a model", stops_leave_a_model},
    {"no memory", no_memory},
    {"plans say why", plans_say_why},
    {"plans choose an order of modes", plans_choose_an_order},
    {"names, and errors", names_and_refusals},
};

SLC_SUITE(fused)
{
    return slc_test_main("engine fused", tests, SLC_COUNT(tests), argc, argv);
}
