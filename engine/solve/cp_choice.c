/* Chooses the method of a decomposition: which algorithms fit the loss, the constraints and the
 * meaning of unlisted cells, and which biases a model has. */
#include "base/error/error.h"
#include "engine/solve/cp_method.h"

#include <math.h>
#include <string.h>

static const char *const biases_names[] = {"auto", "none", "mean", "all"};

const char *slc_biases_name(enum slc_biases biases)
{
    return (unsigned)biases <= SLC_BIASES_ALL ? biases_names[biases] : "?";
}

bool slc_biases_parse(const char *name, enum slc_biases *biases)
{
    for (unsigned i = 0; i <= SLC_BIASES_ALL; i++) {
        if (strcmp(name, biases_names[i]) == 0) {
            *biases = (enum slc_biases)i;
            return true;
        }
    }
    return false;
}

enum slc_biases slc_cp_biases_in_effect(const struct slc_cp_options *options)
{
    if (options->biases != SLC_BIASES_AUTO) {
        return options->biases;
    }
    return options->unlisted == SLC_UNLISTED_UNKNOWN && !slc_loss_is_nonnegative(options->loss) &&
                   options->row_solver == NULL
               ? SLC_BIASES_ALL
               : SLC_BIASES_NONE;
}

uint32_t slc_cp_components(unsigned order, const struct slc_cp_options *options)
{
    const enum slc_biases biases = slc_cp_biases_in_effect(options);

    return options->rank + (biases == SLC_BIASES_ALL    ? order + 1
                            : biases == SLC_BIASES_MEAN ? 1
                                                        : 0);
}

bool slc_cp_needs_nonzeros(const struct slc_cp_options *options)
{
    return options->unlisted == SLC_UNLISTED_UNKNOWN || options->loss != SLC_LOSS_LS;
}

const char *slc_cp_objective_name(enum slc_loss loss, enum slc_unlisted unlisted)
{
    if (unlisted == SLC_UNLISTED_ZERO) {
        return loss == SLC_LOSS_POISSON ? "log-likelihood" : "objective";
    }
    return loss == SLC_LOSS_LS ? "train RMSE" : "loss";
}

const char *slc_cp_title(const struct slc_cp_options *options, enum slc_cp_algorithm algorithm)
{
    if (options->unlisted == SLC_UNLISTED_ZERO) {
        return slc_cp_algorithm_title(algorithm);
    }
    return algorithm == SLC_CP_CCD     ? "completion by CCD"
           : algorithm == SLC_CP_ALS   ? "completion by ALS"
           : algorithm == SLC_CP_GIVEN ? "completion by a row solver"
                                       : "completion by Newton";
}

/* Checks biases and rank. */
static enum slc_status
check_biases(const struct slc_cp_options *options, unsigned order, struct slc_error *err)
{
    const uint32_t components = slc_cp_components(order, options);

    if (components > options->rank && options->unlisted == SLC_UNLISTED_ZERO) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "biases are possible only if unlisted cells are unknown: declare them "
                        "unknown, or request no biases");
    }
    if (components > options->rank && slc_loss_is_nonnegative(options->loss)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a model with the loss '%s' has no negative numbers, so it has no "
                        "biases: request no biases, or the loss 'ls', 'huber' or 'bernoulli'",
                        slc_loss_name(options->loss));
    }
    if (components > SLC_MAX_RANK) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_RANKS,
                              "rank %u with %u biases exceeds %d components: use a smaller rank, "
                              "or no biases",
                              options->rank, components - options->rank, SLC_MAX_RANK);
    }
    return SLC_OK;
}

/* Returns SLC_ERR_USAGE if a constraint or l1 penalty is set. Methods that update rows from their
 * nonzeros allow only a ridge, and only if unlisted cells are unknown. */
static enum slc_status
check_terms(const struct slc_cp_options *options, unsigned order, struct slc_error *err)
{
    for (unsigned n = 0; n < order; n++) {
        const struct slc_row_terms *terms = &options->terms[n];
        const bool negative = terms->nonnegative && !slc_loss_is_nonnegative(options->loss);

        if (negative || terms->simplex || terms->bounded || terms->l1 > 0.0 ||
            terms->smooth > 0.0) {
            return slc_fail(
                err, SLC_ERR_USAGE,
                "constraints and l1 penalties are possible only with the loss 'ls' and unlisted "
                "cells that are 0: remove the constraints of mode %u, or change loss and unlisted",
                n + 1);
        }
        if (!(terms->ridge >= 0.0) || !isfinite(terms->ridge)) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the regularization of mode %u is %g, but must be finite and 0 or more",
                            n + 1, terms->ridge);
        }
        if (terms->ridge > 0.0 && options->unlisted == SLC_UNLISTED_ZERO) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the loss '%s' with unlisted cells that are 0 allows no "
                            "regularization: remove it",
                            slc_loss_name(options->loss));
        }
    }
    return SLC_OK;
}

/* Checks that a row solver of the caller fits the other options. */
static enum slc_status choose_given(const struct slc_cp_options *options,
                                    enum slc_cp_algorithm *algorithm,
                                    struct slc_error *err)
{
    if (options->unlisted != SLC_UNLISTED_UNKNOWN || options->loss != SLC_LOSS_LS ||
        slc_cp_biases_in_effect(options) != SLC_BIASES_NONE ||
        (*algorithm != SLC_CP_AUTO && *algorithm != SLC_CP_GIVEN)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a row solver replaces method, loss and biases: leave these options unset");
    }
    *algorithm = SLC_CP_GIVEN;
    return SLC_OK;
}

/* Returns SLC_ERR_USAGE for an algorithm that does not fit. The message names the algorithms in
 * `fitting`. */
static enum slc_status
fail_algorithm(const struct slc_cp_options *options, const char *fitting, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE,
                    "the method '%s' does not fit the loss '%s' with unlisted cells that are "
                    "%s: use the method %s, or 'auto'",
                    slc_cp_algorithm_name(options->algorithm), slc_loss_name(options->loss),
                    slc_unlisted_name(options->unlisted), fitting);
}

static enum slc_status choose_for_counts(const struct slc_cp_options *options,
                                         enum slc_cp_algorithm *algorithm,
                                         struct slc_error *err)
{
    if (*algorithm == SLC_CP_AUTO) {
        *algorithm = SLC_CP_MU;
    }
    return *algorithm == SLC_CP_MU || *algorithm == SLC_CP_PDNR
               ? SLC_OK
               : fail_algorithm(options, "'mu' or 'pdnr'", err);
}

static enum slc_status choose_for_unknown(const struct slc_cp_options *options,
                                          enum slc_cp_algorithm *algorithm,
                                          struct slc_error *err)
{
    if (options->loss != SLC_LOSS_LS) {
        if (*algorithm == SLC_CP_AUTO) {
            *algorithm = SLC_CP_NEWTON;
        }
        return *algorithm == SLC_CP_NEWTON ? SLC_OK : fail_algorithm(options, "'newton'", err);
    }
    if (*algorithm == SLC_CP_AUTO) {
        *algorithm = options->rank <= SLC_CP_ALS_RANK ? SLC_CP_ALS : SLC_CP_CCD;
    }
    return *algorithm == SLC_CP_ALS || *algorithm == SLC_CP_CCD || *algorithm == SLC_CP_NEWTON
               ? SLC_OK
               : fail_algorithm(options, "'als', 'ccd' or 'newton'", err);
}

enum slc_status slc_cp_choose_method(const struct slc_cp_options *options,
                                     unsigned order,
                                     enum slc_cp_algorithm *algorithm,
                                     struct slc_error *err)
{
    SLC_TRY(check_biases(options, order, err));
    if (!slc_cp_needs_nonzeros(options)) {
        if (*algorithm > SLC_CP_ADMM) {
            return fail_algorithm(options, "'als', 'hals' or 'admm'", err);
        }
        return slc_cp_choose(options->terms, order, algorithm, err);
    }
    SLC_TRY(check_terms(options, order, err));
    if (options->loss == SLC_LOSS_HUBER && (!(options->huber > 0.0) || !isfinite(options->huber))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the limit of Huber's loss is %g, but must be finite and above 0",
                        options->huber);
    }
    if (options->row_solver != NULL) {
        return choose_given(options, algorithm, err);
    }
    if (options->unlisted == SLC_UNLISTED_UNKNOWN) {
        return choose_for_unknown(options, algorithm, err);
    }
    if (options->loss != SLC_LOSS_POISSON) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the loss '%s' is possible only if unlisted cells are unknown: "
                        "declare them unknown, or use the loss 'ls' or 'poisson', with which "
                        "unlisted cells are 0",
                        slc_loss_name(options->loss));
    }
    return choose_for_counts(options, algorithm, err);
}

enum slc_status cp_method_choose(struct cp_state *state, struct slc_error *err)
{
    static const struct cp_method *const with_zeros[] = {[SLC_CP_ALS] = &cp_method_als,
                                                         [SLC_CP_HALS] = &cp_method_constraint,
                                                         [SLC_CP_ADMM] = &cp_method_constraint,
                                                         [SLC_CP_MU] = &cp_method_poisson,
                                                         [SLC_CP_PDNR] = &cp_method_poisson};
    struct slc_cp_options *options = &state->choices;

    SLC_TRY(slc_cp_choose_method(options, state->order, &options->algorithm, err));
    state->method = options->unlisted == SLC_UNLISTED_ZERO ? with_zeros[options->algorithm]
                                                           : &cp_method_complete;
    return SLC_OK;
}
