/* Losses of a decomposition, and what the cells that a store does not list mean. */
#ifndef SLC_LOSS_H
#define SLC_LOSS_H

#include <stdbool.h>

/* The loss of a cell with value x for which the model has the value m. */
enum slc_loss {
    SLC_LOSS_LS,        /* least squares: (x - m)^2 */
    SLC_LOSS_POISSON,   /* counts: m - x log m, with m >= 0 */
    SLC_LOSS_BERNOULLI, /* values 0 and 1, m is the log-odds of 1: log(1 + e^m) - x m */
    SLC_LOSS_GAMMA,     /* positive values: x / m + log m, with m > 0 */
    SLC_LOSS_HUBER      /* (x - m)^2 up to |x - m| = delta, then 2 delta |x - m| - delta^2 */
};
/* Least model value in logarithms and divisions. */
#define SLC_LOSS_LEAST_MODEL 1e-10
const char *slc_loss_name(enum slc_loss loss); /* "ls", "poisson", .. */
bool slc_loss_parse(const char *name, enum slc_loss *loss);

/* The meaning of cells without a nonzero. */
enum slc_unlisted {
    SLC_UNLISTED_ZERO,   /* their value is 0 */
    SLC_UNLISTED_UNKNOWN /* their value is unknown: they have no loss (completion) */
};
const char *slc_unlisted_name(enum slc_unlisted unlisted); /* "zero", "unknown" */
bool slc_unlisted_parse(const char *name, enum slc_unlisted *unlisted);

/* Returns true if the loss is defined for the value `x`. */
bool slc_loss_accepts(enum slc_loss loss, double x);
/* Returns true if models of the loss have no negative numbers. */
bool slc_loss_is_nonnegative(enum slc_loss loss);
/* Returns the values that a loss accepts, for messages: "counts (0, 1, 2, ..)". */
const char *slc_loss_values(enum slc_loss loss);

/* Returns the expected value of a cell for which the model has the value `m`: m, or for bernoulli
 * the probability of 1. */
double slc_loss_mean(enum slc_loss loss, double m);

/* Returns the deviance of a cell: twice the difference between the loss and the least loss that any
 * model value has for x; for least squares and Huber's loss, the loss itself. It is 0 if the model
 * is exact. `delta` is the parameter of Huber's loss. */
double slc_loss_deviance(enum slc_loss loss, double delta, double x, double m);

#endif
