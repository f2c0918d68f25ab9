/* Computes products of factor rows over one panel of columns. Part of the templates that
 * panel_tmpl.h includes. */

/* Adds value * product of the factor rows of nonzero i to `sum`, for a constant factor count. */
static inline __attribute__((always_inline)) void PANEL(add_few)(const unsigned char *const *base,
                                                                 const uint32_t *const *offset,
                                                                 uint64_t stride,
                                                                 unsigned factors,
                                                                 uint32_t i,
                                                                 ELEMENT value,
                                                                 PANEL(sum) * sum)
{
    const PANEL(vec) * row[4] = {0};

    UNROLL
    for (unsigned m = 0; m < factors; m++) {
        row[m] = (const PANEL(vec) *)(const void *)(base[m] + (uint64_t)offset[m][i] * stride);
    }
    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        PANEL(vec) product = value * row[0][k];
        UNROLL
        for (unsigned m = 1; m < factors; m++) {
            product *= row[m][k];
        }
        sum[k] += __builtin_convertvector(product, PANEL(sum));
    }
}

/* Does the same as add_few, for any number of factors. */
static inline __attribute__((always_inline)) void PANEL(add_many)(const unsigned char *const *base,
                                                                  const uint32_t *const *offset,
                                                                  uint64_t stride,
                                                                  unsigned factors,
                                                                  uint32_t i,
                                                                  ELEMENT value,
                                                                  PANEL(sum) * sum)
{
    PANEL(vec) product[VECTORS];
    const PANEL(vec) *first =
        (const PANEL(vec) *)(const void *)(base[0] + (uint64_t)offset[0][i] * stride);

    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        product[k] = value * first[k];
    }
    for (unsigned m = 1; m < factors; m++) {
        const PANEL(vec) *row =
            (const PANEL(vec) *)(const void *)(base[m] + (uint64_t)offset[m][i] * stride);
        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            product[k] *= row[k];
        }
    }
    UNROLL
    for (int k = 0; k < VECTORS; k++) {
        sum[k] += __builtin_convertvector(product[k], PANEL(sum));
    }
}
