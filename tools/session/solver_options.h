/* Options that choose what a decomposition minimizes and how: loss, constraints, penalties and
 * method. Shared by `sluice cpd` and `sluice plan`. */
#ifndef SLC_TOOLS_SOLVER_OPTIONS_H
#define SLC_TOOLS_SOLVER_OPTIONS_H

#include "engine/solve/cp.h"
#include "tools/options/options.h"
#include "tools/session/session.h"

struct solver_options {
    const char *method;
    struct option_mode_numbers regularization, l1, smooth, bounds;
    struct option_modes nonnegative, simplex; /* SLC_MAX_ORDER modes: all */
    const char *loss, *unlisted, *biases;
    bool observed;
    double huber;
    uint64_t inner;
};

extern const char *const solver_loss_choices[];
extern const char *const solver_unlisted_choices[];
extern const char *const solver_biases_choices[];
extern const char *const solver_method_choices[];

/* `field` names a member, so it cannot be in parentheses: NOLINTBEGIN(bugprone-macro-parentheses)
 */
#define SOLVER_OPTION_ROWS(type, field)                                                            \
    OPTION_ROW(                                                                                    \
        "loss", OPTION_CHOICE, type, field.loss, .value = "LOSS", .fallback = "ls",                \
        .choices = solver_loss_choices,                                                            \
        .help =                                                                                    \
            "what the model minimizes: ls (squared errors), poisson (counts) or, with "            \
            "--observed, also bernoulli (0 and 1), gamma (positive values) or huber (outliers)"),  \
        OPTION_ROW("unlisted", OPTION_CHOICE, type, field.unlisted, .value = "WHAT",               \
                   .fallback = "zero", .choices = solver_unlisted_choices,                         \
                   .help = "meaning of the cells that the store does not list: zero, or unknown "  \
                           "(completion: only listed cells count, as for ratings)"),               \
        OPTION_ROW("observed", OPTION_FLAG, type, field.observed,                                  \
                   .help = "the same as --unlisted unknown"),                                      \
        OPTION_ROW("biases", OPTION_CHOICE, type, field.biases, .value = "WHICH",                  \
                   .fallback = "auto", .choices = solver_biases_choices,                           \
                   .help = "additional components with --observed: none, mean, or all (the mean, " \
                           "and a bias of every row of every mode); auto means all, or none if "   \
                           "the model has no negative numbers"),                                   \
        OPTION_ROW(                                                                                \
            "inner", OPTION_U64, type, field.inner, .value = "N", .fallback = "10", .minimum = 1,  \
            .maximum = 1000,                                                                       \
            .help = "maximum number of inner iterations of a row, for mu, pdnr, ccd and newton"),  \
        OPTION_ROW("huber", OPTION_DOUBLE, type, field.huber, .value = "X", .fallback = "1",       \
                   .help = "magnitude of the residual above which the loss huber is linear"),      \
        OPTION_ROW("method", OPTION_CHOICE, type, field.method, .value = "NAME",                   \
                   .fallback = "auto", .choices = solver_method_choices,                           \
                   .help = "algorithm: als, or with constraints hals or admm; with --loss "        \
                           "poisson, mu or pdnr; with --observed, als, ccd or newton; auto "       \
                           "chooses the first that supports the loss and the constraints, but "    \
                           "ccd for a completion with the loss ls and a rank above 192"),          \
        OPTION_ROW(                                                                                \
            "nonnegative", OPTION_MODES_OR_ALL, type, field.nonnegative, .value = "MODES",         \
            .help =                                                                                \
                "factors without negative numbers, in the listed modes (such as 1,3) or in all"),  \
        OPTION_ROW(                                                                                \
            "simplex", OPTION_MODES_OR_ALL, type, field.simplex, .value = "MODES",                 \
            .help = "factors whose rows are on the simplex (without negative numbers, with the "   \
                    "sum 1), in the modes listed, or in all; their columns are not normalized"),   \
        OPTION_ROW(                                                                                \
            "l1", OPTION_MODE_NUMBERS, type, field.l1, .value = "[MODE=]X",                        \
            .help = "penalty that makes factors sparse: X times the sum of the magnitudes of the " \
                    "numbers of each factor, or of the factor of mode MODE; may be repeated"),     \
        OPTION_ROW("reg", OPTION_MODE_NUMBERS, type, field.regularization, .value = "[MODE=]X",    \
                   .fallback = "0",                                                                \
                   .help = "regularization: a number added to the diagonal of the matrix V with "  \
                           "which a mode is solved (elementwise product of the Gram matrices of "  \
                           "the other modes), for all modes or for mode MODE; may be repeated"),   \
        OPTION_ROW("smooth", OPTION_MODE_NUMBERS, type, field.smooth, .value = "[MODE=]W",         \
                   .help = "penalty that makes columns smooth: W times the sum of the squared "    \
                           "differences of consecutive rows of each factor, or of the factor of "  \
                           "mode MODE; may be repeated"),                                          \
        OPTION_ROW(                                                                                \
            "bounds", OPTION_MODE_BOUNDS, type, field.bounds, .value = "[MODE=]LOW,HIGH",          \
            .help =                                                                                \
                "smallest and largest number in all factors, or in the factor of mode MODE; "      \
                "their columns are not normalized; -inf and inf mean no bound; may be repeated")
/* NOLINTEND(bugprone-macro-parentheses) */

/* Sets algorithm, loss and terms in *solver, whose rank is set, for a tensor of `order` modes of
 * the sizes `dims`. Sets in *session what the plan needs for them; `session` then refers to
 * `solver`. Replaces a tolerance below 0 with the default for the loss. Errors: SLC_ERR_USAGE if an
 * option names a mode that the tensor does not have; those of slc_cp_choose_method. */
enum slc_status solver_options_set(const struct solver_options *options,
                                   const struct slc_manifest *manifest,
                                   struct session_options *session,
                                   double *tolerance,
                                   struct slc_cp_options *solver,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
