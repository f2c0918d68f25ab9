/* MTTKRPs over passes in parts: one by one, and two in a pass. A pass interrupted between two parts
 * and resumed by another stream and device, with other threads and another I/O method, yields the
 * bits of an uninterrupted pass with strategies that guarantee bits, otherwise the same within
 * rounding, for any split into parts. */
#include "sorted_fixture.h"

#include "base/random.h"
#include "engine/stream/fused.h"
#include "engine/stream/mttkrp.h"
#include "kept_state.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, TILE_NNZ = 900, NNZ = 30000, PARTITION_NNZ = 2500, BLOCK_BYTES = 4096 };

/* Rows of mode 1 span several partitions each, and partitions have several blocks. */
static const uint64_t dims[MODES] = {300, 4, 90};

/* A store with blco.blk and layouts sorted by modes 0 and 1. */
static void make_store(struct sorted_store *made, enum slc_codec codec)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(made, 0, sizeof *made);
    (void)snprintf(made->path, sizeof made->path, "%s/codec%d.slc", slc_test_folder(), (int)codec);
    slc_made_tensor_create(&made->tensor, MODES, dims, NNZ, SLC_MADE_DOUBLES, slc_test_seed());
    made->tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(slc_made_store_write(&made->tensor, NULL, made->path, codec, BLOCK_BYTES, &err),
                  &err);
    for (unsigned n = 0; n < 2; n++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&made->tensor, made->path, n, PARTITION_NNZ, codec,
                                                BLOCK_BYTES, &err),
                      &err);
    }
}

/* Makes factors of `type`. */
static void make_factors(struct slc_matrix factors[MODES], enum slc_value_type type)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&factors[n], type, dims[n], RANK, &err), &err);
        for (uint64_t i = 0; i < dims[n] * RANK; i++) {
            slc_matrix_set(&factors[n], i / RANK, (uint32_t)(i % RANK),
                           slc_random_f64(7, n, i) - 0.5);
        }
    }
}

static void destroy_factors(struct slc_matrix factors[MODES])
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&factors[n]);
    }
}

static uint64_t bytes_of(const struct slc_matrix *matrix)
{
    return matrix->rows * slc_matrix_row_bytes(matrix);
}

static bool same_bits(const struct slc_matrix *a, const struct slc_matrix *b)
{
    return bytes_of(a) == bytes_of(b) && memcmp(a->buffer.data, b->buffer.data, bytes_of(a)) == 0;
}

/* The largest difference of elements, over the largest element. */
static double distance(const struct slc_matrix *a, const struct slc_matrix *b)
{
    double difference = 0.0, largest = 0.0;

    for (uint64_t i = 0; i < a->rows * RANK; i++) {
        const double x = slc_matrix_get(a, i / RANK, (uint32_t)(i % RANK));
        const double y = slc_matrix_get(b, i / RANK, (uint32_t)(i % RANK));

        difference = fmax(difference, fabs(x - y));
        largest = fmax(largest, fabs(y));
    }
    return difference / largest;
}

/* Splits a pass, and interrupts it at a chosen point. */
struct cutter {
    struct slc_pass_cuts cuts;
    struct slc_backend *backend[2]; /* one backend, or two in a pass */
    uint64_t most;                  /* blocks or ranges per part; 0: all */
    uint64_t draw;                  /* 0: parts have `most`; otherwise random numbers up to it */
    bool leaves;                    /* true: interrupts the pass after every part */
    uint64_t left_at;               /* position of the interruption; 0: none */
    unsigned parts;
    struct slc_kept_state kept[2];
};

static uint64_t part_end(void *context, uint64_t first, uint64_t count)
{
    struct cutter *cutter = context;
    uint64_t blocks = cutter->most;

    if (cutter->draw != 0) {
        blocks = 1 + slc_random_below(slc_test_seed(), cutter->draw, first, cutter->most);
    }
    cutter->parts++;
    return blocks == 0 || first + blocks > count ? count : first + blocks;
}

static enum slc_status between(void *context, uint64_t position, struct slc_error *err)
{
    struct cutter *cutter = context;

    if (!cutter->leaves) {
        return SLC_OK;
    }
    for (unsigned b = 0; b < 2 && cutter->backend[b] != NULL; b++) {
        slc_kept_state_take(&cutter->kept[b], cutter->backend[b]);
    }
    cutter->left_at = position;
    return slc_fail(err, SLC_ERR_INTERRUPTED, "left at %u", (unsigned)position);
}

static enum slc_status go_on(void *context, struct slc_error *err)
{
    struct cutter *cutter = context;
    enum slc_status status = SLC_OK;

    for (unsigned b = 0; b < 2 && cutter->backend[b] != NULL && status == SLC_OK; b++) {
        status = slc_kept_state_give(&cutter->kept[b], cutter->backend[b], err);
        slc_kept_state_free(&cutter->kept[b]);
    }
    return status;
}

static void cutter_init(struct cutter *cutter, unsigned number)
{
    memset(cutter, 0, sizeof *cutter);
    cutter->cuts = (struct slc_pass_cuts){
        .end = part_end, .between = between, .resume = go_on, .context = cutter};
    cutter->most = (const uint64_t[]){1, 4, 9, 2}[number % 4];
    cutter->draw = number % 4 < 1 ? 0 : number;
    cutter->leaves = number % 2 == 0;
}

/* Describes how one mode is computed, but not how its pass is split. */
struct way {
    unsigned mode;
    enum slc_layout_choice layouts;
    enum slc_conflict conflict; /* AUTO: the strategy of the plan */
    enum slc_value_type type;
    bool same_bits;
};

static struct slc_plan_request request_of(const struct way *way, unsigned variant)
{
    struct slc_plan_request request = variant_request(variant, way->mode);

    request.layouts = way->layouts;
    request.precision = way->type;
    request.threads = way->conflict == SLC_CONFLICT_DIRECT ? 1 : 1 + variant % 3;
    request.deterministic = way->same_bits && way->conflict == SLC_CONFLICT_AUTO;
    request.schedule = request.deterministic ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
    return request;
}

/* Opens everything for a variant; returns false if io_uring is unavailable. */
static bool open_way(struct sorted_run *run,
                     const struct sorted_store *made,
                     const struct way *way,
                     unsigned variant)
{
    const struct slc_plan_request request = request_of(way, variant);
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(plan_run(run, made->path, &request, &err), &err);
    if (variant % 4 < 2 && request.cache) {
        keep_some(run, run->plan.mode_layout[way->mode]);
    }
    return start_run(run, NULL);
}

/* Makes one call, which ends at the end of the pass or at an interruption. */
static enum slc_status compute(struct sorted_run *run,
                               const struct way *way,
                               const struct slc_matrix factors[MODES],
                               struct cutter *cutter,
                               struct slc_matrix *output,
                               struct slc_error *err)
{
    struct slc_mttkrp_job job = {.order = MODES,
                                 .mode = way->mode,
                                 .rank = RANK,
                                 .nnz = run->store.manifest.nnz,
                                 .workers = run->plan.threads,
                                 .deterministic = run->plan.request.deterministic,
                                 .partitions = run->plan.partitions[way->mode],
                                 .conflict = way->conflict,
                                 .output = output};

    if (way->conflict == SLC_CONFLICT_AUTO) {
        job.conflict = run->plan.choices[way->mode].chosen;
    }
    for (unsigned n = 0; n < MODES; n++) {
        job.factors[n] = &factors[n];
    }
    memset(output->buffer.data, 0x55, bytes_of(output)); /* these contents must not matter */
    cutter->backend[0] = run->backend;
    return slc_mttkrp_stream_parts(run->stream, run->plan.mode_layout[way->mode], run->backend,
                                   &job, &cutter->cuts, NULL, NULL, NULL, err);
}

/* A whole pass, split according to its number; after each interruption another variant resumes
 * it. */
static void compute_in_parts(const struct sorted_store *made,
                             const struct way *way,
                             const struct slc_matrix factors[MODES],
                             unsigned number,
                             struct slc_matrix *output)
{
    unsigned variant = number;
    enum slc_status status;
    struct cutter cutter;

    cutter_init(&cutter, number);
    do {
        struct slc_error err = SLC_ERROR_INIT;
        struct sorted_run run;

        while (!open_way(&run, made, way, variant)) {
            close_run(&run);
            variant++;
        }
        status = compute(&run, way, factors, &cutter, output, &err);
        if (status == SLC_OK) {
            CU_ASSERT_TRUE(cutter.parts > 3);
        } else {
            SLC_ASSERT_FAILS(status, SLC_ERR_INTERRUPTED, &err, "left at");
            cutter.cuts.first = cutter.left_at;
        }
        close_run(&run);
        variant += 7; /* another I/O method, other threads, other blocks kept */
    } while (status != SLC_OK);
}

static void check_way(const struct sorted_store *made, const struct way *way, unsigned numbers)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factors[MODES], whole, output;
    struct cutter uncut;
    struct sorted_run run;

    make_factors(factors, way->type);
    SLC_ASSERT_OK(slc_matrix_create(&whole, way->type, dims[way->mode], RANK, &err), &err);
    SLC_ASSERT_OK(slc_matrix_create(&output, way->type, dims[way->mode], RANK, &err), &err);
    cutter_init(&uncut, 1);
    uncut.most = 0;
    uncut.draw = 0;
    CU_ASSERT_TRUE_FATAL(open_way(&run, made, way, 1));
    SLC_ASSERT_OK(compute(&run, way, factors, &uncut, &whole, &err), &err);
    CU_ASSERT_EQUAL(uncut.parts, 1);
    close_run(&run);
    for (unsigned number = 0; number < numbers; number++) {
        compute_in_parts(made, way, factors, number, &output);
        if (way->same_bits) {
            CU_ASSERT_TRUE(same_bits(&output, &whole));
        } else {
            CU_ASSERT_TRUE(distance(&output, &whole) <= (way->type == SLC_F32 ? 1e-5 : 1e-13));
        }
    }
    slc_matrix_destroy(&whole);
    slc_matrix_destroy(&output);
    destroy_factors(factors);
}

/* Sums have the same bits with both strategies that guarantee this, from every codec. */
static void the_bits_of_a_whole_pass(void)
{
    static const struct way ways[] = {
        {0, SLC_LAYOUTS_BLCO, SLC_CONFLICT_AUTO, SLC_F64, true},
        {1, SLC_LAYOUTS_BLCO, SLC_CONFLICT_AUTO, SLC_F32, true},
        {1, SLC_LAYOUTS_SORTED, SLC_CONFLICT_AUTO, SLC_F64, true},
        {0, SLC_LAYOUTS_SORTED, SLC_CONFLICT_AUTO, SLC_F32, true},
        /* Largest partitions first: still the same bits. */
        {1, SLC_LAYOUTS_SORTED, SLC_CONFLICT_ROWS, SLC_F64, true},
    };

    for (enum slc_codec codec = SLC_CODEC_PACKED;
         codec <= (slc_test_threads_only() ? SLC_CODEC_PACKED : SLC_CODEC_BLCO); codec++) {
        struct sorted_store made;

        make_store(&made, codec);
        for (size_t w = 0; w < SLC_COUNT(ways); w++) {
            check_way(&made, &ways[w], slc_test_quick() ? 2 : codec == SLC_CODEC_PACKED ? 8 : 4);
        }
        slc_made_tensor_destroy(&made.tensor);
    }
}

/* The other strategies yield the same sums up to rounding. */
static void the_same_to_rounding(void)
{
    static const enum slc_conflict conflicts[] = {SLC_CONFLICT_DIRECT, SLC_CONFLICT_PRIVATE,
                                                  SLC_CONFLICT_LOCKED, SLC_CONFLICT_COLUMNS};
    struct sorted_store made;

    make_store(&made, SLC_CODEC_PACKED);
    for (unsigned c = 0; c < SLC_COUNT(conflicts); c++) {
        const struct way way = {c % MODES, SLC_LAYOUTS_BLCO, conflicts[c],
                                c % 2 == 0 ? SLC_F64 : SLC_F32, false};

        check_way(&made, &way, slc_test_quick() ? 2 : 6);
    }
    slc_made_tensor_destroy(&made.tensor);
}

/* Two MTTKRPs in a pass; the factor between them is half of the first output. */
struct pair {
    struct sorted_run run;
    struct slc_backend *second;
    struct slc_row_ranges ranges;
    unsigned mode, next;
    struct slc_matrix factors[MODES];
    struct slc_matrix outputs[2];
};

static enum slc_status
take_half(void *context, unsigned worker, uint64_t number, struct slc_error *err)
{
    struct pair *pair = context;
    const struct slc_row_range *range = &pair->ranges.ranges[number];

    (void)worker;
    (void)err;
    for (uint64_t i = range->first_row; i < range->end_row; i++) {
        for (uint32_t r = 0; r < RANK; r++) {
            slc_matrix_set(&pair->factors[pair->mode], i, r,
                           slc_matrix_get(&pair->outputs[0], i, r) / 2.0);
        }
    }
    return SLC_OK;
}

static bool open_pair(struct pair *pair, const char *path, bool sorted, unsigned variant)
{
    const struct way way = {pair->mode, sorted ? SLC_LAYOUTS_SORTED : SLC_LAYOUTS_BLCO,
                            SLC_CONFLICT_AUTO, pair->outputs[0].type, sorted};
    const struct slc_plan_request request = request_of(&way, variant);
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(plan_run(&pair->run, path, &request, &err), &err);
    if (variant % 4 < 2 && request.cache) {
        keep_some(&pair->run, pair->run.plan.mode_layout[pair->mode]);
    }
    SLC_ASSERT_OK(
        slc_row_ranges_make(pair->run.layouts.reader[pair->run.plan.mode_layout[pair->mode]],
                            pair->mode, true, &pair->ranges, &err),
        &err);
    pair->run.plan.slot_count = (unsigned)pair->ranges.max_blocks + variant % 3;
    SLC_ASSERT_OK(slc_cpu_backend_create(&pair->second, &err), &err);
    return start_run(&pair->run, NULL);
}

static void close_pair(struct pair *pair)
{
    pair->second->ops->destroy(pair->second);
    slc_row_ranges_destroy(&pair->ranges);
    close_run(&pair->run);
}

static enum slc_status compute_pair(struct pair *pair,
                                    enum slc_conflict conflict,
                                    struct cutter *cutter,
                                    struct slc_error *err)
{
    struct slc_mttkrp_job jobs[2];
    const struct slc_fused_jobs fused = {.first = pair->run.backend,
                                         .second = pair->second,
                                         .first_job = &jobs[0],
                                         .second_job = &jobs[1],
                                         .ranges = &pair->ranges,
                                         .range_done = take_half,
                                         .context = pair,
                                         .cuts = &cutter->cuts};

    for (unsigned j = 0; j < 2; j++) {
        jobs[j] = (struct slc_mttkrp_job){.order = MODES,
                                          .mode = j == 0 ? pair->mode : pair->next,
                                          .rank = RANK,
                                          .nnz = pair->run.store.manifest.nnz,
                                          .workers = pair->run.plan.threads,
                                          .conflict = j == 0 ? SLC_CONFLICT_ROWS : conflict,
                                          .partitions = j == 0 ? pair->ranges.count : 0,
                                          .deterministic = conflict == SLC_CONFLICT_ORDERED,
                                          .output = &pair->outputs[j]};
        for (unsigned n = 0; n < MODES; n++) {
            jobs[j].factors[n] = &pair->factors[n];
        }
        memset(pair->outputs[j].buffer.data, 0x55, bytes_of(&pair->outputs[j]));
    }
    cutter->backend[0] = pair->run.backend;
    cutter->backend[1] = pair->second;
    return slc_fused_stream(pair->run.stream, pair->run.plan.mode_layout[pair->mode], &fused, NULL,
                            NULL, NULL, err);
}

static void
make_pair(struct pair *pair, unsigned mode, const uint64_t *lengths, enum slc_value_type type)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(pair, 0, sizeof *pair);
    pair->mode = mode;
    pair->next = (mode + 1) % MODES;
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&pair->factors[n], type, lengths[n], RANK, &err), &err);
        for (uint64_t i = 0; i < lengths[n] * RANK; i++) {
            slc_matrix_set(&pair->factors[n], i / RANK, (uint32_t)(i % RANK),
                           slc_random_f64(7, n, i) - 0.5);
        }
    }
    for (unsigned j = 0; j < 2; j++) {
        SLC_ASSERT_OK(slc_matrix_create(&pair->outputs[j], type,
                                        lengths[j == 0 ? pair->mode : pair->next], RANK, &err),
                      &err);
    }
}

static void destroy_pair(struct pair *pair)
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&pair->factors[n]);
    }
    slc_matrix_destroy(&pair->outputs[0]);
    slc_matrix_destroy(&pair->outputs[1]);
}

/* Rows that no turn has computed yet hold values that must not be read. */
static void spoil_rows(struct pair *pair, uint64_t first_range)
{
    for (uint64_t r = first_range; r < pair->ranges.count; r++) {
        const struct slc_row_range *range = &pair->ranges.ranges[r];

        for (uint64_t i = range->first_row; i < range->end_row; i++) {
            for (uint32_t c = 0; c < RANK; c++) {
                slc_matrix_set(&pair->factors[pair->mode], i, c, (double)NAN);
            }
        }
    }
}

/* Runs the pass of the pair, split according to the number. */
static void run_pair(
    struct pair *pair, const char *path, bool sorted, enum slc_conflict conflict, unsigned number)
{
    unsigned variant = number;
    enum slc_status status;
    struct cutter cutter;

    cutter_init(&cutter, number);
    if (number == 1) {
        cutter.most = 0; /* the reference pass has one part */
        cutter.draw = 0;
    } else if (!sorted) {
        cutter.most = 1;
    }
    do {
        struct slc_error err = SLC_ERROR_INIT;

        while (!open_pair(pair, path, sorted, variant)) {
            close_pair(pair);
            variant++;
        }
        spoil_rows(pair, cutter.cuts.first);
        status = compute_pair(pair, conflict, &cutter, &err);
        if (status == SLC_OK) {
            CU_ASSERT_TRUE(cutter.parts >= 2 || cutter.most == 0 || cutter.most >= 4);
        } else {
            SLC_ASSERT_FAILS(status, SLC_ERR_INTERRUPTED, &err, "left at");
            cutter.cuts.first = cutter.left_at;
        }
        close_pair(pair);
        variant += 7;
    } while (status != SLC_OK);
}

static void check_pair(const char *path,
                       const uint64_t *lengths,
                       unsigned mode,
                       enum slc_value_type type,
                       bool sorted,
                       unsigned numbers)
{
    static const enum slc_conflict others[] = {SLC_CONFLICT_LOCKED, SLC_CONFLICT_PRIVATE};
    struct pair whole, cut;

    make_pair(&whole, mode, lengths, type);
    run_pair(&whole, path, sorted, sorted ? SLC_CONFLICT_ORDERED : SLC_CONFLICT_LOCKED, 1);
    make_pair(&cut, mode, lengths, type);
    for (unsigned number = 0; number < numbers; number++) {
        run_pair(&cut, path, sorted, sorted ? SLC_CONFLICT_ORDERED : others[number % 2],
                 number == 1 ? numbers : number);
        if (sorted) {
            CU_ASSERT_TRUE(same_bits(&cut.factors[mode], &whole.factors[mode]));
            CU_ASSERT_TRUE(same_bits(&cut.outputs[0], &whole.outputs[0]));
            CU_ASSERT_TRUE(same_bits(&cut.outputs[1], &whole.outputs[1]));
        } else {
            CU_ASSERT_TRUE(distance(&cut.outputs[0], &whole.outputs[0]) <= 1e-13);
            CU_ASSERT_TRUE(distance(&cut.outputs[1], &whole.outputs[1]) <= 1e-12);
        }
    }
    destroy_pair(&whole);
    destroy_pair(&cut);
}

static void two_in_a_pass(void)
{
    struct sorted_store made;

    make_store(&made, SLC_CODEC_PACKED);
    for (unsigned mode = 0; mode < 2; mode++) {
        check_pair(made.path, dims, mode, mode == 0 ? SLC_F64 : SLC_F32, true,
                   slc_test_quick() ? 3 : 9);
    }
    slc_made_tensor_destroy(&made.tensor);
}

/* In blco, ranges share blocks and tiles, which are read and decoded on both sides of a split. */
static void two_in_a_pass_over_blco(void)
{
    static const uint64_t lengths[MODES] = {9000, 6, 40};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    char path[512];

    (void)snprintf(path, sizeof path, "%s/long.slc", slc_test_folder());
    slc_made_tensor_create(&tensor, MODES, lengths, 330000, SLC_MADE_COUNTS, slc_test_seed());
    tensor.tile_nnz = 10000;
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, path, SLC_CODEC_PACKED, 65536, &err), &err);
    check_pair(path, lengths, 0, SLC_F64, false, slc_test_quick() ? 1 : 3);
    slc_made_tensor_destroy(&tensor);
}

/* Positions at which no pass was interrupted; and the state after an error between parts. */
static void refusals(void)
{
    const struct way way = {0, SLC_LAYOUTS_BLCO, SLC_CONFLICT_AUTO, SLC_F64, true};
    struct slc_matrix factors[MODES], output;
    struct slc_error err = SLC_ERROR_INIT;
    struct sorted_store made;
    struct sorted_run run;
    struct cutter cutter;

    make_store(&made, SLC_CODEC_PACKED);
    make_factors(factors, SLC_F64);
    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, dims[0], RANK, &err), &err);
    CU_ASSERT_TRUE_FATAL(open_way(&run, &made, &way, 1));
    cutter_init(&cutter, 2);
    SLC_ASSERT_FAILS(compute(&run, &way, factors, &cutter, &output, &err), SLC_ERR_INTERRUPTED,
                     &err, "left at");
    slc_error_clear(&err);
    cutter.cuts.first = 100000;
    SLC_ASSERT_FAILS(compute(&run, &way, factors, &cutter, &output, &err), SLC_ERR_USAGE, &err,
                     "cannot resume at position 100000");
    slc_error_clear(&err);
    /* The stream and the device can compute the rest of the interrupted pass. */
    cutter.cuts.first = cutter.left_at;
    cutter.leaves = false;
    SLC_ASSERT_OK(compute(&run, &way, factors, &cutter, &output, &err), &err);
    close_run(&run);
    slc_matrix_destroy(&output);
    destroy_factors(factors);
    slc_made_tensor_destroy(&made.tensor);
}

static const struct slc_test tests[] = {
    {"the bits of a whole pass, from every codec", the_bits_of_a_whole_pass},
    {"other strategies, to rounding", the_same_to_rounding},
    {"two in a pass, with the same bits", two_in_a_pass},
    {"two in a pass over blco", two_in_a_pass_over_blco},
    {"invalid positions, and the next pass", refusals},
};

SLC_SUITE(parts)
{
    return slc_test_main("engine parts", tests, SLC_COUNT(tests), argc, argv);
}
