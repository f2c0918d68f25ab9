/* Multiplies small random tensors with a matrix and reads the result. */
#include "ttm_fixture.h"

#include "base/hash.h"
#include "base/random.h"
#include "engine/planning/planning.h"
#include "faulty_files.h"
#include "naive_products.h"
#include "one_layout.h"
#include "slc_test.h"
#include "storage/model/npy_header.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static double small_integer(uint64_t stream, uint64_t i)
{
    return (double)slc_random_below(slc_test_seed(), stream, i, 7) - 3;
}

static void make_matrix(struct ttm_problem *problem, enum slc_value_type type, uint32_t cols)
{
    const uint64_t rows = problem->tensor.dims[problem->mode];
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(&problem->matrix, type, rows, cols, &err), &err);
}

static void fill_matrix(struct slc_matrix *matrix, bool integers)
{
    for (uint64_t i = 0; i < matrix->rows; i++) {
        for (uint32_t r = 0; r < matrix->cols; r++) {
            const uint64_t at = i * matrix->cols + r;

            slc_matrix_set(matrix, i, r,
                           integers ? small_integer(91, at)
                                    : slc_random_f64(slc_test_seed(), 92, at) - 0.5);
        }
    }
}

/* Computes the product of absolute values, which is the scale of errors. */
static void ask_magnitude(struct ttm_problem *problem, const uint64_t *order, const uint64_t *fiber)
{
    const struct slc_matrix *matrix = &problem->matrix;
    struct slc_coo_view view = fixture_view(&problem->tensor);
    struct slc_matrix positive = {.rows = 0};
    double *values = must(calloc(view.nnz + 1, sizeof *values));
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_matrix_create(&positive, matrix->type, matrix->rows, matrix->cols, &err),
                  &err);
    for (uint64_t i = 0; i < matrix->rows; i++) {
        for (uint32_t r = 0; r < matrix->cols; r++) {
            slc_matrix_set(&positive, i, r, fabs(slc_matrix_get(matrix, i, r)));
        }
    }
    for (uint64_t i = 0; i < view.nnz; i++) {
        values[i] = fabs(view.values[i]);
    }
    view.values = values;
    slc_reference_ttm(&view, problem->mode, &positive, order, fiber, problem->magnitude);
    slc_matrix_destroy(&positive);
    free(values);
}

static void ask_oracle(struct ttm_problem *problem)
{
    const struct slc_coo_view view = fixture_view(&problem->tensor);
    const uint32_t cols = problem->matrix.cols;
    uint64_t *order = must(calloc(view.nnz + 1, sizeof *order));
    uint64_t *fiber = must(calloc(view.nnz + 1, sizeof *fiber));

    problem->fibers = slc_reference_fibers(&view, problem->mode, order, fiber);
    problem->coords = must(calloc(problem->fibers * view.order + 1, sizeof *problem->coords));
    problem->want = must(calloc(problem->fibers * cols + 1, sizeof *problem->want));
    problem->magnitude = must(calloc(problem->fibers * cols + 1, sizeof *problem->magnitude));
    slc_reference_ttm(&view, problem->mode, &problem->matrix, order, fiber, problem->want);
    ask_magnitude(problem, order, fiber);
    for (uint64_t k = 0; k < view.nnz; k++) {
        for (unsigned m = 0; m < view.order; m++) {
            problem->coords[fiber[k] * view.order + m] =
                m == problem->mode ? 0 : view.coords[m][order[k]];
        }
    }
    free(order);
    free(fiber);
}

void ttm_problem_create(struct ttm_problem *problem,
                        unsigned order,
                        const uint64_t *dims,
                        unsigned mode,
                        uint64_t draws,
                        uint32_t tile_nnz,
                        uint32_t cols,
                        enum slc_value_type type,
                        bool integers)
{
    static unsigned made;
    const struct slc_fiber_run run = {mode, slc_bits_for_length(dims[mode])};
    const char *folder = slc_test_folder();
    char name[32];

    memset(problem, 0, sizeof *problem);
    problem->mode = mode;
    fixture_random_run(&problem->tensor, order, dims, run, draws, slc_test_seed() + made);
    for (uint64_t i = 0; integers && i < problem->tensor.nnz; i++) {
        problem->tensor.values[i] = (double)(1 + i % 9);
    }
    problem->tensor.tile_nnz[0] = tile_nnz;
    problem->tensor.tile_nnz[1] = tile_nnz != 0 ? tile_nnz / 3 + 1 : 0;
    problem->tensor.tile_nnz[2] = tile_nnz != 0 ? tile_nnz / 2 + 1 : 0;
    (void)snprintf(name, sizeof name, "x%u", made++);
    fixture_store(&problem->tensor, folder, name, SLC_CODEC_PACKED, 4096, problem->store);
    (void)snprintf(problem->folder, sizeof problem->folder, "%.400s/%s.result", folder, name);
    make_matrix(problem, type, cols);
    fill_matrix(&problem->matrix, integers);
    ask_oracle(problem);
}

void ttm_problem_destroy(struct ttm_problem *problem)
{
    fixture_destroy(&problem->tensor);
    slc_matrix_destroy(&problem->matrix);
    free(problem->coords);
    free(problem->want);
    free(problem->magnitude);
}

enum slc_status ttm_run_open(struct ttm_run *run,
                             const struct ttm_problem *problem,
                             const struct ttm_shape *shape,
                             struct slc_error *err)
{
    struct slc_plan_request request = fixture_request(problem->matrix.cols);
    struct slc_layouts layouts;
    enum slc_status status;

    memset(run, 0, sizeof *run);
    request.operation = SLC_OP_TTM;
    request.mode = problem->mode;
    request.precision = problem->matrix.type;
    request.threads = shape->threads;
    request.gpu = shape->device;
    request.hybrid = shape->hybrid;
    request.streams = shape->streams;
    run->options.job = (struct slc_ttm_job){.order = problem->tensor.order,
                                            .mode = problem->mode,
                                            .form = shape->form,
                                            .fiber_tiles = problem->tensor.run.bits > 0,
                                            .matrix = &problem->matrix};
    run->options.device = shape->device;
    run->options.plan = &run->plan;
    run->options.folder = problem->folder;
    run->options.files = slc_quick_files();
    status = slc_store_open(NULL, problem->store, &run->store, err);
    if (status != SLC_OK) {
        return status;
    }
    layouts = slc_layouts_one(run->store.reader);
    status = slc_ttm_plan(&layouts, &request, &run->plan, &run->options.division, err);
    run->options.workers = run->plan.threads;
    if (status == SLC_OK && shape->least) {
        slc_ttm_divide(&run->options.job, run->plan.threads, run->options.division.outputs, 0,
                       &run->options.division);
    }
    return status == SLC_OK ? stream_one(NULL, run->store.reader, &run->plan, &run->stream, err)
                            : status;
}

void ttm_run_close(struct ttm_run *run)
{
    slc_stream_close(run->stream);
    slc_store_close(&run->store);
}

enum slc_status
ttm_run_multiply(struct ttm_run *run, struct slc_ttm_report *report, struct slc_error *err)
{
    struct slc_npy_pair *pair = NULL;
    enum slc_status status = slc_ttm_stream(run->stream, &run->options, &pair, report, err);

    if (status == SLC_OK) {
        status = slc_npy_pair_publish(pair, err);
    }
    slc_npy_pair_destroy(pair);
    return status;
}

/* A whole file after its header; NULL if it is missing. */
static void *read_file(const char *folder,
                       const char *name,
                       struct slc_npy_header *header,
                       struct ttm_result *result)
{
    char *path = must(slc_path_join(folder, name));
    struct slc_error err = SLC_ERROR_INIT;
    uint32_t offset, length;
    uint64_t bytes, shape_bytes;
    void *data = NULL;

    if (slc_file_load(slc_files_system(), path, UINT64_C(1) << 30, &data, &bytes, NULL) == SLC_OK) {
        SLC_ASSERT_OK(slc_npy_start_parse(data, bytes, &offset, &length, &err), &err);
        SLC_ASSERT_OK(slc_npy_header_parse((char *)data + offset, length, header, &err), &err);
        shape_bytes = header->shape[0] * header->shape[1] * header->item_bytes;
        CU_ASSERT_EQUAL_FATAL(bytes, offset + length + shape_bytes);
        result->bytes += bytes;
        result->hash ^= slc_hash64(data, bytes);
        memmove(data, (char *)data + offset + length, shape_bytes);
    }
    slc_free(path);
    return data;
}

bool ttm_result_read(const char *folder, struct ttm_result *result)
{
    struct slc_npy_header coords, rows;
    float *narrow;

    memset(result, 0, sizeof *result);
    result->coords = read_file(folder, SLC_PAIR_COORDS, &coords, result);
    narrow = read_file(folder, SLC_PAIR_ROWS, &rows, result);
    if (result->coords == NULL || narrow == NULL) {
        slc_free(result->coords);
        slc_free(narrow);
        memset(result, 0, sizeof *result);
        return false;
    }
    CU_ASSERT(coords.kind == 'i' && coords.item_bytes == 8 && rows.kind == 'f');
    CU_ASSERT(coords.shape[0] == rows.shape[0] && coords.dimensions == 2 && rows.dimensions == 2);
    result->fibers = rows.shape[0];
    result->modes = coords.shape[1];
    result->cols = rows.shape[1];
    result->rows = must(slc_calloc(result->fibers * result->cols + 1, sizeof(double)));
    for (uint64_t i = 0; i < result->fibers * result->cols; i++) {
        if (rows.item_bytes == 4) {
            result->rows[i] = (double)narrow[i];
        } else {
            memcpy(&result->rows[i], (char *)narrow + i * sizeof(double), sizeof(double));
        }
    }
    slc_free(narrow);
    return true;
}

void ttm_result_destroy(struct ttm_result *result)
{
    slc_free(result->coords);
    slc_free(result->rows);
}

uint64_t ttm_count_wrong(const struct ttm_problem *problem,
                         const struct ttm_result *result,
                         double tolerance)
{
    const unsigned order = problem->tensor.order;
    const uint32_t cols = problem->matrix.cols;
    struct slc_coo_view view = {.order = order, .nnz = result->fibers};
    uint64_t *sorted = must(calloc(result->fibers + 1, sizeof *sorted));
    uint64_t *number = must(calloc(result->fibers + 1, sizeof *number));
    uint64_t *columns = must(calloc(result->fibers * order + 1, sizeof *columns));
    uint64_t wrong =
        result->fibers != problem->fibers || result->cols != cols || result->modes != order - 1;

    for (unsigned m = 0, k = 0; m < order && wrong == 0; m++) {
        uint64_t *column = columns + m * result->fibers;

        for (uint64_t f = 0; m != problem->mode && f < result->fibers; f++) {
            column[f] = (uint64_t)result->coords[f * result->modes + k];
        }
        k += m != problem->mode;
        view.coords[m] = column;
    }
    /* Distinct fibers are sorted like the oracle's. */
    if (wrong == 0 &&
        slc_reference_fibers(&view, problem->mode, sorted, number) == (order > 1 ? view.nnz : 1)) {
        for (uint64_t f = 0; f < result->fibers; f++) {
            for (unsigned m = 0; m < order; m++) {
                wrong += view.coords[m][sorted[f]] != problem->coords[f * order + m];
            }
            for (uint32_t r = 0; r < cols; r++) {
                const double got = result->rows[sorted[f] * cols + r];

                wrong += !(fabs(got - problem->want[f * cols + r]) <=
                           tolerance * problem->magnitude[f * cols + r]);
            }
        }
    } else if (result->fibers > 0) {
        wrong++;
    }
    free(sorted);
    free(number);
    free(columns);
    return wrong;
}

static int count_name(void *context, const char *name, char kind)
{
    (void)name;
    (void)kind;
    ++*(unsigned *)context;
    return 0;
}

unsigned ttm_folder_names(const char *folder)
{
    const struct slc_files *files = slc_files_system();
    unsigned count = 0;

    (void)files->list_folder(files->self, folder, count_name, &count);
    return count;
}
