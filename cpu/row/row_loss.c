/* Losses of a value and a model on stored cells [Hong2020]. The second derivatives of the Poisson
 * and gamma losses are replaced by their expected values at v = m: the steps are those of Fisher
 * scoring, which also make progress far from the minimum. */
#include "cpu/row/row.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static const double LEAST_CURVATURE = 1e-12;

/* The loss of a cell, and its derivatives by the model. */
struct cell {
    double loss, first, second;
};

static struct cell squares(double value, double model, double delta)
{
    const double residual = value - model;

    (void)delta;
    return (struct cell){residual * residual, -2.0 * residual, 2.0};
}

static struct cell poisson(double value, double m, double delta)
{
    const double model = fmax(m, SLC_LOSS_LEAST_MODEL);

    (void)delta;
    return (struct cell){model - value * log(model), 1.0 - value / model, 1.0 / model};
}

static struct cell bernoulli(double value, double model, double delta)
{
    const double power = exp(-fabs(model));
    const double smaller = power / (1.0 + power); /* the smaller of the two probabilities */

    (void)delta;
    return (struct cell){fmax(model, 0.0) + log1p(power) - value * model,
                         (model > 0.0 ? 1.0 - smaller : smaller) - value,
                         fmax(smaller * (1.0 - smaller), LEAST_CURVATURE)};
}

static struct cell gamma_loss(double value, double m, double delta)
{
    const double model = fmax(m, SLC_LOSS_LEAST_MODEL);

    (void)delta;
    return (struct cell){value / model + log(model), (1.0 - value / model) / model,
                         1.0 / (model * model)};
}

static struct cell huber(double value, double model, double delta)
{
    const double residual = value - model, size = fabs(residual);
    const double weight = size <= delta ? 1.0 : delta / size;

    return (struct cell){size <= delta ? size * size : delta * (2.0 * size - delta),
                         -2.0 * weight * residual, 2.0 * weight};
}

/* Defines slc_row_loss.evaluate for the function of a cell, which the compiler inlines. */
#define EVALUATE(cell_loss)                                                                        \
    static void evaluate_##cell_loss(const struct slc_row_loss *loss, uint32_t count,              \
                                     const double *values, const double *models, double *losses,   \
                                     double *first, double *second)                                \
    {                                                                                              \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            const struct cell cell = cell_loss(values[i], models[i], loss->delta);                 \
                                                                                                   \
            losses[i] = cell.loss;                                                                 \
            if (first != NULL) {                                                                   \
                first[i] = cell.first;                                                             \
                second[i] = cell.second;                                                           \
            }                                                                                      \
        }                                                                                          \
    }
EVALUATE(squares)
EVALUATE(poisson)
EVALUATE(bernoulli)
EVALUATE(gamma_loss)
EVALUATE(huber)

struct slc_row_loss slc_row_loss(enum slc_loss loss, double delta)
{
    static void (*const evaluate[])(const struct slc_row_loss *, uint32_t, const double *,
                                    const double *, double *, double *, double *) = {
        [SLC_LOSS_LS] = evaluate_squares,          [SLC_LOSS_POISSON] = evaluate_poisson,
        [SLC_LOSS_BERNOULLI] = evaluate_bernoulli, [SLC_LOSS_GAMMA] = evaluate_gamma_loss,
        [SLC_LOSS_HUBER] = evaluate_huber,
    };

    assert((unsigned)loss <= SLC_LOSS_HUBER);
    return (struct slc_row_loss){slc_loss_is_nonnegative(loss), delta, evaluate[loss]};
}
