/* Runs MTTKRPs on the emulated device and compares them with the oracle. */
#include "mttkrp_problem.h"

#include "gpu/decode/expand.h"
#include "gpu/decode/transcode.h"

extern "C" {
#include "base/random.h"
#include "slc_test.h"
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "mttkrp_problem: %s: %s\n", what, cudaGetErrorName(error));
        exit(1);
    }
}

struct mttkrp_way mttkrp_plain_way(void)
{
    return {false, 0, false, 1, 1, 1, false, false, false, {2, 227 << 10, 90}};
}

/* ---- factors and the oracle */

typedef void oracle_function(const struct slc_coo_view *,
                             const struct slc_matrix *const *,
                             unsigned,
                             uint64_t,
                             uint32_t,
                             double *);

static void
ask_oracle(const struct mttkrp_problem *problem, oracle_function *oracle, std::vector<double> *sums)
{
    const struct slc_encoded_layout *layout = &problem->batch.layout;
    const uint64_t rows = layout->dims[problem->mode];
    struct slc_matrix matrices[SLC_MAX_ORDER];
    const struct slc_matrix *factors[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < layout->order; n++) {
        SLC_ASSERT_OK(
            slc_matrix_create(&matrices[n], SLC_F64, layout->dims[n], problem->rank, &err), &err);
        for (uint64_t i = 0; i < layout->dims[n]; i++) {
            memcpy(slc_matrix_row_f64(&matrices[n], i), &problem->factor[n][i * problem->rank],
                   problem->rank * sizeof(double));
        }
        factors[n] = &matrices[n];
    }
    sums->resize(rows * problem->rank);
    oracle(&problem->batch.coo, factors, problem->mode, rows, problem->rank, sums->data());
    for (unsigned n = 0; n < layout->order; n++) {
        slc_matrix_destroy(&matrices[n]);
    }
}

void mttkrp_problem_make(struct mttkrp_problem *problem,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type precision,
                         bool integers)
{
    const struct slc_encoded_layout *layout = &problem->batch.layout;

    problem->mode = mode;
    problem->rank = rank;
    problem->precision = precision;
    for (std::vector<double> &factor : problem->factor) {
        if (problem->integers != integers) {
            factor.clear();
        }
    }
    problem->integers = integers;
    for (unsigned n = 0; n < layout->order; n++) {
        size_t i = problem->factor[n].size();

        problem->factor[n].resize(layout->dims[n] * rank);
        for (; i < problem->factor[n].size(); i++) {
            problem->factor[n][i] =
                integers ? (double)slc_random_below(slc_test_seed(), n, i, 5) - 2
                         : (double)(float)(2 * slc_random_f64(slc_test_seed(), n, i) - 1);
        }
    }
    ask_oracle(problem, slc_reference_mttkrp, &problem->want);
    problem->magnitude.clear();
}

uint64_t
mttkrp_wrong(struct mttkrp_problem *problem, const struct mttkrp_result *result, double tolerance)
{
    uint64_t wrong = 0;

    if (tolerance > 0 && problem->magnitude.empty()) {
        ask_oracle(problem, slc_reference_mttkrp_magnitude, &problem->magnitude);
    }
    for (size_t i = 0; i < problem->want.size(); i++) {
        const double allowed = tolerance > 0 ? tolerance * problem->magnitude[i] : 0;

        wrong += !(fabs(result->values[i] - problem->want[i]) <= allowed);
    }
    return wrong;
}

/* ---- matrices on the device */

static size_t factor_bytes(enum slc_value_type precision)
{
    return precision == SLC_F64 ? sizeof(double) : sizeof(float);
}

/* Rows of `cols` numbers (NULL: zeros) of `bytes` bytes each, followed by `padding`. */
static struct slc_gpu_matrix upload(struct batch_fixture *batch,
                                    const double *numbers,
                                    uint64_t rows,
                                    uint32_t cols,
                                    size_t bytes,
                                    double padding)
{
    const uint32_t part = (uint32_t)(16 / bytes), pitch = (cols + part - 1) / part * part;
    std::vector<double> wide(rows * pitch, padding);
    std::vector<float> narrow;

    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t c = 0; c < cols; c++) {
            wide[i * pitch + c] = numbers == nullptr ? 0 : numbers[i * cols + c];
        }
    }
    if (bytes == sizeof(float)) {
        narrow.assign(wide.begin(), wide.end());
        return {batch_to_device(batch, narrow.data(), narrow.size() * bytes), rows, cols, pitch, 0};
    }
    return {batch_to_device(batch, wide.data(), wide.size() * bytes), rows, cols, pitch, 0};
}

static void download_output(struct batch_fixture *batch,
                            const struct slc_gpu_matrix *output,
                            struct mttkrp_result *result)
{
    std::vector<double> wide(output->rows * output->pitch);

    batch_download(batch, wide.data(), output->data, wide.size() * sizeof(double));
    result->padding_lives = true;
    for (uint64_t i = 0; i < output->rows; i++) {
        for (uint32_t c = 0; c < output->pitch; c++) {
            const uint32_t place =
                c < output->cols ? slc_gpu_place_of_column(output->cols, output->split, c) : c;
            const double number = wide[i * output->pitch + place];

            if (c < output->cols) {
                result->values.push_back(number);
            } else {
                result->padding_lives &= std::isnan(number);
            }
        }
    }
}

/* ---- a run */

struct launches {
    struct batch_fixture *batch;
    const struct mttkrp_way *way;
    std::vector<struct slc_gpu_mttkrp> jobs; /* one per device */
    cudaStream_t streams[2];
};

/* Exact sums of one device, initialized. */
static void begin_exact(struct mttkrp_problem *problem, struct slc_gpu_mttkrp *job)
{
    const struct slc_encoded_layout *layout = &problem->batch.layout;
    struct batch_fixture *batch = &problem->batch;
    const uint64_t rows = layout->dims[problem->mode];
    double squares = 0;
    auto *largest = static_cast<double *>(
        batch_to_device(batch, nullptr, layout->order * problem->rank * sizeof(double)));

    for (double value : batch->values) {
        squares += value * value;
    }
    job->exact.words = static_cast<unsigned long long *>(
        batch_to_device(batch, nullptr, slc_exact_sum_words(rows, problem->rank) * 8));
    job->exact.scale =
        static_cast<double *>(batch_to_device(batch, nullptr, problem->rank * sizeof(double)));
    for (unsigned n = 0; n < layout->order; n++) {
        if (n != problem->mode) {
            must(slc_exact_sum_largest(&job->factor[n], problem->precision,
                                       largest + (size_t)n * problem->rank, batch->stream),
                 "largest magnitudes");
        }
    }
    must(slc_exact_sum_begin(&job->exact, rows, problem->rank, largest, layout->order,
                             problem->mode, sqrt((double)batch->values.size() * squares),
                             batch->stream),
         "beginning exact sums");
}

static void end_exact(struct mttkrp_problem *problem,
                      const std::vector<struct slc_gpu_mttkrp> &jobs,
                      struct mttkrp_result *result)
{
    const struct slc_gpu_mttkrp *first = &jobs[0];
    const uint64_t words = slc_exact_sum_words(first->output.rows, problem->rank);

    for (size_t d = 1; d < jobs.size(); d++) {
        must(slc_exact_sum_add(first->exact.words, jobs[d].exact.words, words,
                               problem->batch.stream),
             "adding exact sums");
    }
    must(slc_exact_sum_finish(&first->exact, first->output.rows, 0, &first->output,
                              problem->batch.stream),
         "finishing exact sums");
    result->words.resize(words);
    batch_download(&problem->batch, result->words.data(), first->exact.words, words * 8);
}

/* Launches tiles [begin, end) as a separate batch. */
static void launch_tiles(const struct launches *launches, uint32_t begin, uint32_t end, uint32_t k)
{
    const struct mttkrp_way *way = launches->way;
    struct slc_gpu_batch batch = launches->batch->batch;
    const struct slc_gpu_mttkrp *job = &launches->jobs[k % way->devices];
    const uint32_t chunk_nnz = batch.chunk_runs * SLC_RUN_NNZ;
    std::vector<uint32_t> chunk_begin(1, 0);
    uint32_t t = 0;

    for (const struct batch_block &block : launches->batch->blocks) {
        for (const struct slc_encoded_tile &tile : block.tiles) {
            if (t >= begin && t < end) {
                chunk_begin.push_back(chunk_begin.back() + (tile.nnz + chunk_nnz - 1) / chunk_nnz);
            }
            t++;
        }
    }
    batch.tiles += begin;
    batch.transcoded += batch.transcoded != nullptr ? begin : 0;
    batch.tile_count = end - begin;
    batch.chunk_count = chunk_begin.back();
    batch.chunk_begin = static_cast<const uint32_t *>(batch_to_device(
        launches->batch, chunk_begin.data(), chunk_begin.size() * sizeof chunk_begin[0]));
    must(slc_gpu_mttkrp_batch(job, &batch, &way->machine, launches->streams[k % way->streams]),
         "slc_gpu_mttkrp_batch");
}

static void launch_all(const struct launches *launches)
{
    const uint32_t tiles = launches->batch->batch.tile_count;
    const uint32_t each =
        launches->way->launch_tiles == 0 ? std::max(tiles, 1U) : launches->way->launch_tiles;
    const uint32_t count = (tiles + each - 1) / each;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t k = launches->way->backwards ? count - 1 - i : i;

        launch_tiles(launches, k * each, std::min(tiles, (k + 1) * each), k);
    }
    must(cudaStreamSynchronize(launches->streams[0]), "kernels");
    must(cudaStreamSynchronize(launches->streams[1]), "kernels");
}

struct mttkrp_result mttkrp_problem_run(struct mttkrp_problem *problem,
                                        const struct mttkrp_way *way)
{
    const struct slc_emulation emulation = {1, (size_t)256 << 20, 227 << 10, 4, way->seed};
    const unsigned order = problem->batch.layout.order;
    struct batch_fixture *batch = &problem->batch;
    struct slc_gpu_mttkrp job = {};
    unsigned long long somewhere;
    struct launches launches = {batch, way, {}, {}};
    struct mttkrp_result result = {};
    struct slc_gpu_transcoded_tiles transcoded = {};
    struct slc_gpu_fault fault;

    slc_emulation_set(&emulation);
    job.order = order;
    job.mode = problem->mode;
    job.rank = problem->rank;
    job.precision = problem->precision;
    job.output.rows = batch->layout.dims[problem->mode];
    job.exact.words = way->exact ? &somewhere : nullptr;
    CU_ASSERT_FATAL(slc_gpu_mttkrp_plan(&job, &way->machine, &result.plan));
    CU_ASSERT_EQUAL(slc_gpu_mttkrp_chunk_runs(&job, &way->machine), result.plan.chunk_runs);
    batch_upload(batch, result.plan.chunk_runs, !way->expand_there);
    if (way->expand_there) {
        must(slc_gpu_expand(batch->batch.tiles, batch->batch.tile_count, batch->batch.fault,
                            batch->stream),
             "expanding");
    }
    for (unsigned n = 0; n < order; n++) {
        if (n != problem->mode) {
            job.factor[n] = upload(batch, problem->factor[n].data(), batch->layout.dims[n],
                                   problem->rank, factor_bytes(problem->precision), 0);
        }
    }
    job.output = upload(batch, nullptr, job.output.rows, problem->rank, sizeof(double), NAN);
    if (!way->exact && !way->natural) {
        job.output.split = slc_gpu_mttkrp_split(problem->rank, problem->precision);
    }
    for (unsigned d = 0; d < way->devices; d++) {
        if (way->exact) {
            begin_exact(problem, &job);
        }
        launches.jobs.push_back(job);
    }
    must(cudaStreamSynchronize(batch->stream), "beginning");
    if (way->transcoded && batch->batch.tile_count > 0) {
        must(slc_gpu_transcode(batch->batch.tiles, batch->batch.tile_count, batch->batch.layout,
                               order, UINT64_MAX, batch->batch.fault, &transcoded, batch->stream),
             "transcoding");
        batch->batch.transcoded = transcoded.tiles;
    }
    launches.streams[0] = batch->stream;
    must(cudaStreamCreateWithFlags(&launches.streams[1], cudaStreamNonBlocking), "a stream");
    launch_all(&launches);
    must(cudaStreamDestroy(launches.streams[1]), "a stream");
    if (way->exact) {
        end_exact(problem, launches.jobs, &result);
    }
    download_output(batch, &job.output, &result);
    result.fault = batch_fault(batch, &fault);
    slc_gpu_transcoded_destroy(&transcoded);
    batch->batch.transcoded = nullptr;
    batch_release(batch);
    slc_emulation_reset();
    return result;
}
