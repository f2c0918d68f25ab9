/* Converts the constraints and penalties of a public decomposition to those of the solver, and to
 * JSON with the option names of the command. */
#include "api/cpd.h"
#include "report/json_parts.h"
#include "sluice/row_solver.h"

#include <math.h>
#include <stdio.h>

void api_cpd_fill_terms(const struct sluice_cpd_options *known,
                        unsigned order,
                        struct slc_cp_options *options)
{
    const bool unknown = known->unlisted == SLUICE_UNLISTED_UNKNOWN || known->row_solver != NULL;

    options->algorithm = (enum slc_cp_algorithm)known->method;
    options->loss = (enum slc_loss)known->loss;
    options->unlisted = unknown ? SLC_UNLISTED_UNKNOWN : SLC_UNLISTED_ZERO;
    options->biases = (enum slc_biases)known->biases;
    options->inner = known->inner;
    options->huber = known->huber != 0.0 ? known->huber : 1.0;
    options->ridge_chosen =
        unknown && known->regularization == 0.0 && known->regularizations == NULL;
    options->holdout = known->holdout;
    for (unsigned n = 0; n < order; n++) {
        struct slc_row_terms *terms = &options->terms[n];

        terms->nonnegative = (known->nonnegative >> n & 1U) != 0;
        terms->simplex = (known->simplex >> n & 1U) != 0;
        terms->ridge = (unknown ? fmax(known->regularization, 0.0) : known->regularization) +
                       (known->regularizations != NULL ? known->regularizations[n] : 0.0);
        terms->l1 = known->l1 != NULL ? known->l1[n] : 0.0;
        terms->smooth = known->smooth != NULL ? known->smooth[n] : 0.0;
        terms->low = known->low != NULL ? known->low[n] : -INFINITY;
        terms->high = known->high != NULL ? known->high[n] : INFINITY;
        terms->bounded = !(terms->low == -INFINITY && terms->high == INFINITY);
    }
}

enum slc_status api_cpd_terms(const struct sluice_cpd_options *known,
                              unsigned order,
                              struct slc_cp_options *options,
                              struct slc_error *err)
{
    if ((known->nonnegative | known->simplex) >> order != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "nonnegative is 0x%x and simplex 0x%x, but the tensor has only %u modes: "
                        "clear the bits of other modes",
                        known->nonnegative, known->simplex, order);
    }
    if ((known->low == NULL) != (known->high == NULL)) {
        return slc_fail(err, SLC_ERR_USAGE, "only one of low and high is set: set both or none");
    }
    if (known->loss > SLUICE_LOSS_HUBER || known->unlisted > SLUICE_UNLISTED_UNKNOWN ||
        known->biases > SLUICE_BIASES_ALL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "loss is %u, unlisted %u and biases %u: one of them is not a value of its enum",
            known->loss, known->unlisted, known->biases);
    }
    if (known->method > SLUICE_METHOD_NEWTON) {
        return slc_fail(err, SLC_ERR_USAGE, "method is %u, not an enum sluice_method",
                        known->method);
    }
    api_cpd_fill_terms(known, order, options);
    return slc_cp_choose_method(options, order, &options->algorithm, err);
}

/* Returns the numbers of all modes for an option [MODE=]X: null if all are 0, one number if all are
 * equal, otherwise the text "MODE=X" of each mode. */
static json_t *mode_numbers(const double *numbers, unsigned order)
{
    bool some = false, same = true;

    for (unsigned n = 0; n < order; n++) {
        some = some || numbers[n] != 0.0;
        same = same && numbers[n] == numbers[0];
    }
    if (!some || same) {
        return some ? json_real(numbers[0]) : json_null();
    }
    json_t *array = json_array();
    for (unsigned n = 0; n < order; n++) {
        char text[64];

        (void)snprintf(text, sizeof text, "%u=%.17g", n + 1, numbers[n]);
        (void)json_array_append_new(array, json_string(text));
    }
    return array;
}

static json_t *bounds_json(const struct slc_row_terms *terms, unsigned order)
{
    json_t *array = json_null();

    for (unsigned n = 0; n < order; n++) {
        char text[96];

        if (terms[n].bounded) {
            array = json_is_null(array) ? json_array() : array;
            (void)snprintf(text, sizeof text, "%u=%.17g,%.17g", n + 1, terms[n].low, terms[n].high);
            (void)json_array_append_new(array, json_string(text));
        }
    }
    return array;
}

/* Returns a set of modes as JSON: true for all modes, null for none, otherwise the list of modes
 * counted from 1. */
static json_t *modes_json(uint32_t modes, unsigned order)
{
    if (modes == 0) {
        return json_null();
    }
    if (modes == (UINT32_C(1) << order) - 1) {
        return json_true();
    }
    json_t *array = json_array();
    for (unsigned n = 0; n < order; n++) {
        if ((modes >> n & 1U) != 0) {
            (void)json_array_append_new(array, json_integer(n + 1));
        }
    }
    return array;
}

void api_cpd_terms_json(json_t *object, const struct sluice_cpd_options *known, unsigned order)
{
    struct slc_cp_options solver = {.rank = 1}; /* the rank does not matter here */
    double ridge[SLC_MAX_ORDER], l1[SLC_MAX_ORDER], smooth[SLC_MAX_ORDER];

    api_cpd_fill_terms(known, order, &solver);
    for (unsigned n = 0; n < order; n++) {
        ridge[n] = solver.terms[n].ridge;
        l1[n] = solver.terms[n].l1;
        smooth[n] = solver.terms[n].smooth;
    }
    slc_json_set(object, "method",
                 known->method != SLUICE_METHOD_AUTO
                     ? json_string(slc_cp_algorithm_name(solver.algorithm))
                     : json_null());
    slc_json_set(object, "nonnegative", modes_json(known->nonnegative, order));
    slc_json_set(object, "simplex", modes_json(known->simplex, order));
    slc_json_set(object, "l1", mode_numbers(l1, order));
    slc_json_set(object, "smooth", mode_numbers(smooth, order));
    slc_json_set(object, "reg", mode_numbers(ridge, order));
    slc_json_set(object, "bounds", bounds_json(solver.terms, order));
    if (known->row_solver != NULL) {
        slc_json_set_text(object, "row_solver", known->row_solver->name);
    }
    if (slc_cp_needs_nonzeros(&solver)) {
        slc_json_set_text(object, "loss", slc_loss_name(solver.loss));
        slc_json_set_text(object, "unlisted", slc_unlisted_name(solver.unlisted));
        slc_json_set_text(object, "biases", slc_biases_name(solver.biases));
        slc_json_set(object, "inner",
                     json_integer(solver.inner != 0 ? solver.inner : SLC_CP_INNER));
        slc_json_set_real(object, "huber", solver.huber);
    }
}
