/* The kernels of `bench ttv` on the fibers of one mode. */
#ifndef SLC_TOOLS_BENCH_TTV_KERNELS_H
#define SLC_TOOLS_BENCH_TTV_KERNELS_H

#include "tools/bench/product/ttv_tensor.h"
#include "tools/session/session.h"

#include <stdbool.h>

/* Memory of a matrix in CSR form, a row per fiber. */
struct ttv_csr {
    uint64_t *begin; /* fibers + 1 */
    uint32_t *index;
    double *values;
    struct slc_buffer memory;
};

enum ttv_kernel {
    TTV_SLUICE,      /* tools/bench/rivals/cpu/sptv.h, as the options want it */
    TTV_EMPTY,       /* the same with empty fibers */
    TTV_KEEP_UNUSED, /* .. with the whole vector */
    TTV_DROP_UNUSED, /* .. with a vector of the indices that occur */
    TTV_LARGEST,     /* .. with all blocks largest first */
    TTV_FILE_ORDER,  /* .. with blocks in the order of the file */
    TTV_TILES,       /* runs straight from encoded tiles, of their own mode alone */
    TTV_COO,
    TTV_COO_SORTED,
    TTV_CSR,
    TTV_KERNELS
};
const char *ttv_kernel_name(enum ttv_kernel kernel);

/* What switches of a form are on in kernel TTV_SLUICE. */
struct ttv_switches {
    bool keep_empty;
    struct slc_sptv_options options;
};

/* One mode, ready to be multiplied. */
struct ttv_job {
    struct ttv_fibers fibers;
    double *vector; /* random */
    double *sums;   /* of every fiber that a kernel knows */
    double *want, *magnitude;
    struct slc_buffer memory; /* of these four */
    bool has[TTV_KERNELS];
    struct slc_sptv form[TTV_FILE_ORDER + 1];
    bool dense_form[TTV_FILE_ORDER + 1]; /* its sums are those of all fibers */
    double build_seconds[TTV_FILE_ORDER + 1];
    struct slc_buffer dense; /* of the source with empty fibers */
    struct slc_sptv_source dense_source;
    bool dense_left_out; /* the budget has no room for empty fibers */
    struct ttv_csr csr;
    struct slc_session *session; /* TTV_TILES: all blocks are in memory */
};

/*
 * Finds the fibers and makes what the wanted kernels compute from. Where empty fibers do not fit
 * into memory_bytes those kernels are left out. Owns: ttv_job_destroy, which takes an all-zero
 * struct. Errors: those of memory.
 */
enum slc_status ttv_job_create(struct ttv_job *job,
                               const struct ttv_tensor *tensor,
                               unsigned mode,
                               const bool wanted[TTV_KERNELS],
                               const struct ttv_switches *switches,
                               uint64_t memory_bytes,
                               struct slc_error *err) SLC_NODISCARD;
void ttv_job_destroy(struct ttv_job *job);

/* One product; *convert_seconds: of TTV_CSR, what of it was conversion. */
enum slc_status ttv_job_run(struct ttv_job *job,
                            enum ttv_kernel kernel,
                            unsigned workers,
                            double *convert_seconds,
                            struct slc_error *err) SLC_NODISCARD;

/*
 * The largest error of the sums that the last run left, relative to the sums of magnitudes; 0 for
 * TTV_TILES, which keeps none.
 */
double ttv_job_error(const struct ttv_job *job, enum ttv_kernel kernel);

/* Bytes that a product moves at least once; 0 where that is not told. */
uint64_t ttv_job_moved_bytes(const struct ttv_job *job, enum ttv_kernel kernel);

/* The form of a kernel of tools/bench/rivals/cpu/sptv.h, or NULL. */
const struct slc_sptv *ttv_job_form(const struct ttv_job *job, enum ttv_kernel kernel);

#endif
