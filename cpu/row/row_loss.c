/* Losses of a value and a model on stored cells [Hong2020]. The second derivatives of the Poisson
 * and gamma losses are replaced by their expected values at v = m: the steps are those of Fisher
 * scoring, which also make progress far from the minimum. */
#include "cpu/row/row.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static const double LEAST_MODEL = 1e-10, LEAST_CURVATURE = 1e-12;

static void evaluate_squares(const struct slc_row_loss *loss,
                             uint32_t count,
                             const double *values,
                             const double *models,
                             double *losses,
                             double *first,
                             double *second)
{
    (void)loss;
    for (uint32_t i = 0; i < count; i++) {
        const double residual = values[i] - models[i];

        losses[i] = residual * residual;
        if (first != NULL) {
            first[i] = -2.0 * residual;
            second[i] = 2.0;
        }
    }
}

static void evaluate_poisson(const struct slc_row_loss *loss,
                             uint32_t count,
                             const double *values,
                             const double *models,
                             double *losses,
                             double *first,
                             double *second)
{
    (void)loss;
    for (uint32_t i = 0; i < count; i++) {
        const double model = fmax(models[i], LEAST_MODEL);

        losses[i] = model - values[i] * log(model);
        if (first != NULL) {
            first[i] = 1.0 - values[i] / model;
            second[i] = 1.0 / model;
        }
    }
}

static void evaluate_bernoulli(const struct slc_row_loss *loss,
                               uint32_t count,
                               const double *values,
                               const double *models,
                               double *losses,
                               double *first,
                               double *second)
{
    (void)loss;
    for (uint32_t i = 0; i < count; i++) {
        const double model = models[i];
        const double power = exp(-fabs(model));
        const double smaller = power / (1.0 + power); /* the smaller of the two probabilities */

        losses[i] = fmax(model, 0.0) + log1p(power) - values[i] * model;
        if (first != NULL) {
            first[i] = (model > 0.0 ? 1.0 - smaller : smaller) - values[i];
            second[i] = fmax(smaller * (1.0 - smaller), LEAST_CURVATURE);
        }
    }
}

static void evaluate_gamma(const struct slc_row_loss *loss,
                           uint32_t count,
                           const double *values,
                           const double *models,
                           double *losses,
                           double *first,
                           double *second)
{
    (void)loss;
    for (uint32_t i = 0; i < count; i++) {
        const double model = fmax(models[i], LEAST_MODEL);

        losses[i] = values[i] / model + log(model);
        if (first != NULL) {
            first[i] = (1.0 - values[i] / model) / model;
            second[i] = 1.0 / (model * model);
        }
    }
}

static void evaluate_huber(const struct slc_row_loss *loss,
                           uint32_t count,
                           const double *values,
                           const double *models,
                           double *losses,
                           double *first,
                           double *second)
{
    const double delta = loss->parameter;

    for (uint32_t i = 0; i < count; i++) {
        const double residual = values[i] - models[i];
        const double size = fabs(residual);
        const double weight = size <= delta ? 1.0 : delta / size;

        losses[i] = size <= delta ? size * size : delta * (2.0 * size - delta);
        if (first != NULL) {
            first[i] = -2.0 * weight * residual;
            second[i] = 2.0 * weight;
        }
    }
}

struct slc_row_loss slc_row_loss(enum slc_row_loss_kind kind, double parameter)
{
    static const struct slc_row_loss losses[SLC_ROW_LOSSES] = {
        [SLC_ROW_LOSS_LS] = {"ls", false, 0.0, evaluate_squares},
        [SLC_ROW_LOSS_POISSON] = {"poisson", true, 0.0, evaluate_poisson},
        [SLC_ROW_LOSS_BERNOULLI] = {"bernoulli", false, 0.0, evaluate_bernoulli},
        [SLC_ROW_LOSS_GAMMA] = {"gamma", true, 0.0, evaluate_gamma},
        [SLC_ROW_LOSS_HUBER] = {"huber", false, 0.0, evaluate_huber},
    };
    struct slc_row_loss loss;

    assert((unsigned)kind < SLC_ROW_LOSSES);
    loss = losses[kind];
    loss.parameter = parameter;
    return loss;
}
