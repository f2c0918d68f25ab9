/* Runs the kernels of `bench ttv` on the fibers of one mode. */
#ifndef SLC_TOOLS_BENCH_TTV_KERNELS_H
#define SLC_TOOLS_BENCH_TTV_KERNELS_H

#include "tools/bench/product/ttv_tensor.h"
#include "tools/session/session.h"

#include <stdbool.h>

/* A matrix in the CSR format, with one row per fiber. */
struct ttv_csr {
    uint64_t *begin; /* fibers + 1 elements */
    uint32_t *index;
    double *values;
    struct slc_buffer memory;
};

enum ttv_kernel {
    /* kernel of cpu/fiber/sptv.h; each of the next five kernels is this kernel with one switch
     * changed */
    TTV_SLUICE,
    TTV_EMPTY,       /* with empty fibers */
    TTV_KEEP_UNUSED, /* with the whole vector */
    TTV_DROP_UNUSED, /* with a vector of only the indices that occur */
    TTV_LARGEST,     /* with blocks processed by decreasing size */
    TTV_FILE_ORDER,  /* with blocks processed in the order of the file */
    TTV_TILES,       /* fiber runs of encoded tiles, only in the mode of these runs */
    TTV_COO,
    TTV_COO_SORTED,
    TTV_CSR,
    TTV_KERNELS
};
const char *ttv_kernel_name(enum ttv_kernel kernel);

/* The switches of kernel TTV_SLUICE. */
struct ttv_switches {
    bool keep_empty;
    struct slc_sptv_options options;
};

/* One mode, prepared for multiplication. */
struct ttv_job {
    struct ttv_fibers fibers;
    double *vector; /* random vector */
    double *sums;   /* one sum per fiber */
    double *want, *magnitude;
    struct slc_buffer memory; /* memory of the four arrays above */
    bool has[TTV_KERNELS];
    struct slc_sptv form[TTV_FILE_ORDER + 1];
    /* true if the kernel computes the sums of all fibers, including empty fibers */
    bool dense_form[TTV_FILE_ORDER + 1];
    double build_seconds[TTV_FILE_ORDER + 1];
    struct slc_buffer dense; /* memory of dense_source */
    struct slc_sptv_source dense_source;
    bool dense_left_out; /* true if the list with empty fibers exceeds the budget */
    struct ttv_csr csr;
    struct slc_session *session; /* for TTV_TILES: a session with all blocks in memory */
};

/* Finds the fibers of mode `mode` and builds the inputs of the wanted kernels. If empty fibers
 * would exceed memory_bytes, omits the kernel that stores them, or with switches->keep_empty fails.
 * The caller must call ttv_job_destroy, which accepts an all-zero struct. Errors: those of
 * allocating memory; SLC_ERR_BUDGET with switches->keep_empty. */
enum slc_status ttv_job_create(struct ttv_job *job,
                               const struct ttv_tensor *tensor,
                               unsigned mode,
                               const bool wanted[TTV_KERNELS],
                               const struct ttv_switches *switches,
                               uint64_t memory_bytes,
                               struct slc_error *err) SLC_NODISCARD;
void ttv_job_destroy(struct ttv_job *job);

/* Computes one product. For TTV_CSR, sets *convert_seconds to the time of the conversion. */
enum slc_status ttv_job_run(struct ttv_job *job,
                            enum ttv_kernel kernel,
                            unsigned workers,
                            double *convert_seconds,
                            struct slc_error *err) SLC_NODISCARD;

/* Returns the largest error of an element of the last product, relative to the sum of magnitudes of
 * the terms. Returns 0 for TTV_TILES, which keeps no sums. */
double ttv_job_error(const struct ttv_job *job, enum ttv_kernel kernel);

/* Returns the bytes that a product must move, each counted once, or 0 if the number is unknown. */
uint64_t ttv_job_moved_bytes(const struct ttv_job *job, enum ttv_kernel kernel);

/* Returns the fibers as cpu/fiber/sptv.h stores them, NULL for other kernels. */
const struct slc_sptv *ttv_job_form(const struct ttv_job *job, enum ttv_kernel kernel);

#endif
