/* Divides TTM and MTTKRP over compressed sparse fibers into units of work, which the kernels of
 * xplat_kernels.h compute. */
#include "tools/bench/rivals/cpu/xplat.h"

#include "base/thread/team.h"
#include "cpu/kernel/kernels.h"
#include "cpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/cpu/xplat_kernels.h"

#include <inttypes.h>
#include <string.h>

/* Ranges of units per thread: so few that starting a range takes no time, and so many that slices
 * and fibers of unequal size keep all threads busy. */
enum { RANGES_EACH = 64 };

const char *slc_xplat_kernel_name(enum slc_xplat_kernel kernel)
{
    static const char *const names[] = {"xplat-element", "xplat-fiber", "xplat-element",
                                        "xplat-row"};

    return (unsigned)kernel < SLC_XPLAT_KERNELS ? names[kernel] : "?";
}

/* Returns the kernels for the instruction set in use (cpu/kernel/kernels.h). */
static const struct slc_xplat_table *table_in_use(void)
{
    static const struct slc_xplat_table *const tables[] = {
        &slc_xplat_portable,
#ifdef SLC_HAVE_AVX2
        &slc_xplat_avx2,
#endif
#ifdef SLC_HAVE_AVX512
        &slc_xplat_avx512,
#endif
#ifdef SLC_HAVE_NEON
        &slc_xplat_neon,
#endif
    };
    const char *set = slc_kernels()->name;
    size_t t = sizeof tables / sizeof tables[0] - 1;

    while (t > 0 && strcmp(tables[t]->set, set) != 0) {
        t--;
    }
    return tables[t];
}

struct run {
    struct slc_xplat_span span;
    slc_xplat_fn *kernel;
};

static void compute_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct run *run = context;

    (void)worker;
    run->kernel(&run->span, begin, end);
}

/* Computes `rows` rows of the output. */
static enum slc_status run_kernel(struct run *run,
                                  enum slc_xplat_kernel kernel,
                                  uint64_t rows,
                                  unsigned workers,
                                  struct slc_error *err)
{
    const struct slc_xplat_table *table = table_in_use();
    const bool elements = kernel == SLC_XPLAT_TTM_ELEMENT || kernel == SLC_XPLAT_MTTKRP_ELEMENT;
    const unsigned row_log2 = 63U - (unsigned)__builtin_clzll(run->span.row_bytes);
    /* A row of less than a vector is one narrow vector. */
    const unsigned width = row_log2 < table->vector_log2 ? row_log2 : table->vector_log2;
    const uint64_t units = elements ? rows * (run->span.row_bytes >> width) : rows;

    run->kernel = (run->span.csf->type == SLC_F32 ? table->f32 : table->f64)[kernel][width];
    return units == 0 ? SLC_OK
                      : slc_team_for(workers, units, units / workers / RANGES_EACH + 1,
                                     compute_range, run, err);
}

static enum slc_status mismatch(const char *what, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE, "the slices and fibers do not match %s", what);
}

/* Returns true if a matrix has a row for each index of a mode. */
static bool covers(const struct slc_csf *csf, unsigned mode, const struct slc_matrix *matrix)
{
    return matrix->rows == csf->dims[mode] && matrix->type == csf->type;
}

enum slc_status slc_xplat_ttm(const struct slc_csf *csf,
                              enum slc_xplat_kernel kernel,
                              const struct slc_matrix *matrix,
                              struct slc_matrix *rows,
                              unsigned workers,
                              struct slc_error *err)
{
    struct run run = {.span = {.csf = csf,
                               .row_bytes = slc_matrix_row_bytes(matrix),
                               .matrix = matrix->buffer.data,
                               .output = rows->buffer.data}};

    if (csf->slice_begin != NULL || kernel > SLC_XPLAT_TTM_FIBER ||
        !covers(csf, csf->fiber_mode, matrix) || rows->type != csf->type ||
        rows->rows != csf->fibers || rows->cols != matrix->cols) {
        return mismatch("the matrices of the TTM", err);
    }
    return run_kernel(&run, kernel, csf->fibers, workers, err);
}

/* Adds the matrices by which the sum of a fiber is multiplied. */
static void
set_shared(const struct slc_csf *csf, const struct slc_mttkrp_job *job, struct slc_xplat_span *span)
{
    for (unsigned m = 0; m < csf->order; m++) {
        if (csf->fiber_index[m] != NULL) {
            span->shared[span->shared_count] = job->factors[m]->buffer.data;
            span->shared_index[span->shared_count++] = csf->fiber_index[m];
        }
    }
}

enum slc_status slc_xplat_mttkrp(const struct slc_csf *csf,
                                 enum slc_xplat_kernel kernel,
                                 const struct slc_mttkrp_job *job,
                                 struct slc_error *err)
{
    struct run run = {.span = {.csf = csf, .output = job->output->buffer.data}};

    SLC_TRY(slc_mttkrp_check_job(job, err));
    bool fits = kernel >= SLC_XPLAT_MTTKRP_ELEMENT && kernel < SLC_XPLAT_KERNELS &&
                job->order == csf->order && job->mode == csf->slice_mode;
    for (unsigned m = 0; m < job->order && fits; m++) {
        fits = covers(csf, m, m == job->mode ? job->output : job->factors[m]);
    }
    if (!fits) {
        return mismatch("the MTTKRP", err);
    }
    run.span.row_bytes = slc_matrix_row_bytes(job->output);
    run.span.matrix = job->factors[csf->fiber_mode]->buffer.data;
    set_shared(csf, job, &run.span);
    return run_kernel(&run, kernel, csf->slices, job->workers, err);
}
