/* CP decompositions: running one, and what can be asked of its result. */
#ifndef SLUICE_CPD_H
#define SLUICE_CPD_H

#include "sluice/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One completed iteration. */
struct sluice_cpd_iteration {
    uint32_t iteration; /* from 1 */
    uint32_t singular;  /* bit n: the Gram matrix of mode n was singular, a pseudo-inverse served */
    double fit;
    double delta; /* change of fit; the fit itself in the first iteration */
    double seconds;
    uint64_t bytes_read; /* from the drive */
};

struct sluice_cpd_options {
    uint64_t struct_bytes;
    uint32_t iterations; /* at most; default 50 */
    uint32_t mode_order_set;
    double tolerance;        /* on |change of fit|; default 1e-5; 0: none */
    double max_seconds;      /* looked at between passes and while copies are made; 0: none */
    double regularization;   /* added to the diagonal of the Gram matrices; default 0 */
    uint64_t seed;           /* of the uniform random start; default 0 */
    const char *init_folder; /* start from mode-1.npy, .. in this folder instead; NULL: random */
    /* Order of updates, where mode_order_set; else that of the modes, or one by which passes that
     * update two modes read less. */
    uint32_t mode_order[SLUICE_MAX_ORDER];
    /* Called after every iteration by the calling thread; may be NULL. */
    void (*iteration)(void *context, const struct sluice_cpd_iteration *iteration);
    void *context;
    const struct sluice_compute_options *compute; /* NULL: the defaults */
};

SLC_API void sluice_cpd_options_init(struct sluice_cpd_options *options, uint64_t bytes);

/* A finished decomposition: sum over r of lambda[r] times the outer product of columns r. */
struct sluice_cpd;

/*
 * CP decomposition by alternating least squares.
 * Math: A(n) = X_(n) (Khatri-Rao of the others) V(n)^-1 for each mode in turn; fit =
 * 1 - ||X - M|| / ||X||. Columns come with 2-norm 1, weights in lambda, descending, signs fixed.
 * Needs: 1 <= rank <= 4096.
 * Owns: the caller destroys *ret_model with sluice_cpd_destroy, which takes NULL.
 * Order: as options->compute->deterministic says; the same seed gives the same result to rounding.
 * Cost: N passes over the store per iteration, or down to N/2 where passes update two modes.
 * Errors: SLC_ERR_NUMERIC for a tensor without nonzeros; SLC_ERR_BUDGET, SLC_ERR_IO, ..
 */
SLC_API enum slc_status sluice_cpd(const struct sluice_store *store,
                                   uint32_t rank,
                                   const struct sluice_cpd_options *options,
                                   struct sluice_cpd **ret_model,
                                   struct slc_error *err);
SLC_API void sluice_cpd_destroy(struct sluice_cpd *model);

SLC_API uint32_t sluice_cpd_order(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_rank(const struct sluice_cpd *model);
SLC_API double sluice_cpd_fit(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_iterations(const struct sluice_cpd *model);
SLC_API enum sluice_stop sluice_cpd_stop(const struct sluice_cpd *model);
/* Copies the weights into lambda[rank]. */
SLC_API void sluice_cpd_lambda(const struct sluice_cpd *model, double *lambda);
/* Rows of the factor of `mode` (below the order): dims[mode]. */
SLC_API uint64_t sluice_cpd_rows(const struct sluice_cpd *model, uint32_t mode);
/* Copies the factor of `mode` (below the order) into factor[rows * rank]. */
SLC_API void sluice_cpd_factor(const struct sluice_cpd *model, uint32_t mode, double *factor);
/* Writes the model; each file is replaced atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE. */
SLC_API enum slc_status sluice_cpd_save(const struct sluice_cpd *model,
                                        enum sluice_model_form form,
                                        const char *path,
                                        struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
