/* Runs the kernels of `bench ttv`. The baselines come first in this file. A baseline is given the
 * number of the fiber of each nonzero, so that it need not search for the position of a sum. */
#include "tools/bench/product/ttv_kernels.h"

#include "base/error/clock.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "cpu/fiber/fiber_dots.h"
#include "cpu/kernel/kernels.h"
#include "tools/bench/measure/resident.h"

#include <math.h>
#include <string.h>

enum {
    /* numbers of nonzeros and of fibers that a thread processes at a time */
    PIECE_NNZ = 32768,
    PIECE_ROWS = 8192
};

struct product {
    const struct ttv_fibers *fibers;
    const struct ttv_csr *csr;
    const double *vector;
    double *sums;
};

static void add_atomically(double *at, double value)
{
    double old, sum;

    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do {
        sum = old + value;
    } while (!__atomic_compare_exchange(at, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void atomic_piece(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct product *product = context;
    const struct ttv_fibers *fibers = product->fibers;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        add_atomically(&product->sums[fibers->row[i]],
                       fibers->values[i] * product->vector[fibers->index[i]]);
    }
}

/* Baseline COO: processes each nonzero alone, in the order of the store, for every mode. With
 * several threads, additions are atomic. Errors: SLC_ERR_SYSTEM. */
static enum slc_status multiply_coo(const struct ttv_fibers *fibers,
                                    const double *vector,
                                    double *sums,
                                    unsigned workers,
                                    struct slc_error *err)
{
    struct product product = {.fibers = fibers, .vector = vector, .sums = sums};

    memset(sums, 0, fibers->count * sizeof *sums);
    if (workers > 1) {
        return slc_team_for(workers, fibers->nnz, PIECE_NNZ, atomic_piece, &product, err);
    }
    for (uint64_t i = 0; i < fibers->nnz; i++) {
        sums[fibers->row[i]] += fibers->values[i] * vector[fibers->index[i]];
    }
    return SLC_OK;
}

/* Multiplies the fibers whose first nonzero is one of `begin` to `end` - 1. */
static void sorted_piece(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct product *product = context;
    const struct ttv_fibers *fibers = product->fibers;
    const uint32_t *row = fibers->sorted_row;

    (void)worker;
    while (begin > 0 && begin < fibers->nnz && row[begin] == row[begin - 1]) {
        begin++;
    }
    while (end < fibers->nnz && row[end] == row[end - 1]) {
        end++;
    }
    for (uint64_t i = begin; i < end; i++) {
        product->sums[row[i]] +=
            fibers->sorted_values[i] * product->vector[fibers->sorted_index[i]];
    }
}

/* Baseline COO sorted by fibers: each thread processes whole fibers, so threads share no sum. */
static enum slc_status multiply_sorted(const struct ttv_fibers *fibers,
                                       const double *vector,
                                       double *sums,
                                       unsigned workers,
                                       struct slc_error *err)
{
    struct product product = {.fibers = fibers, .vector = vector, .sums = sums};

    memset(sums, 0, fibers->count * sizeof *sums);
    if (workers > 1) {
        return slc_team_for(workers, fibers->nnz, PIECE_NNZ, sorted_piece, &product, err);
    }
    sorted_piece(&product, 0, fibers->nnz, 0);
    return SLC_OK;
}

static enum slc_status
create_csr(struct ttv_csr *csr, const struct ttv_fibers *fibers, struct slc_error *err)
{
    const uint64_t rows = fibers->count + 1;

    SLC_TRY(slc_buffer_create(&csr->memory,
                              rows * sizeof(uint64_t) +
                                  (fibers->nnz + 1) * (sizeof(double) + sizeof(uint32_t)),
                              SLC_PAGES_SMALL, err));
    csr->begin = csr->memory.data;
    csr->values = (double *)(void *)(csr->begin + rows);
    csr->index = (uint32_t *)(void *)(csr->values + fibers->nnz + 1);
    return SLC_OK;
}

static void convert(struct ttv_csr *csr, const struct ttv_fibers *fibers)
{
    uint64_t at = 0;

    memset(csr->begin, 0, (fibers->count + 1) * sizeof *csr->begin);
    for (uint64_t i = 0; i < fibers->nnz; i++) {
        csr->begin[fibers->row[i]]++;
    }
    for (uint64_t r = 0; r <= fibers->count; r++) {
        const uint64_t count = csr->begin[r];

        csr->begin[r] = at;
        at += count;
    }
    for (uint64_t i = 0; i < fibers->nnz; i++) {
        const uint64_t to = csr->begin[fibers->row[i]]++;

        csr->index[to] = fibers->index[i];
        csr->values[to] = fibers->values[i];
    }
    /* Element f now has the start of row f + 1. */
    memmove(csr->begin + 1, csr->begin, fibers->count * sizeof *csr->begin);
    csr->begin[0] = 0;
}

static void csr_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct product *product = context;
    const struct ttv_csr *csr = product->csr;

    (void)worker;
    for (uint64_t r = begin; r < end; r++) {
        double sum = 0;

        for (uint64_t i = csr->begin[r]; i < csr->begin[r + 1]; i++) {
            sum += csr->values[i] * product->vector[csr->index[i]];
        }
        product->sums[r] = sum;
    }
}

/* Baseline CSR: converts the list with one thread, by a counting sort, and multiplies with all
 * threads. Sets *convert_seconds to the time of the conversion. Errors: SLC_ERR_SYSTEM. */
static enum slc_status multiply_csr(struct ttv_csr *csr,
                                    const struct ttv_fibers *fibers,
                                    const double *vector,
                                    double *sums,
                                    unsigned workers,
                                    double *convert_seconds,
                                    struct slc_error *err)
{
    struct product product = {.fibers = fibers, .csr = csr, .vector = vector, .sums = sums};
    const uint64_t start_ns = slc_clock_ns();

    convert(csr, fibers);
    *convert_seconds = slc_seconds_since(start_ns);
    if (workers > 1) {
        return slc_team_for(workers, fibers->count, PIECE_ROWS, csr_rows, &product, err);
    }
    csr_rows(&product, 0, fibers->count, 0);
    return SLC_OK;
}

const char *ttv_kernel_name(enum ttv_kernel kernel)
{
    static const char *const names[TTV_KERNELS] = {
        "sluice",        "keep-empty-fibers", "keep-unused", "drop-unused", "schedule-largest",
        "schedule-file", "from-tiles",        "coo",         "coo-sorted",  "csr"};

    return names[kernel];
}

static bool is_form(enum ttv_kernel kernel)
{
    return kernel <= TTV_FILE_ORDER;
}

/* Returns the switches of a kernel: those of the options, with one of them changed. */
static struct ttv_switches switches_of(enum ttv_kernel kernel, const struct ttv_switches *given)
{
    struct ttv_switches switches = *given;

    switches.keep_empty = switches.keep_empty || kernel == TTV_EMPTY;
    if (kernel == TTV_KEEP_UNUSED || kernel == TTV_DROP_UNUSED) {
        switches.options.unused =
            kernel == TTV_KEEP_UNUSED ? SLC_SPTV_UNUSED_KEEP : SLC_SPTV_UNUSED_DROP;
    }
    if (kernel == TTV_LARGEST || kernel == TTV_FILE_ORDER) {
        switches.options.schedule = kernel == TTV_LARGEST ? SLC_SPTV_LARGEST : SLC_SPTV_FILE;
    }
    return switches;
}

/* Builds the list of all fibers, including empty fibers, for kernels that store empty fibers. Omits
 * the list if it exceeds the budget, unless the options demand empty fibers. */
static enum slc_status make_dense(struct ttv_job *job,
                                  const bool wanted[TTV_KERNELS],
                                  const struct ttv_switches *given,
                                  uint64_t memory_bytes,
                                  struct slc_error *err)
{
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = SLC_OK;

    if (!wanted[TTV_EMPTY] && !given->keep_empty) {
        return SLC_OK;
    }
    status =
        ttv_fibers_dense(&job->fibers, memory_bytes, &job->dense, &job->dense_source, &refused);
    if (status == SLC_ERR_BUDGET && !given->keep_empty) {
        job->dense_left_out = true;
        return SLC_OK;
    }
    if (status != SLC_OK && err != NULL) {
        *err = refused;
    }
    return status;
}

static enum slc_status make_form(struct ttv_job *job,
                                 enum ttv_kernel kernel,
                                 const struct ttv_switches *given,
                                 struct slc_error *err)
{
    const struct ttv_switches switches = switches_of(kernel, given);
    const struct ttv_fibers *fibers = &job->fibers;
    const struct slc_sptv_source source = {fibers->length, fibers->count, fibers->begin,
                                           fibers->sorted_index, fibers->sorted_values};
    const uint64_t start_ns = slc_clock_ns();

    if (switches.keep_empty && job->dense_left_out) {
        return SLC_OK;
    }
    enum slc_status status =
        slc_sptv_create(&job->form[kernel], switches.keep_empty ? &job->dense_source : &source,
                        &switches.options, err);
    job->build_seconds[kernel] = slc_seconds_since(start_ns);
    job->has[kernel] = status == SLC_OK;
    job->dense_form[kernel] = switches.keep_empty;
    return status;
}

static enum slc_status make_vectors(struct ttv_job *job, struct slc_error *err)
{
    const struct ttv_fibers *fibers = &job->fibers;
    const uint64_t sums =
        job->dense_source.fibers > fibers->count ? job->dense_source.fibers : fibers->count;
    const uint64_t numbers = fibers->length + sums + 2 * fibers->count + 4;

    SLC_TRY(slc_buffer_create(&job->memory, numbers * sizeof(double), SLC_PAGES_HUGE, err));
    job->vector = job->memory.data;
    job->sums = job->vector + fibers->length + 1;
    job->want = job->sums + sums + 1;
    job->magnitude = job->want + fibers->count + 1;
    for (uint64_t i = 0; i < fibers->length; i++) {
        job->vector[i] = 2 * slc_random_f64(1, fibers->mode, i) - 1;
    }
    for (uint64_t k = 0; k < fibers->nnz; k++) {
        const double product = fibers->sorted_values[k] * job->vector[fibers->sorted_index[k]];

        job->want[fibers->sorted_row[k]] += product;
        job->magnitude[fibers->sorted_row[k]] += fabs(product);
    }
    return SLC_OK;
}

enum slc_status ttv_job_create(struct ttv_job *job,
                               const struct ttv_tensor *tensor,
                               unsigned mode,
                               const bool wanted[TTV_KERNELS],
                               const struct ttv_switches *switches,
                               uint64_t memory_bytes,
                               struct slc_error *err)
{
    enum slc_status status = ttv_fibers_create(&job->fibers, tensor, mode, err);

    SLC_THEN(status, make_dense(job, wanted, switches, memory_bytes, err));
    for (enum ttv_kernel k = 0; k < TTV_KERNELS && status == SLC_OK; k++) {
        if (!wanted[k]) {
            continue;
        }
        if (is_form(k)) {
            status = make_form(job, k, switches, err);
        } else if (k == TTV_CSR) {
            status = create_csr(&job->csr, &job->fibers, err);
            job->has[k] = status == SLC_OK;
        } else {
            job->has[k] = k != TTV_TILES;
        }
    }
    return status == SLC_OK ? make_vectors(job, err) : status;
}

void ttv_job_destroy(struct ttv_job *job)
{
    for (unsigned k = 0; k <= TTV_FILE_ORDER; k++) {
        slc_sptv_destroy(&job->form[k]);
    }
    slc_buffer_destroy(&job->csr.memory);
    ttv_fibers_destroy(&job->fibers);
    slc_buffer_destroy(&job->dense);
    slc_buffer_destroy(&job->memory);
    memset(job, 0, sizeof *job);
}

/* Computes the dot products of the fiber runs of a tile, but discards them, which favours this
 * kernel. */
static enum slc_status
dot_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct ttv_job *job = context;
    const double *vector = job->vector + tile->corner[job->fibers.mode];
    struct slc_fiber_view fibers = {.nnz = 1};
    double sums[SLC_CHUNK_NNZ];

    (void)worker;
    while (fibers.nnz > 0) {
        SLC_TRY(tile->next_fibers(tile, SLC_CHUNK_NNZ, &fibers, err));
        if (fibers.nnz > 0) {
            slc_fiber_dots(&fibers, vector, sums);
        }
    }
    return SLC_OK;
}

enum slc_status ttv_job_run(struct ttv_job *job,
                            enum ttv_kernel kernel,
                            unsigned workers,
                            double *convert_seconds,
                            struct slc_error *err)
{
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = dot_tile, .context = job}}};

    bool is_finite;

    *convert_seconds = 0;
    switch (kernel) {
    case TTV_COO:
        return multiply_coo(&job->fibers, job->vector, job->sums, workers, err);
    case TTV_COO_SORTED:
        return multiply_sorted(&job->fibers, job->vector, job->sums, workers, err);
    case TTV_CSR:
        return multiply_csr(&job->csr, &job->fibers, job->vector, job->sums, workers,
                            convert_seconds, err);
    case TTV_TILES:
        return slc_stream_pass(job->session->stream, &pass, err);
    default:
        return slc_sptv_multiply(&job->form[kernel], job->vector, job->sums, workers, &is_finite,
                                 err);
    }
}

double ttv_job_error(const struct ttv_job *job, enum ttv_kernel kernel)
{
    const bool dense = is_form(kernel) && job->dense_form[kernel];
    double worst = 0;

    for (uint64_t f = 0; kernel != TTV_TILES && f < job->fibers.count; f++) {
        const double sum = job->sums[dense ? job->fibers.dense_at[f] : f];
        const double error = fabs(sum - job->want[f]);

        if (error > worst * job->magnitude[f]) {
            worst = error / job->magnitude[f];
        }
    }
    return worst;
}

uint64_t ttv_job_moved_bytes(const struct ttv_job *job, enum ttv_kernel kernel)
{
    return is_form(kernel) ? slc_sptv_moved_bytes(&job->form[kernel]) : 0;
}

const struct slc_sptv *ttv_job_form(const struct ttv_job *job, enum ttv_kernel kernel)
{
    return is_form(kernel) ? &job->form[kernel] : NULL;
}
