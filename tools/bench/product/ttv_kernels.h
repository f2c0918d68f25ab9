/* The kernels of `bench ttv` on the fibers of one mode. */
#ifndef SLC_TOOLS_BENCH_TTV_KERNELS_H
#define SLC_TOOLS_BENCH_TTV_KERNELS_H

#include "tools/bench/product/ttv_tensor.h"
#include "tools/session/session.h"

#include <stdbool.h>

/* Memory of a matrix in CSR form, a row per fiber. */
struct ttv_csr {
    uint64_t *begin; /* fibers + 1 elements */
    uint32_t *index;
    double *values;
    struct slc_buffer memory;
};

enum ttv_kernel {
    TTV_SLUICE,      /* tools/bench/rivals/cpu/sptv.h, with the switches of the options */
    TTV_EMPTY,       /* .. with empty fibers */
    TTV_KEEP_UNUSED, /* .. with the whole vector */
    TTV_DROP_UNUSED, /* .. with a vector of the indices that occur */
    TTV_LARGEST,     /* .. with all blocks largest first */
    TTV_FILE_ORDER,  /* .. with blocks in the order of the file */
    TTV_TILES,       /* runs directly from encoded tiles, only for the mode of the runs */
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
    double *vector; /* random */
    double *sums;   /* of every fiber of a kernel */
    double *want, *magnitude;
    struct slc_buffer memory; /* of these four */
    bool has[TTV_KERNELS];
    struct slc_sptv form[TTV_FILE_ORDER + 1];
    bool dense_form[TTV_FILE_ORDER + 1]; /* the form has the sums of all fibers */
    double build_seconds[TTV_FILE_ORDER + 1];
    struct slc_buffer dense; /* memory of dense_source */
    struct slc_sptv_source dense_source;
    bool dense_left_out; /* empty fibers exceed the budget */
    struct ttv_csr csr;
    struct slc_session *session; /* TTV_TILES: all blocks are in memory */
};

/*
 * Finds the fibers and builds the inputs of the wanted kernels. Leaves out kernels whose empty
 * fibers exceed memory_bytes. Owns: ttv_job_destroy, which accepts an all-zero struct. Errors:
 * those of memory.
 */
enum slc_status ttv_job_create(struct ttv_job *job,
                               const struct ttv_tensor *tensor,
                               unsigned mode,
                               const bool wanted[TTV_KERNELS],
                               const struct ttv_switches *switches,
                               uint64_t memory_bytes,
                               struct slc_error *err) SLC_NODISCARD;
void ttv_job_destroy(struct ttv_job *job);

/* Computes one product; *convert_seconds: for TTV_CSR the time of the conversion. */
enum slc_status ttv_job_run(struct ttv_job *job,
                            enum ttv_kernel kernel,
                            unsigned workers,
                            double *convert_seconds,
                            struct slc_error *err) SLC_NODISCARD;

/*
 * The largest error of the last run's sums, relative to the sums of magnitudes; 0 for TTV_TILES,
 * which keeps none.
 */
double ttv_job_error(const struct ttv_job *job, enum ttv_kernel kernel);

/* Bytes that a product moves at least once; 0 if unknown. */
uint64_t ttv_job_moved_bytes(const struct ttv_job *job, enum ttv_kernel kernel);

/* The form of a kernel of tools/bench/rivals/cpu/sptv.h, or NULL. */
const struct slc_sptv *ttv_job_form(const struct ttv_job *job, enum ttv_kernel kernel);

#endif
