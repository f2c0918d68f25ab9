/* See ttv_baselines.h. */
#include "tools/bench/product/ttv_baselines.h"

#include "base/error/clock.h"
#include "base/thread/team.h"

#include <string.h>

enum {
    /* Nonzeros that a thread takes at a time. */
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

enum slc_status ttv_coo(const struct ttv_fibers *fibers,
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

/* A piece begins and ends where a fiber does. */
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

enum slc_status ttv_coo_sorted(const struct ttv_fibers *fibers,
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

enum slc_status
ttv_csr_create(struct ttv_csr *csr, const struct ttv_fibers *fibers, struct slc_error *err)
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

void ttv_csr_destroy(struct ttv_csr *csr)
{
    slc_buffer_destroy(&csr->memory);
    memset(csr, 0, sizeof *csr);
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
    /* Each entry has moved to where the next row begins. */
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

enum slc_status ttv_csr_multiply(struct ttv_csr *csr,
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
