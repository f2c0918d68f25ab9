/* Computes products of the rows that a run of a fiber shares, over one panel of columns. Part of
 * the templates that panel_tmpl.h includes. */

static inline __attribute__((always_inline)) const PANEL(vec) *
    PANEL(row)(const unsigned char *base, uint32_t offset, uint64_t stride)
{
    return (const PANEL(vec) *)(const void *)(base + (uint64_t)offset * stride);
}

/* Multiplies `product` by the rows that run `r` shares, of factor `first` and all later factors. */
static inline __attribute__((always_inline)) void PANEL(share)(const struct slc_fiber_span *span,
                                                               uint64_t column,
                                                               unsigned first,
                                                               unsigned factors,
                                                               uint32_t r,
                                                               PANEL(sum) * product)
{
    for (unsigned m = first; m < factors; m++) {
        const PANEL(vec) *row =
            PANEL(row)(span->factor[m] + column, span->offset[m][r], span->stride);

        UNROLL
        for (int k = 0; k < VECTORS; k++) {
            product[k] *= __builtin_convertvector(row[k], PANEL(sum));
        }
    }
}
