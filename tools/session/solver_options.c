#include "tools/session/solver_options.h"

#include <string.h>

const char *const solver_loss_choices[] = {"ls", "poisson", "bernoulli", "gamma", "huber", NULL};
const char *const solver_unlisted_choices[] = {"zero", "unknown", NULL};
const char *const solver_biases_choices[] = {"auto", "none", "mean", "all", NULL};
const char *const solver_method_choices[] = {"auto", "als", "hals",   "admm", "mu",
                                             "pdnr", "ccd", "newton", NULL};

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

/* Sets loss, unlisted cells and biases, and what depends on them. */
static void
set_loss(const struct solver_options *options, double *tolerance, struct slc_cp_options *solver)
{
    (void)slc_loss_parse(options->loss, &solver->loss);
    (void)slc_unlisted_parse(options->unlisted, &solver->unlisted);
    (void)slc_biases_parse(options->biases, &solver->biases);
    if (options->observed) {
        solver->unlisted = SLC_UNLISTED_UNKNOWN;
    }
    solver->inner = (unsigned)options->inner;
    solver->huber = options->huber;
    solver->ridge_chosen = solver->unlisted == SLC_UNLISTED_UNKNOWN &&
                           options->regularization.all[0] == 0.0 &&
                           options->regularization.modes == 0;
    if (*tolerance < 0.0) {
        *tolerance = solver->loss == SLC_LOSS_POISSON && solver->unlisted == SLC_UNLISTED_ZERO
                         ? SLC_CP_VIOLATION
                         : SLC_CP_TOLERANCE;
    }
    solver->tolerance = *tolerance;
}

enum slc_status solver_options_set(const struct solver_options *options,
                                   const struct slc_manifest *manifest,
                                   struct session_options *session,
                                   double *tolerance,
                                   struct slc_cp_options *solver,
                                   struct slc_error *err)
{
    const unsigned order = manifest->order;
    uint32_t nonnegative, simplex;

    SLC_TRY(check_modes(&options->regularization, "reg", order, err));
    SLC_TRY(check_modes(&options->l1, "l1", order, err));
    SLC_TRY(check_modes(&options->smooth, "smooth", order, err));
    SLC_TRY(check_modes(&options->bounds, "bounds", order, err));
    SLC_TRY(read_modes(&options->nonnegative, "nonnegative", order, &nonnegative, err));
    SLC_TRY(read_modes(&options->simplex, "simplex", order, &simplex, err));
    for (unsigned n = 0; n < order; n++) {
        const double *ridge = numbers_of(&options->regularization, n);
        const double *l1 = numbers_of(&options->l1, n);
        const double *smooth = numbers_of(&options->smooth, n);
        const double *bounds = numbers_of(&options->bounds, n);

        solver->terms[n].nonnegative = (nonnegative >> n & 1U) != 0;
        solver->terms[n].simplex = (simplex >> n & 1U) != 0;
        solver->terms[n].ridge = ridge != NULL ? ridge[0] : 0.0;
        solver->terms[n].l1 = l1 != NULL ? l1[0] : 0.0;
        solver->terms[n].smooth = smooth != NULL ? smooth[0] : 0.0;
        if (bounds != NULL) {
            solver->terms[n].bounded = true;
            solver->terms[n].low = bounds[0];
            solver->terms[n].high = bounds[1];
        }
    }
    solver->holdout = session->holdout;
    (void)slc_cp_algorithm_parse(options->method, &solver->algorithm);
    set_loss(options, tolerance, solver);
    SLC_TRY(slc_cp_choose_method(solver, order, &solver->algorithm, err));
    session->host_rows = solver->algorithm != SLC_CP_ALS && !slc_cp_needs_nonzeros(solver);
    session->solver = solver;
    session->beside_bytes = slc_cp_smooth_bytes(solver->terms, order, manifest->dims, solver->rank);
    if (session->beside_bytes > 0 && strcmp(session->passes, "auto") == 0) {
        session->passes = "plain"; /* all rows of a mode are solved together */
    }
    return SLC_OK;
}
