/* Tensors, a solver and a reference for row passes. */
#include "rows_fixture.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/subnormal.h"
#include "slc_test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keyed {
    slc_u128 key;
    double value;
};

static int by_key(const void *a, const void *b)
{
    const slc_u128 x = ((const struct keyed *)a)->key, y = ((const struct keyed *)b)->key;

    return (x > y) - (x < y);
}

static void coords_of(const struct slc_made_tensor *tensor, uint64_t i, uint64_t *coords)
{
    slc_key_decode(&tensor->keys,
                   slc_key_join(tensor->key_lo[i], tensor->key_hi != NULL ? tensor->key_hi[i] : 0),
                   coords);
}

/* Moves every second nonzero to row `row`, and drops duplicates. */
static void make_heavy(struct slc_made_tensor *tensor, unsigned mode, uint64_t row)
{
    struct keyed *all = calloc(tensor->nnz, sizeof *all);
    uint64_t kept = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        coords_of(tensor, i, coords);
        coords[mode] = slc_mix64(i) % 2 == 0 ? row : coords[mode];
        all[i] = (struct keyed){slc_key_encode(&tensor->keys, coords), tensor->values[i]};
    }
    qsort(all, tensor->nnz, sizeof *all, by_key);
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        if (i == 0 || all[i].key != all[i - 1].key) {
            tensor->key_lo[kept] = (uint64_t)all[i].key;
            if (tensor->key_hi != NULL) {
                tensor->key_hi[kept] = (uint64_t)(all[i].key >> 64);
            }
            tensor->values[kept++] = all[i].value;
        }
    }
    tensor->nnz = kept;
    free(all);
}

void make_rows_store(struct rows_store *made, const struct rows_shape *shape)
{
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(made->path, sizeof made->path, "%s/%s.slc", slc_test_folder(), shape->name);
    slc_made_tensor_create(&made->tensor, shape->order, shape->dims, shape->nnz, SLC_MADE_COUNTS,
                           slc_test_seed());
    if (shape->heavy_row != SLC_NOWHERE) {
        make_heavy(&made->tensor, shape->heavy_mode, shape->heavy_row);
    }
    made->tensor.tile_nnz = shape->tile_nnz;
    made->all_sorted = shape->sorted == (UINT32_C(1) << shape->order) - 1;
    SLC_ASSERT_OK(slc_made_store_write(&made->tensor, NULL, made->path, SLC_CODEC_PACKED,
                                       shape->block_bytes, &err),
                  &err);
    for (unsigned n = 0; n < shape->order; n++) {
        if ((shape->sorted >> n & 1U) != 0) {
            SLC_ASSERT_OK(slc_made_store_add_sorted(&made->tensor, made->path, n, shape->target_nnz,
                                                    SLC_CODEC_PACKED, shape->block_bytes, &err),
                          &err);
        }
    }
}

void destroy_rows_store(struct rows_store *made)
{
    slc_made_tensor_destroy(&made->tensor);
}

static void expect(struct rows_solver *solver, bool right)
{
    if (!right) {
        (void)atomic_fetch_add(&solver->wrong, 1);
    }
}

static enum slc_status
begin_mode(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct rows_solver *solver = context;

    (void)err;
    expect(solver, mode == &solver->about);
    (void)atomic_fetch_add(&solver->begins, 1);
    return SLC_OK;
}

static void end_mode(void *context)
{
    (void)atomic_fetch_add(&((struct rows_solver *)context)->ends, 1);
}

static uint64_t count_sums(void *context, uint32_t rank)
{
    (void)context;
    return rank + 2;
}

static uint64_t count_memory(void *context, uint32_t rank)
{
    (void)context;
    (void)rank;
    return ROWS_MEMORY;
}

static void start_row(void *context, unsigned worker, struct slc_row *row)
{
    struct rows_solver *solver = context;

    expect(solver, worker < solver->about.workers && row->traversals == 0);
    for (unsigned k = 0; k < ROWS_MEMORY; k++) {
        expect(solver, row->memory[k] == 0);
    }
    row->memory[1] = 1;
}

static bool flushes_subnormals(void)
{
    volatile double least = DBL_MIN;

    return least / 2 == 0;
}

static void add_piece(void *context,
                      unsigned worker,
                      const struct slc_row *row,
                      const struct slc_row_piece *piece,
                      double *sums)
{
    struct rows_solver *solver = context;

    expect(solver, worker < solver->about.workers && piece->nnz >= 1 &&
                       piece->nnz <= slc_row_added_nnz(ROWS_RANK) && piece->nnz <= row->nnz &&
                       row->memory[1] == 1 && flushes_subnormals() == solver->flushes);
    if (atomic_fetch_add(&solver->adds, 1) + 1 == solver->stop_after) {
        solver->stop = 1;
    }
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double *product = piece->products + (size_t)i * piece->pitch;
        double model = 0;

        for (uint32_t r = 0; r < ROWS_RANK; r++) {
            sums[r] += piece->values[i] * product[r];
            model += product[r] * row->x[r];
        }
        sums[ROWS_RANK] += piece->values[i];
        sums[ROWS_RANK + 1] += model;
    }
}

/* The update of a row after a traversal. */
static void step_row(double *x, const double *sums, uint64_t nnz, uint32_t traversals)
{
    for (uint32_t r = 0; r < ROWS_RANK; r++) {
        x[r] = 0.5 * x[r] + sums[r] / (1 + sums[ROWS_RANK]) +
               0.01 * sums[ROWS_RANK + 1] / (double)(nnz + 1) + 0.001 * traversals;
    }
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *sums)
{
    struct rows_solver *solver = context;

    expect(solver, worker < solver->about.workers && row->memory[0] == row->traversals - 1);
    row->memory[0]++;
    step_row(row->x, sums, row->nnz, row->traversals);
    if (row->index == solver->fail_row) {
        row->x[1] = NAN;
    }
    return row->traversals < solver->traversals ? SLC_ROW_AGAIN : SLC_ROW_DONE;
}

static void measure(void *context,
                    unsigned worker,
                    const struct slc_row *row,
                    const struct slc_row_piece *piece,
                    double measures[SLC_ROW_MEASURES])
{
    (void)context;
    (void)worker;
    for (uint32_t r = 0; piece == NULL && r < ROWS_RANK; r++) {
        measures[0] += row->x[r] * row->x[r] / (1 + (double)row->index);
    }
    for (uint32_t i = 0; piece != NULL && i < piece->nnz; i++) {
        const double *product = piece->products + (size_t)i * piece->pitch;
        double model = 0;

        for (uint32_t r = 0; r < ROWS_RANK; r++) {
            model += product[r] * row->x[r];
        }
        measures[0] += piece->values[i] * model;
        measures[1] += fabs(piece->values[i] - model);
    }
}

void rows_solver_init(struct rows_solver *solver,
                      const struct rows_store *made,
                      unsigned mode,
                      unsigned workers,
                      uint32_t traversals)
{
    memset(solver, 0, sizeof *solver);
    CU_ASSERT_FALSE(flushes_subnormals());
    const uint64_t settings = slc_subnormals_flush();
    solver->flushes = flushes_subnormals();
    slc_subnormals_restore(settings);
    solver->solver = (struct slc_row_solver){.name = "mock",
                                             .input = SLC_ROW_NONZEROS,
                                             .context = solver,
                                             .begin = begin_mode,
                                             .sums = count_sums,
                                             .memory = count_memory,
                                             .start = start_row,
                                             .add = add_piece,
                                             .step = step,
                                             .measure = measure,
                                             .end = end_mode};
    for (uint32_t r = 0; r < ROWS_RANK; r++) {
        solver->weights[r] = 1 + 0.25 * r;
    }
    solver->about = (struct slc_row_mode){.order = made->tensor.order,
                                          .mode = mode,
                                          .workers = workers,
                                          .iteration = 1,
                                          .rank = ROWS_RANK,
                                          .rows = made->tensor.dims[mode],
                                          .weights = solver->weights};
    solver->traversals = traversals;
    solver->fail_row = SLC_NOWHERE;
    solver->stop_after = SLC_NOWHERE;
}

void make_rows_factors(const struct rows_store *made,
                       enum slc_value_type type,
                       struct slc_matrix *factors)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < made->tensor.order; n++) {
        const uint64_t rows = made->tensor.dims[n];

        SLC_ASSERT_OK(slc_matrix_create(&factors[n], type, rows, ROWS_RANK, &err), &err);
        for (uint64_t i = 0; i < rows * ROWS_RANK; i++) {
            slc_matrix_set(&factors[n], i / ROWS_RANK, (uint32_t)(i % ROWS_RANK),
                           slc_random_f64(3, n, i) + 0.1);
        }
    }
}

void destroy_rows_factors(const struct rows_store *made, struct slc_matrix *factors)
{
    for (unsigned n = 0; n < made->tensor.order; n++) {
        slc_matrix_destroy(&factors[n]);
    }
}

static bool is_held(const struct slc_made_tensor *tensor,
                    const struct slc_holdout *holdout,
                    const uint64_t *coords)
{
    static const uint32_t zero;
    struct slc_tile_view tile = {.order = tensor->order};
    struct slc_chunk_view chunk = {.nnz = 1};
    uint64_t hashes[SLC_HOLDOUT_CHUNK_NNZ];

    for (unsigned n = 0; n < tensor->order; n++) {
        tile.corner[n] = coords[n];
        chunk.offset[n] = &zero;
    }
    if (holdout != NULL) {
        slc_holdout_hash(holdout, &tile, &chunk, hashes);
    }
    return holdout != NULL && hashes[0] < holdout->threshold;
}

/* Products of the rows of the other factors at the coordinates, and their inner product with x. */
static double product_at(const struct slc_made_tensor *tensor,
                         const struct slc_matrix *factors,
                         unsigned mode,
                         const uint64_t *coords,
                         const double *x,
                         double *product)
{
    double model = 0;

    for (uint32_t r = 0; r < ROWS_RANK; r++) {
        product[r] = 1;
        for (unsigned m = 0; m < tensor->order; m++) {
            product[r] *= m == mode ? 1 : slc_matrix_get(&factors[m], coords[m], r);
        }
        model += product[r] * x[r];
    }
    return model;
}

void rows_reference(const struct rows_store *made,
                    const struct rows_solver *solver,
                    const struct slc_holdout *holdout,
                    struct slc_matrix *factors,
                    double measures[SLC_ROW_MEASURES])
{
    const struct slc_made_tensor *tensor = &made->tensor;
    const unsigned mode = solver->about.mode;
    const uint64_t rows = tensor->dims[mode];
    double *x = calloc(rows * ROWS_RANK, sizeof *x);
    double *sums = calloc(rows * ROWS_SUMS, sizeof *sums);
    uint64_t *nnz = calloc(rows, sizeof *nnz);
    uint64_t coords[SLC_MAX_ORDER];
    double product[ROWS_RANK];

    CU_ASSERT_FATAL(x != NULL && sums != NULL && nnz != NULL);
    for (uint64_t i = 0; i < rows * ROWS_RANK; i++) {
        x[i] = slc_matrix_get(&factors[mode], i / ROWS_RANK, (uint32_t)(i % ROWS_RANK)) *
               solver->weights[i % ROWS_RANK];
    }
    for (uint32_t t = 1; t <= solver->traversals; t++) {
        memset(sums, 0, rows * ROWS_SUMS * sizeof *sums);
        memset(nnz, 0, rows * sizeof *nnz);
        for (uint64_t i = 0; i < tensor->nnz; i++) {
            coords_of(tensor, i, coords);
            if (!is_held(tensor, holdout, coords)) {
                double *to = sums + coords[mode] * ROWS_SUMS;

                nnz[coords[mode]]++;
                to[ROWS_RANK + 1] += product_at(tensor, factors, mode, coords,
                                                x + coords[mode] * ROWS_RANK, product);
                to[ROWS_RANK] += tensor->values[i];
                for (uint32_t r = 0; r < ROWS_RANK; r++) {
                    to[r] += tensor->values[i] * product[r];
                }
            }
        }
        for (uint64_t i = 0; i < rows; i++) {
            step_row(x + i * ROWS_RANK, sums + i * ROWS_SUMS, nnz[i], t);
        }
    }
    measures[0] = measures[1] = 0;
    for (uint64_t i = 0; i < rows * ROWS_RANK; i++) {
        const uint64_t row = i / ROWS_RANK;

        slc_matrix_set(&factors[mode], row, (uint32_t)(i % ROWS_RANK), x[i]);
        x[i] = slc_matrix_get(&factors[mode], row, (uint32_t)(i % ROWS_RANK));
        measures[0] += x[i] * x[i] / (1 + (double)row);
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        coords_of(tensor, i, coords);
        if (!is_held(tensor, holdout, coords)) {
            const double model =
                product_at(tensor, factors, mode, coords, x + coords[mode] * ROWS_RANK, product);

            measures[0] += tensor->values[i] * model;
            measures[1] += fabs(tensor->values[i] - model);
        }
    }
    free(x);
    free(sums);
    free(nnz);
}

struct slc_plan_request rows_request(uint32_t traversals)
{
    struct slc_plan_request request = fixture_request(ROWS_RANK);

    request.rows = (struct slc_plan_row_request){
        .nonzeros = true, .sums = ROWS_SUMS, .memory = ROWS_MEMORY, .traversals = traversals};
    return request;
}

uint32_t rows_segment_nnz = 512;

bool open_run(struct rows_run *rows,
              const struct rows_store *made,
              const struct variant *variant,
              enum slc_value_type type,
              const struct slc_files *files)
{
    struct slc_plan_request request = rows_request(3);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_plan *plan = &rows->run.plan;

    memset(rows, 0, sizeof *rows);
    request.precision = type;
    request.threads = variant->threads;
    request.io = variant->io;
    request.schedule = variant->schedule;
    request.cache = variant->cache;
    request.slots = variant->slots;
    request.layouts = made->all_sorted ? SLC_LAYOUTS_SORTED : SLC_LAYOUTS_AUTO;
    request.deterministic = variant->schedule == SLC_SCHEDULE_FILE;
    SLC_ASSERT_OK(plan_run(&rows->run, made->path, &request, &err), &err);
    plan->slot_count = variant->slots != 0 ? (unsigned)(plan->rows.range_blocks > variant->slots
                                                            ? plan->rows.range_blocks
                                                            : variant->slots)
                                           : plan->slot_count;
    plan->rows.segment_nnz = rows_segment_nnz;
    if (variant->buffer_nnz != 0 && variant->buffer_nnz < plan->rows.buffer_nnz) {
        plan->rows.buffer_nnz = variant->buffer_nnz;
    }
    if (variant->product_nnz != 0 && variant->product_nnz < plan->rows.product_nnz) {
        plan->rows.product_nnz = variant->product_nnz;
    }
    if (variant->gather_nnz != 0 && variant->gather_nnz < plan->rows.gather_nnz) {
        plan->rows.gather_nnz = variant->gather_nnz;
        plan->rows.gather_kept = 0;
    }
    for (unsigned l = 0; variant->some && l < rows->run.layouts.count; l++) {
        keep_some(&rows->run, l);
    }
    make_rows_factors(made, type, rows->factors);
    return start_run(&rows->run, files);
}

void close_rows(struct rows_run *rows, const struct rows_store *made)
{
    slc_row_passes_close(rows->passes);
    close_run(&rows->run);
    destroy_rows_factors(made, rows->factors);
    free(rows->scratch);
}

void open_passes(struct rows_run *rows)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_row_passes_open(rows->run.stream, &rows->run.plan, NULL, &rows->passes, &err),
                  &err);
}

struct slc_row_pass make_pass(struct rows_run *rows, struct rows_solver *solver, bool measures)
{
    return (struct slc_row_pass){.solver = &solver->solver,
                                 .about = &solver->about,
                                 .factors = rows->factors,
                                 .measure = measures,
                                 .stop = &solver->stop};
}

double rows_distance(const struct slc_matrix *a, const struct slc_matrix *b)
{
    double largest = 0;

    for (uint64_t i = 0; i < a->rows; i++) {
        for (uint32_t r = 0; r < a->cols; r++) {
            const double x = slc_matrix_get(a, i, r), y = slc_matrix_get(b, i, r);

            largest = fmax(largest, fabs(x - y) / fmax(1, fabs(y)));
        }
    }
    return largest;
}

bool same_bits(const struct slc_matrix *a, const struct slc_matrix *b)
{
    return memcmp(a->buffer.data, b->buffer.data, a->rows * slc_matrix_row_bytes(a)) == 0;
}

const struct variant sorted_variants[SORTED_VARIANTS] = {
    {.threads = 1, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .cache = true},
    {.threads = 2, .io = SLC_IO_URING, .schedule = SLC_SCHEDULE_FILE, .slots = 2},
    {.threads = 7, .io = SLC_IO_MMAP, .schedule = SLC_SCHEDULE_FILE, .slots = 3, .some = true},
    {.threads = 2, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_LARGEST, .cache = true},
    {.threads = 7, .io = SLC_IO_PREAD, .schedule = SLC_SCHEDULE_FILE, .buffer_nnz = 1400},
    {.threads = 3,
     .io = SLC_IO_URING,
     .schedule = SLC_SCHEDULE_LARGEST,
     .slots = 2,
     .buffer_nnz = 2500,
     .product_nnz = 1024,
     .some = true},
    {.threads = 1,
     .io = SLC_IO_MMAP,
     .schedule = SLC_SCHEDULE_FILE,
     .slots = 200,
     .buffer_nnz = 1400,
     .product_nnz = 1024},
};

const struct rows_shape sorted_shapes[SORTED_SHAPES] = {
    /* a heavy row in the middle, rows without nonzeros, small tiles */
    {"heavy", 3, {300, 40, 500}, 20000, 0, 120, 300, 700, 4096, 7},
    /* the first and the last row are heavy */
    {"first", 3, {60, 50, 70}, 12000, 1, 0, 250, 500, 4096, 7},
    {"last", 4, {9, 12, 30, 40}, 12000, 3, 39, 250, 500, 4096, 15},
    /* modes of size 1, in which one row has all nonzeros */
    {"one", 5, {1, 700, 1, 2, 90}, 9000, 0, SLC_NOWHERE, 200, 400, 4096, 31},
    {"line", 1, {5000, 0}, 2500, 0, SLC_NOWHERE, 100, 300, 4096, 1},
    {"table", 2, {3000, 11}, 9000, 1, 4, 333, 600, 4096, 3},
    {"tiny", 3, {4, 5, 6}, 3, 0, SLC_NOWHERE, 0, 8, 4096, 7},
};
