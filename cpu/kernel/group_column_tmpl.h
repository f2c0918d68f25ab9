/* Computes MTTKRP over groups, for rows of one column. Included by group_set.c once per element
 * type. Even and odd nonzeros of a group have separate sums, so that an addition need not wait for
 * the previous addition. An addition takes longer than the loads of a product. */
#define COLUMN_PASTE(name, type, log2)  name##_##type##_##log2
#define COLUMN_EXPAND(name, type, log2) COLUMN_PASTE(name, type, log2)
#define COLUMN(name)                    COLUMN_EXPAND(name, TYPE, ELEMENT_LOG2)

static inline __attribute__((always_inline)) void COLUMN(groups)(const struct slc_group_span *span,
                                                                 unsigned varying)
{
    const ELEMENT *values = span->values;
    const uint32_t *begin = span->begin;
    double *output = (double *)(void *)span->output;
    const ELEMENT *factor[SLC_MAX_ORDER];
    const uint32_t *offset[SLC_MAX_ORDER];
    uint32_t i = 0;

    for (unsigned m = 0; m < span->factor_count; m++) {
        factor[m] = (const ELEMENT *)(const void *)span->factor[m];
        offset[m] = span->offset[m];
    }
    for (uint32_t g = 0; g < span->groups; g++) {
        const uint32_t end = begin[g + 1];
        double sum[2] = {0, 0};

        for (; i < end; i++) {
            ELEMENT product = values[i];

            for (unsigned m = 0; m < varying; m++) {
                product *= factor[m][offset[m][i]];
            }
            sum[i & 1] += (double)product;
        }
        sum[0] += sum[1];
        for (unsigned m = varying; m < span->factor_count; m++) {
            sum[0] *= (double)factor[m][offset[m][g]];
        }
        output[span->rows[g]] += sum[0];
    }
}

KERNEL(COLUMN(varying_1), slc_group_span, COLUMN(groups)(span, 1))
KERNEL(COLUMN(varying_2), slc_group_span, COLUMN(groups)(span, 2))
KERNEL(COLUMN(varying_3), slc_group_span, COLUMN(groups)(span, 3))
KERNEL(COLUMN(varying_4), slc_group_span, COLUMN(groups)(span, 4))
KERNEL(COLUMN(varying_any), slc_group_span, COLUMN(groups)(span, span->varying))

#undef COLUMN
#undef COLUMN_EXPAND
#undef COLUMN_PASTE
