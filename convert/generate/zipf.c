/* Draws Zipf-distributed indices. With the symbols of the paper, h(x) = x^-s and H(x) = (x^(1-s) -
 * 1) / (1 - s), which is log x for s = 1. The functions expm1 and log1p keep H and its inverse
 * accurate near s = 1. */
#include "convert/generate/zipf.h"

#include "base/random.h"

#include <math.h>

static double density(const struct slc_zipf *zipf, double x)
{
    return exp(-zipf->exponent * log(x));
}

static double integral(const struct slc_zipf *zipf, double x)
{
    double logarithm = log(x);
    double t = (1 - zipf->exponent) * logarithm;

    return fabs(t) < 1e-12 ? logarithm : expm1(t) / t * logarithm;
}

static double inverse(const struct slc_zipf *zipf, double y)
{
    double t = y * (1 - zipf->exponent);

    /* Rounding may make t slightly smaller than -1, where log1p has its pole. */
    t = t < -1 ? -1 : t;
    return fabs(t) < 1e-12 ? exp(y) : exp(log1p(t) / t * y);
}

void slc_zipf_init(struct slc_zipf *zipf, uint64_t length, double exponent)
{
    zipf->length = length;
    zipf->exponent = exponent;
    zipf->integral_first = integral(zipf, 1.5) - 1;
    zipf->integral_last = integral(zipf, (double)length + 0.5);
    zipf->sure = 2 - inverse(zipf, integral(zipf, 2.5) - density(zipf, 2));
}

uint64_t slc_zipf_draw(
    const struct slc_zipf *zipf, uint64_t seed, uint64_t stream, uint64_t stride, uint64_t index)
{
    for (;; stream += stride) {
        double u = zipf->integral_last + slc_random_f64(seed, stream, index) *
                                             (zipf->integral_first - zipf->integral_last);
        double x = inverse(zipf, u);
        double k = floor(x + 0.5);

        k = k < 1 ? 1 : k;
        k = k > (double)zipf->length ? (double)zipf->length : k;
        if (k - x <= zipf->sure || u >= integral(zipf, k + 0.5) - density(zipf, k)) {
            uint64_t id = (uint64_t)k;

            /* The conversion of the length to double may have rounded it up. */
            return (id > zipf->length ? zipf->length : id) - 1;
        }
    }
}
