/* Sets the constraints and penalties of a run from the options of `sluice cpd`. */
#include "tools/cmd/cpd/cpd_run.h"

#include <string.h>

static enum slc_status
fail_mode(const char *option, unsigned mode, unsigned order, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE, "--%s names mode %u; the tensor has %u modes", option,
                    mode + 1, order);
}

/* Returns the numbers of a mode, or NULL if the option sets none. */
static const double *numbers_of(const struct option_mode_numbers *numbers, unsigned mode)
{
    if ((numbers->modes >> mode & 1U) != 0) {
        return numbers->mode[mode];
    }
    return numbers->given ? numbers->all : NULL;
}

static enum slc_status check_modes(const struct option_mode_numbers *numbers,
                                   const char *option,
                                   unsigned order,
                                   struct slc_error *err)
{
    for (unsigned n = order; n < SLC_MAX_ORDER; n++) {
        if ((numbers->modes >> n & 1U) != 0) {
            return fail_mode(option, n, order, err);
        }
    }
    return SLC_OK;
}

/* Sets the bit of each mode in *set. A list of SLC_MAX_ORDER modes means all modes. */
static enum slc_status read_modes(const struct option_modes *modes,
                                  const char *option,
                                  unsigned order,
                                  uint32_t *set,
                                  struct slc_error *err)
{
    *set = 0;
    for (unsigned i = 0; i < modes->count; i++) {
        if (modes->mode[i] >= order && modes->count < SLC_MAX_ORDER) {
            return fail_mode(option, modes->mode[i], order, err);
        }
        *set |= UINT32_C(1) << modes->mode[i];
    }
    return SLC_OK;
}

/* Sets loss, unlisted cells and biases, and the options whose defaults depend on them. */
static void set_loss(struct arguments *args, struct slc_cp_options *options)
{
    (void)slc_loss_parse(args->loss, &options->loss);
    (void)slc_unlisted_parse(args->unlisted, &options->unlisted);
    (void)slc_biases_parse(args->biases, &options->biases);
    if (args->observed) {
        options->unlisted = SLC_UNLISTED_UNKNOWN;
    }
    options->inner = (unsigned)args->inner;
    options->huber = args->huber;
    options->ridge_chosen = options->unlisted == SLC_UNLISTED_UNKNOWN &&
                            args->regularization.all[0] == 0.0 && args->regularization.modes == 0;
    if (args->tolerance < 0.0) {
        args->tolerance =
            options->loss == SLC_LOSS_POISSON && options->unlisted == SLC_UNLISTED_ZERO
                ? SLC_CP_VIOLATION
                : SLC_CP_TOLERANCE;
    }
    options->tolerance = args->tolerance;
}

enum slc_status cpd_terms_set(struct arguments *args,
                              unsigned order,
                              const uint64_t *dims,
                              struct slc_cp_options *options,
                              struct slc_error *err)
{
    uint32_t nonnegative, simplex;

    SLC_TRY(check_modes(&args->regularization, "reg", order, err));
    SLC_TRY(check_modes(&args->l1, "l1", order, err));
    SLC_TRY(check_modes(&args->smooth, "smooth", order, err));
    SLC_TRY(check_modes(&args->bounds, "bounds", order, err));
    SLC_TRY(read_modes(&args->nonnegative, "nonnegative", order, &nonnegative, err));
    SLC_TRY(read_modes(&args->simplex, "simplex", order, &simplex, err));
    for (unsigned n = 0; n < order; n++) {
        const double *ridge = numbers_of(&args->regularization, n);
        const double *l1 = numbers_of(&args->l1, n);
        const double *smooth = numbers_of(&args->smooth, n);
        const double *bounds = numbers_of(&args->bounds, n);

        options->terms[n].nonnegative = (nonnegative >> n & 1U) != 0;
        options->terms[n].simplex = (simplex >> n & 1U) != 0;
        options->terms[n].ridge = ridge != NULL ? ridge[0] : 0.0;
        options->terms[n].l1 = l1 != NULL ? l1[0] : 0.0;
        options->terms[n].smooth = smooth != NULL ? smooth[0] : 0.0;
        if (bounds != NULL) {
            options->terms[n].bounded = true;
            options->terms[n].low = bounds[0];
            options->terms[n].high = bounds[1];
        }
    }
    options->rank = (uint32_t)args->rank;
    options->holdout = args->session.holdout;
    (void)slc_cp_algorithm_parse(args->method, &options->algorithm);
    set_loss(args, options);
    SLC_TRY(slc_cp_choose_method(options, order, &options->algorithm, err));
    args->session.host_rows = options->algorithm != SLC_CP_ALS && !slc_cp_needs_nonzeros(options);
    args->session.solver = options;
    args->session.beside_bytes =
        slc_cp_smooth_bytes(options->terms, order, dims, (uint32_t)args->rank);
    if (args->session.beside_bytes > 0 && strcmp(args->session.passes, "auto") == 0) {
        args->session.passes = "plain"; /* all rows of a mode are solved together */
    }
    return SLC_OK;
}
