/* Measures TTV and TTM from fibers on a device.
 *
 * A row has the time of one product with all data in device memory, by the clock of the device, and
 * the rate of the bytes that the product must move. The rate can be compared with the read rate of
 * the device (ceiling `read` of the benchmark). The result of every product is compared with sums
 * that the CPU computes in the order of the list. */
#include "tools/bench/device/device.h"

#include "base/random.h"
#include "base/thread/team.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/gpu/lists.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MATRIX_SEED = 11, /* seed of the random matrices, an arbitrary number */
    /* Largest number of fibers per nonzero, including empty fibers, for which products over all
       fibers are measured. With more fibers, such a product would mostly read empty fibers, and
       need most of the memory and time of the benchmark. */
    EMPTY_MOST = 16,
    /* nonzeros and fibers that a thread processes at a time */
    NONZEROS_EACH = 1 << 16,
    FIBERS_EACH = 1 << 12
};

/* A list and new buffers for its nonzeros in the order of the permutation of a mode. */
struct reordering {
    const struct slc_coo *coo;
    unsigned mode;
    struct slc_buffer coords, values;
};

static void reorder_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct reordering *to = context;
    const struct slc_coo *coo = to->coo;
    const uint64_t order = coo->shape.order;
    const uint32_t *from_coords = coo->coords.data, *places = coo->orders[to->mode].data;
    const size_t value_bytes = slc_value_bytes(coo->type);
    const unsigned char *from_values = coo->values.data;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        memcpy((uint32_t *)to->coords.data + i * order, from_coords + places[i] * order,
               order * sizeof(uint32_t));
        memcpy((unsigned char *)to->values.data + i * value_bytes,
               from_values + places[i] * value_bytes, value_bytes);
    }
}

/* Copies the nonzeros of a list, in the order of the permutation of a mode, to new buffers, which
 * replace the buffers of the list. */
static enum slc_status
reorder(struct slc_coo *coo, unsigned mode, unsigned workers, struct slc_error *err)
{
    struct reordering to = {coo, mode, SLC_BUFFER_INIT, SLC_BUFFER_INIT};
    enum slc_status status = slc_buffer_create(&to.coords, coo->coords.bytes, SLC_PAGES_HUGE, err);

    SLC_THEN(status, slc_buffer_create(&to.values, coo->values.bytes, SLC_PAGES_HUGE, err));
    SLC_THEN(status, slc_team_for(workers, coo->shape.nnz, NONZEROS_EACH, reorder_range, &to, err));
    if (status != SLC_OK) {
        slc_buffer_destroy(&to.coords);
        slc_buffer_destroy(&to.values);
        return status;
    }
    slc_buffer_destroy(&coo->coords);
    slc_buffer_destroy(&coo->values);
    slc_buffer_destroy(&coo->orders[mode]);
    coo->coords = to.coords;
    coo->values = to.values;
    return SLC_OK;
}

/* Sorts a list in the order of the fibers of a mode: stable sorts by one coordinate after the
 * other, the least significant coordinate first. */
static enum slc_status
sort_list(struct slc_coo *coo, unsigned mode, unsigned workers, struct slc_error *err)
{
    const unsigned order = coo->shape.order;

    for (unsigned k = 0; k < order; k++) {
        /* The least significant coordinate is of `mode` itself; the other modes follow from last to
         * first. */
        const unsigned m = k == 0 ? mode : order - k - (order - k <= mode ? 1 : 0);

        SLC_TRY(slc_coo_permute(coo, m, workers, err));
        SLC_TRY(reorder(coo, m, workers, err));
    }
    return SLC_OK;
}

/* The list sorted for a mode, on the host and on the device, and the matrices of a product. */
struct sorted {
    const struct device_fibers *request;
    const struct slc_coo *coo;
    unsigned mode, workers;
    struct slc_buffer starts; /* first nonzero of each nonempty fiber, then nnz (64 bits each) */
    uint64_t fibers;          /* number of nonempty fibers */
    struct slc_gpu_fiber_list *list;
    bool keep_empty;
    struct slc_matrix matrix, result;
    json_t *rows;
};

static bool same_fiber(const struct sorted *sorted, uint64_t a, uint64_t b)
{
    const unsigned order = sorted->coo->shape.order;
    const uint32_t *coords = sorted->coo->coords.data;

    for (unsigned m = 0; m < order; m++) {
        if (m != sorted->mode && coords[a * order + m] != coords[b * order + m]) {
            return false;
        }
    }
    return true;
}

static double value_at(const struct slc_coo *coo, uint64_t i)
{
    return coo->type == SLC_F32 ? (double)((const float *)coo->values.data)[i]
                                : ((const double *)coo->values.data)[i];
}

/* Returns the number of the fiber of nonzero i among all fibers, including empty fibers, as
 * tools/bench/rivals/gpu/fibers.h numbers them. */
static uint64_t dense_number(const struct sorted *sorted, uint64_t i)
{
    const struct slc_tensor_shape *shape = &sorted->coo->shape;
    const uint32_t *coords = sorted->coo->coords.data;
    uint64_t number = 0;

    for (unsigned m = 0; m < shape->order; m++) {
        number =
            m == sorted->mode ? number : number * shape->dims[m] + coords[i * shape->order + m];
    }
    return number;
}

static double square(double x)
{
    return x * x;
}

/* Finds the nonempty fibers of the list. */
static enum slc_status find_starts(struct sorted *sorted, struct slc_error *err)
{
    const uint64_t nnz = sorted->coo->shape.nnz;
    uint64_t *starts;

    slc_buffer_destroy(&sorted->starts);
    SLC_TRY(slc_buffer_create(&sorted->starts, (nnz + 1) * sizeof(uint64_t), SLC_PAGES_HUGE, err));
    starts = sorted->starts.data;
    sorted->fibers = 0;
    for (uint64_t i = 0; i < nnz; i++) {
        if (i == 0 || !same_fiber(sorted, i - 1, i)) {
            starts[sorted->fibers++] = i;
        }
    }
    starts[sorted->fibers] = nnz;
    return SLC_OK;
}

/* Squared norms of the difference between device and CPU, and of the results of CPU and device. */
struct distance {
    double apart, cpu, device;
};

/* A comparison of results. The threads write separate elements of the arrays. */
struct comparison {
    const struct sorted *sorted;
    struct distance *distances; /* one per range of FIBERS_EACH fibers */
    double *sums;               /* a row of the result per thread */
};

/* Sets `sums` to the row of a fiber. */
static void sum_fiber(const struct sorted *sorted, uint64_t fiber, double *sums)
{
    const struct slc_coo *coo = sorted->coo;
    const uint64_t *starts = sorted->starts.data;
    const uint32_t *coords = coo->coords.data;

    memset(sums, 0, sorted->matrix.cols * sizeof *sums);
    for (uint64_t i = starts[fiber]; i < starts[fiber + 1]; i++) {
        const uint32_t at = coords[i * coo->shape.order + sorted->mode];
        const double value = value_at(coo, i);

        for (uint32_t r = 0; r < sorted->matrix.cols; r++) {
            sums[r] += value * slc_matrix_get(&sorted->matrix, at, r);
        }
    }
}

static void compare_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct comparison *comparison = context;
    const struct sorted *sorted = comparison->sorted;
    const uint64_t *starts = sorted->starts.data;
    double *sums = comparison->sums + (size_t)worker * sorted->result.cols;
    struct distance distance = {0, 0, 0};

    for (uint64_t fiber = begin; fiber < end; fiber++) {
        const uint64_t row = sorted->keep_empty ? dense_number(sorted, starts[fiber]) : fiber;

        sum_fiber(sorted, fiber, sums);
        for (uint32_t r = 0; r < sorted->result.cols; r++) {
            const double got = slc_matrix_get(&sorted->result, row, r);

            distance.apart += square(got - sums[r]);
            distance.cpu += square(sums[r]);
            distance.device += square(got);
        }
    }
    comparison->distances[begin / FIBERS_EACH] = distance;
}

/* Returns the sum of the squares of all rows of the result. */
static double square_all(const struct slc_matrix *result)
{
    double all = 0;

    for (uint64_t i = 0; i < result->rows; i++) {
        for (uint32_t r = 0; r < result->cols; r++) {
            all += square(slc_matrix_get(result, i, r));
        }
    }
    return all;
}

/* Computes the norm of the difference between the results of the device and of the CPU, relative to
 * the norm of the result of the CPU. Rows of empty fibers must be 0; their sum of squares is the
 * sum of squares of all rows minus that of the rows of nonempty fibers. */
static enum slc_status
find_difference(const struct sorted *sorted, double *difference, struct slc_error *err)
{
    const uint64_t ranges = sorted->fibers / FIBERS_EACH + 1;
    struct comparison comparison = {
        sorted, slc_calloc(ranges, sizeof *comparison.distances),
        slc_calloc((size_t)sorted->workers * sorted->result.cols, sizeof *comparison.sums)};
    struct distance all = {0, 0, 0};
    enum slc_status status =
        comparison.distances == NULL || comparison.sums == NULL
            ? slc_fail(err, SLC_ERR_MEMORY, "no memory to compare %" PRIu64 " sums", sorted->fibers)
            : slc_team_for(sorted->workers, sorted->fibers, FIBERS_EACH, compare_range, &comparison,
                           err);

    for (uint64_t i = 0; i < ranges && status == SLC_OK; i++) {
        all.apart += comparison.distances[i].apart;
        all.cpu += comparison.distances[i].cpu;
        all.device += comparison.distances[i].device;
    }
    if (status == SLC_OK && sorted->keep_empty) {
        const double rows = square_all(&sorted->result);

        all.apart += fabs(rows - all.device) > 1e-9 * rows ? rows - all.device : 0;
    }
    slc_free(comparison.distances);
    slc_free(comparison.sums);
    *difference = all.cpu > 0 ? sqrt(all.apart / all.cpu) : sqrt(all.apart);
    return status;
}

static enum slc_status fill_matrix(struct slc_matrix *matrix,
                                   enum slc_value_type type,
                                   uint64_t rows,
                                   uint32_t cols,
                                   struct slc_error *err)
{
    SLC_TRY(slc_matrix_create(matrix, type, rows, cols, err));
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(matrix, i, r, slc_random_f64(MATRIX_SEED, cols, i * cols + r));
        }
    }
    return SLC_OK;
}

static json_t *add_row(const struct sorted *sorted, const char *name)
{
    json_t *row = bench_add_row(sorted->rows);

    slc_json_set_text(row, "tensor", sorted->request->path);
    slc_json_set_text(row, "precision", sorted->matrix.type == SLC_F32 ? "f32" : "f64");
    slc_json_set_count(row, "rank", sorted->matrix.cols);
    slc_json_set_count(row, "mode", sorted->mode + 1);
    slc_json_set_text(row, "kernel", name);
    return row;
}

/* Measures one product and adds its row. If the product is not available, the row has the reason
 * instead of figures. */
static enum slc_status measure_product(struct sorted *sorted,
                                       enum slc_gpu_fiber_product product,
                                       const char *name,
                                       struct slc_error *err)
{
    const struct slc_gpu_product_run run = {product, &sorted->matrix, &sorted->result,
                                            sorted->request->repeats};
    struct bench_samples samples = {.count = sorted->request->repeats};
    struct slc_error refused = SLC_ERROR_INIT;
    json_t *row = add_row(sorted, name);
    uint64_t bytes = 0;
    double difference = 0;
    enum slc_status status =
        slc_gpu_fiber_list_multiply(sorted->list, &run, samples.seconds, &bytes, &refused);

    if (status == SLC_ERR_UNSUPPORTED) {
        slc_json_set_text(row, "note", refused.message);
        return SLC_OK;
    }
    SLC_THEN(status, find_difference(sorted, &difference, &refused));
    if (status == SLC_OK) {
        const struct bench_times times = bench_samples_summary(&samples);

        bench_times_to_json(row, &times);
        slc_json_set_count(row, "fibers", sorted->result.rows);
        slc_json_set_count(row, "moved_bytes", bytes);
        bench_set_real(row, "gb_per_s", (double)bytes / times.median * 1e-9);
        bench_set_real(row, "gnnz_per_s", (double)sorted->coo->shape.nnz / times.median * 1e-9);
        bench_set_real(row, "differs", difference);
    } else if (err != NULL) {
        *err = refused;
    }
    return status;
}

/* Measures the products with one matrix or vector. Each result has a row per fiber. */
static enum slc_status measure_products(struct sorted *sorted,
                                        enum slc_value_type type,
                                        uint32_t cols,
                                        enum slc_gpu_fiber_product first,
                                        enum slc_gpu_fiber_product end,
                                        struct slc_error *err)
{
    const uint64_t length = sorted->coo->shape.dims[sorted->mode];
    enum slc_status status = fill_matrix(&sorted->matrix, type, length, cols, err);

    SLC_THEN(status, slc_matrix_create(&sorted->result, SLC_F64,
                                       slc_gpu_fiber_list_count(sorted->list), cols, err));
    for (int p = (int)first; p < (int)end && status == SLC_OK; p++) {
        const enum slc_gpu_fiber_product product = (enum slc_gpu_fiber_product)p;
        const char *name = sorted->keep_empty ? "sptv-all" : slc_gpu_product_name(product);

        if (sorted->request->only == NULL || strcmp(sorted->request->only, name) == 0) {
            status = measure_product(sorted, product, name, err);
        }
    }
    slc_matrix_destroy(&sorted->matrix);
    slc_matrix_destroy(&sorted->result);
    return status;
}

static enum slc_status make_list(struct sorted *sorted, bool keep_empty, struct slc_error *err)
{
    const struct slc_coo *coo = sorted->coo;
    struct slc_gpu_fiber_source source = {.ordinal = sorted->request->ordinal,
                                          .order = coo->shape.order,
                                          .mode = sorted->mode,
                                          .nnz = coo->shape.nnz,
                                          .coords = coo->coords.data,
                                          .type = coo->type,
                                          .values = coo->values.data,
                                          .keep_empty = keep_empty};

    memcpy(source.dims, coo->shape.dims, sizeof source.dims);
    sorted->keep_empty = keep_empty;
    return slc_gpu_fiber_list_create(&source, &sorted->list, err);
}

/* Creates the device list with empty fibers. SLC_ERR_UNSUPPORTED means too many fibers. */
static enum slc_status make_empty_list(struct sorted *sorted, struct slc_error *err)
{
    const struct slc_tensor_shape *shape = &sorted->coo->shape;
    double fibers = 1;

    for (unsigned m = 0; m < shape->order; m++) {
        fibers *= m == sorted->mode ? 1 : (double)shape->dims[m];
    }
    if (fibers > EMPTY_MOST * (double)shape->nnz) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%.3g fibers, including empty ones, exceed the limit of %d per nonzero",
                        fibers, EMPTY_MOST);
    }
    return make_list(sorted, true, err);
}

/* Measures sluice's TTV over all fibers, including empty fibers. */
static enum slc_status measure_empty(struct sorted *sorted, struct slc_error *err)
{
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = make_empty_list(sorted, &refused);

    if (status == SLC_OK) {
        status = measure_products(sorted, SLC_F64, 1, SLC_GPU_PRODUCT_SPTV,
                                  SLC_GPU_PRODUCT_SPTV_SHORT, err);
    } else if (status == SLC_ERR_UNSUPPORTED || status == SLC_ERR_MEMORY) {
        slc_json_set_text(add_row(sorted, "sptv-all"), "note", refused.message);
        status = SLC_OK;
    } else if (err != NULL) {
        *err = refused;
    }
    slc_gpu_fiber_list_destroy(sorted->list);
    sorted->list = NULL;
    return status;
}

static enum slc_status measure_mode(struct sorted *sorted, struct slc_error *err)
{
    const struct device_fibers *request = sorted->request;
    enum slc_status status = find_starts(sorted, err);

    SLC_THEN(status, make_list(sorted, false, err));
    if (status == SLC_OK && request->vector) {
        status = measure_products(sorted, SLC_F64, 1, SLC_GPU_PRODUCT_SPTV,
                                  SLC_GPU_PRODUCT_TTM_FIBERS, err);
    }
    for (unsigned r = 0; r < request->ranks->count && request->matrix && status == SLC_OK; r++) {
        status = measure_products(sorted, request->precision, (uint32_t)request->ranks->number[r],
                                  SLC_GPU_PRODUCT_TTM_FIBERS, SLC_GPU_PRODUCTS, err);
    }
    slc_gpu_fiber_list_destroy(sorted->list);
    sorted->list = NULL;
    return status == SLC_OK && request->vector && request->only == NULL ? measure_empty(sorted, err)
                                                                        : status;
}

enum slc_status
device_fibers_measure(const struct device_fibers *measured, json_t *rows, struct slc_error *err)
{
    const unsigned workers = measured->session.threads > 0 ? (unsigned)measured->session.threads
                                                           : slc_team_default_workers();
    struct slc_coo coo = {.type = measured->precision};
    struct sorted sorted = {.request = measured, .coo = &coo, .workers = workers, .rows = rows};
    enum slc_status status =
        device_list_load(measured->path, &measured->session, measured->precision, &coo, err);

    for (unsigned m = 0; m < coo.shape.order && status == SLC_OK; m++) {
        if (measured->mode != 0 && measured->mode != m + 1) {
            continue;
        }
        sorted.mode = m;
        status = sort_list(&coo, m, workers, err);
        SLC_THEN(status, measure_mode(&sorted, err));
    }
    slc_buffer_destroy(&sorted.starts);
    slc_coo_destroy(&coo);
    return status;
}
