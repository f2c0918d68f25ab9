/*
 * SpTV as others compute it, for `bench ttv`. All know the numbers of the nonempty fibers, so that
 * none of them searches for where a sum belongs.
 */
#ifndef SLC_TOOLS_BENCH_TTV_BASELINES_H
#define SLC_TOOLS_BENCH_TTV_BASELINES_H

#include "tools/bench/product/ttv_tensor.h"

/*
 * Nonzero by nonzero, in the order of the store: one list for every mode. Several threads add
 * atomically. Errors: SLC_ERR_SYSTEM.
 */
enum slc_status ttv_coo(const struct ttv_fibers *fibers,
                        const double *vector,
                        double *sums,
                        unsigned workers,
                        struct slc_error *err) SLC_NODISCARD;

/* The same over the list sorted by fibers: threads take pieces of whole fibers and share no sum. */
enum slc_status ttv_coo_sorted(const struct ttv_fibers *fibers,
                               const double *vector,
                               double *sums,
                               unsigned workers,
                               struct slc_error *err) SLC_NODISCARD;

/* Memory of a matrix in CSR form, a row per fiber. */
struct ttv_csr {
    uint64_t *begin; /* fibers + 1 */
    uint32_t *index;
    double *values;
    struct slc_buffer memory;
};
enum slc_status ttv_csr_create(struct ttv_csr *csr,
                               const struct ttv_fibers *fibers,
                               struct slc_error *err) SLC_NODISCARD;
void ttv_csr_destroy(struct ttv_csr *csr);

/*
 * Converts the list to CSR by counting, with one thread, and multiplies, with all.
 * *convert_seconds: of the first part. Errors: SLC_ERR_SYSTEM.
 */
enum slc_status ttv_csr_multiply(struct ttv_csr *csr,
                                 const struct ttv_fibers *fibers,
                                 const double *vector,
                                 double *sums,
                                 unsigned workers,
                                 double *convert_seconds,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
