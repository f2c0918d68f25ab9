/* Computes the sides of best-case boxes. Modes are processed by increasing size. With k modes left,
 * the side of the next mode is the k-th root of the number of remaining cells, or the mode size if
 * this is smaller. In thousands of small cases, a search of all boxes found no smaller sum of the
 * sides. */
#include "convert/generate/full_box.h"

#include "base/memory/checked.h"

#include <math.h>
#include <stdbool.h>

/* Returns true if base^exponent >= value. */
static bool power_reaches(uint64_t base, unsigned exponent, uint64_t value)
{
    uint64_t power = 1;

    for (unsigned i = 0; i < exponent; i++) {
        if (!slc_mul_u64(power, base, &power)) {
            return true;
        }
    }
    return power >= value;
}

/* Returns the smallest number n with n^exponent >= value. */
static uint64_t root_up(uint64_t value, unsigned exponent)
{
    /* The logarithm of the result of pow is at most 45 and has a relative error of 1e-16, so the
     * relative error of the root is at most 5e-15. */
    uint64_t root = (uint64_t)(pow((double)value, 1.0 / exponent) * (1 - 1e-14));

    while (!power_reaches(root, exponent, value)) {
        root++;
    }
    return root;
}

/* Sets the sides of the modes that are not in the set `done`; their product is at least `cells`. */
static void
even_sides(unsigned order, const uint64_t *dims, uint32_t done, uint64_t cells, uint64_t *sides)
{
    unsigned left = order - (unsigned)__builtin_popcount(done);

    for (; left > 0; left--) {
        unsigned shortest = SLC_MAX_ORDER;

        for (unsigned n = 0; n < order; n++) {
            if ((done >> n & 1) == 0 && (shortest == SLC_MAX_ORDER || dims[n] < dims[shortest])) {
                shortest = n;
            }
        }
        sides[shortest] = slc_min_u64(dims[shortest], root_up(cells, left));
        cells = slc_div_up_u64(cells, sides[shortest]);
        done |= UINT32_C(1) << shortest;
    }
}

void slc_full_box_sides(
    unsigned order, const uint64_t *dims, uint64_t nnz, unsigned ttm_mode, uint64_t *sides)
{
    const unsigned mode = ttm_mode - 1;
    uint64_t others = 1; /* cells of a slice of `mode`; UINT64_MAX: more than nnz */

    if (ttm_mode == 0) {
        even_sides(order, dims, 0, nnz, sides);
        return;
    }
    for (unsigned n = 0; n < order; n++) {
        if (n != mode && !slc_mul_u64(others, dims[n], &others)) {
            others = UINT64_MAX;
        }
    }
    /* If the other modes are small, the side of this mode must be longer than the square root. */
    sides[mode] =
        slc_min_u64(dims[mode], slc_max_u64(root_up(nnz, 2), slc_div_up_u64(nnz, others)));
    even_sides(order, dims, UINT32_C(1) << mode, slc_div_up_u64(nnz, sides[mode]), sides);
}
