/* Creates the random factors of a benchmark. */
#include "tools/bench/measure/factors.h"

#include "base/memory/checked.h"
#include "base/random.h"
#include "base/thread/team.h"

/* Number of rows that a thread fills at a time. */
enum { FILL_ROWS = 4096 };

struct fill {
    struct slc_matrix *matrix;
    unsigned mode;
};

static void fill_rows(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct fill *fill = context;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        for (uint32_t r = 0; r < fill->matrix->cols; r++) {
            slc_matrix_set(fill->matrix, i, r,
                           slc_random_f64(1, fill->mode, i * fill->matrix->cols + r));
        }
    }
}

enum slc_status bench_factors_create(struct bench_factors *factors,
                                     const struct slc_manifest *manifest,
                                     enum slc_value_type precision,
                                     uint32_t rank,
                                     unsigned threads,
                                     struct slc_error *err)
{
    uint64_t rows_max = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        struct fill fill = {&factors->factors[n], n};

        rows_max = slc_max_u64(rows_max, manifest->dims[n]);
        SLC_TRY(slc_matrix_create(&factors->factors[n], precision, manifest->dims[n], rank, err));
        SLC_TRY(slc_team_for(threads, manifest->dims[n], FILL_ROWS, fill_rows, &fill, err));
    }
    return slc_matrix_create(&factors->output, precision, rows_max, rank, err);
}

struct slc_mttkrp_job bench_factors_job(const struct bench_factors *factors,
                                        const struct slc_manifest *manifest,
                                        unsigned mode,
                                        struct slc_matrix *output)
{
    struct slc_mttkrp_job job = {.order = manifest->order,
                                 .mode = mode,
                                 .rank = factors->output.cols,
                                 .nnz = manifest->nnz,
                                 .output = output};

    *output = factors->output;
    output->rows = manifest->dims[mode];
    for (unsigned n = 0; n < manifest->order; n++) {
        job.factors[n] = &factors->factors[n];
    }
    return job;
}

void bench_factors_destroy(struct bench_factors *factors)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&factors->factors[n]);
    }
    slc_matrix_destroy(&factors->output);
}
