/* Residuals of a model at the nonzeros of a store: the nonzeros that fit worst, exact quantiles,
 * and norms. Blocks are streamed, so memory does not depend on the number of nonzeros. */
#ifndef SLC_ENGINE_RESIDUALS_H
#define SLC_ENGINE_RESIDUALS_H

#include "base/error/error.h"
#include "engine/product/quantiles.h"
#include "engine/stream/tile_stream.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

/* The score by which nonzeros are selected; the residual is value - model. */
enum slc_residual_score {
    SLC_RESIDUAL_ABSOLUTE, /* |residual| */
    SLC_RESIDUAL_RELATIVE, /* |residual / value| */
    SLC_RESIDUAL_ABOVE,    /* residual: only values above the model */
    SLC_RESIDUAL_BELOW,    /* -residual: only values below the model */
    SLC_RESIDUAL_DEVIANCE  /* deviance of the nonzero for the model's loss (base/loss.h) */
};

enum { SLC_RESIDUALS_TOP_MAX = 1000000 };

struct slc_residual {
    double value, model; /* `model` is the expected value (slc_loss_mean) */
    double deviance;     /* NaN if the model's loss is not defined for the value */
    double score;
    uint64_t index[SLC_MAX_ORDER]; /* indices of the input, from 0 */
};

struct slc_residuals_options {
    const struct slc_store *store;
    const struct slc_model_view *model; /* factors in memory, rows in the order of the input */
    enum slc_residual_score score;
    uint64_t top; /* number of nonzeros to list, 0 to SLC_RESIDUALS_TOP_MAX */
    unsigned quantile_count;
    double quantiles[SLC_QUANTILES_MAX]; /* fractions from 0 to 1 */
    enum slc_io_kind io;
    uint64_t read_limit;    /* bytes per second; 0: no limit */
    uint64_t memory_bytes;  /* the budget; 0 means 80 % of slc_memory_total() */
    uint64_t outside_bytes; /* part of the budget that the caller will use after the call */
    unsigned threads;       /* 1 or more; fewer are used if the budget requires it */
    /* A value other than 0 stops with SLC_ERR_INTERRUPTED. May be NULL. */
    const volatile int *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_residuals {
    unsigned order;
    uint64_t nnz;
    double norm;        /* 2-norm of the residuals */
    double values_norm; /* 2-norm of the values */
    double rmse, mae;
    double mean;    /* mean residual */
    double largest; /* largest magnitude */
    /* mean deviance; NaN if the model's loss is not defined for one of the values */
    double deviance;
    unsigned quantile_count;
    double quantile[SLC_QUANTILES_MAX]; /* quantiles of the magnitudes (quantiles.h) */
    uint64_t count;                     /* nonzeros listed in `top` */
    struct slc_residual *top;           /* by descending score, then by ascending indices */
    struct slc_buffer memory;
    /* Statistics. */
    unsigned threads, passes;
    uint64_t bytes_read;
};

/* Computes the residuals of all nonzeros. Math: model(i) as in slc_model_value. Values are those of
 * the store, after its transforms. Order: the result has the same bits for any number of threads,
 * budget and I/O method. Cost: one to four passes over the `blco` layout; one pass if there are at
 * most a million nonzeros or no quantiles. Ownership: release with slc_residuals_destroy, also
 * after an error. Errors: SLC_ERR_INPUT if the mode sizes differ; SLC_ERR_NUMERIC, with the
 * indices, if a residual is not finite; SLC_ERR_BUDGET; SLC_ERR_USAGE; those of reading. */
enum slc_status slc_residuals_find(const struct slc_residuals_options *options,
                                   struct slc_residuals *residuals,
                                   struct slc_error *err) SLC_NODISCARD;
/* Checks before the model is read that the residuals and `more_bytes`, which the model will need,
 * fit in the budget. options->model is not used. Errors: SLC_ERR_BUDGET. */
enum slc_status slc_residuals_check_memory(const struct slc_residuals_options *options,
                                           uint64_t more_bytes,
                                           struct slc_error *err) SLC_NODISCARD;
void slc_residuals_destroy(struct slc_residuals *residuals);

#endif
