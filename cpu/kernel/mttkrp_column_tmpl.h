/* Computes MTTKRP of rank 1. Included by mttkrp_tmpl.c instead of the panel of one element; defines
 * the same five functions for nonzeros and five functions for runs of fibers. Needs the macros
 * ELEMENT, ELEMENT_LOG2 and TYPE. Rows of one element are contiguous, so a row is addressed by its
 * number, without a multiplication, and costs one load. The sums of single nonzeros have the same
 * bits as in mttkrp_panel_tmpl.h. A run of a fiber is a dot product: its nonzeros are distributed
 * over eight sums in every instruction set. Single nonzeros are processed in pairs, with scalar
 * instructions. Vector gathers of the rows of eight nonzeros take at least as long as scalar loads
 * (1.4 ns instead of 1.2 ns per nonzero with AVX-512 and three modes), and sums depend on each
 * other if output rows repeat. Nothing is prefetched: with so few instructions per nonzero,
 * out-of-order execution overlaps the loads of dozens of nonzeros. */
#define COLUMN_PASTE(name, type)       name##_##type
#define COLUMN_EXPAND(name, type)      COLUMN_PASTE(name, type)
#define COLUMN(name)                   COLUMN_EXPAND(column_##name, TYPE)
#define ENTRY_PASTE(name, type, log2)  name##_##type##_##log2
#define ENTRY_EXPAND(name, type, log2) ENTRY_PASTE(name, type, log2)
#define ENTRY(name)                    ENTRY_EXPAND(name, TYPE, ELEMENT_LOG2)

/* Factors of a slc_mttkrp_span or slc_fiber_span, which stay in registers if their number is a
 * constant. */
struct COLUMN(factors) {
    const ELEMENT *row[SLC_MAX_ORDER];
    const uint32_t *offset[SLC_MAX_ORDER];
};

static inline __attribute__((always_inline)) void
COLUMN(set_factors)(struct COLUMN(factors) * factors,
                    const unsigned char *const *factor,
                    const uint32_t *const *offset,
                    unsigned count)
{
    for (unsigned m = 0; m < count; m++) {
        factors->row[m] = (const ELEMENT *)(const void *)factor[m];
        factors->offset[m] = offset[m];
    }
}

/* Multiplies *value by the factor rows of nonzero i. */
static inline __attribute__((always_inline)) void
COLUMN(multiply)(const struct COLUMN(factors) * factors, unsigned count, uint32_t i, ELEMENT *value)
{
    for (unsigned m = 0; m < count; m++) {
        *value *= factors->row[m][factors->offset[m][i]];
    }
}

/* Multiplies the values of nonzeros i and i + 1 by their factor rows. */
static inline __attribute__((always_inline)) void COLUMN(multiply_pair)(
    const struct COLUMN(factors) * factors, unsigned count, uint32_t i, ELEMENT value[2])
{
    for (unsigned m = 0; m < count; m++) {
        const struct column_pair pair = column_pair(factors->offset[m] + i);

        value[0] *= factors->row[m][pair.first];
        value[1] *= factors->row[m][pair.second];
    }
}

#if SLC_SET != SET_AVX512
static inline double
COLUMN(dot)(const ELEMENT *values, const uint32_t *offset, uint32_t count, const ELEMENT *rows)
{
    double parts[8] = {0};
    uint32_t i = 0;

    for (; i + 8 <= count; i += 8) {
        UNROLL
        for (uint32_t k = 0; k < 8; k++) {
            parts[k] += (double)(ELEMENT)(values[i + k] * rows[offset[i + k]]);
        }
    }
    for (uint32_t k = 0; i + k < count; k++) {
        parts[k] += (double)(ELEMENT)(values[i + k] * rows[offset[i + k]]);
    }
    return column_tree(parts);
}
#endif

static inline __attribute__((always_inline)) void
COLUMN(add_products)(const struct slc_mttkrp_span *span, unsigned count)
{
    const ELEMENT *values = span->values;
    const uint32_t *rows = span->rows;
    double *output = (double *)(void *)span->output;
    const uint32_t nnz = span->nnz;
    struct COLUMN(factors) factors;
    uint32_t i = 0;

    COLUMN(set_factors)(&factors, span->factor, span->offset, count);
    for (; i + 2 <= nnz; i += 2) {
        const struct column_pair row = column_pair(rows + i);
        ELEMENT pair[2] = {values[i], values[i + 1]};

        COLUMN(multiply_pair)(&factors, count, i, pair);
        output[row.first] += (double)pair[0];
        output[row.second] += (double)pair[1];
    }
    if (i < nnz) {
        ELEMENT last = values[i];

        COLUMN(multiply)(&factors, count, i, &last);
        output[rows[i]] += (double)last;
    }
}

/* Does the same as add_products, but sums neighbours with the same output row in a register. */
static inline __attribute__((always_inline)) void
COLUMN(merge_products)(const struct slc_mttkrp_span *span, unsigned count)
{
    const ELEMENT *values = span->values;
    const uint32_t *rows = span->rows;
    double *output = (double *)(void *)span->output;
    struct COLUMN(factors) factors;

    COLUMN(set_factors)(&factors, span->factor, span->offset, count);
    for (uint32_t i = 0; i < span->nnz;) {
        const uint32_t row = rows[i];
        double sum = output[row];

        do {
            ELEMENT value = values[i];

            COLUMN(multiply)(&factors, count, i, &value);
            sum += (double)value;
            i++;
        } while (i < span->nnz && rows[i] == row);
        output[row] = sum;
    }
}

static inline __attribute__((always_inline)) void
COLUMN(nonzeros)(const struct slc_mttkrp_span *span, unsigned count)
{
    if (span->merge_runs) {
        COLUMN(merge_products)(span, count);
    } else {
        COLUMN(add_products)(span, count);
    }
}

/* Used if the output's mode is not the fibers' mode. Computes a dot product over each run. */
static inline __attribute__((always_inline)) void
COLUMN(gather_runs)(const struct slc_fiber_span *span, unsigned count)
{
    const ELEMENT *values = span->values;
    const ELEMENT *run_rows = (const ELEMENT *)(const void *)span->run_factor;
    const uint32_t *begin = span->begin;
    double *output = (double *)(void *)span->output;
    struct COLUMN(factors) factors;

    COLUMN(set_factors)(&factors, span->factor, span->offset, count);
    for (uint32_t r = 0; r < span->runs; r++) {
        const uint32_t i = begin[r];
        double sum = COLUMN(dot)(values + i, span->run_offset + i, begin[r + 1] - i, run_rows);

        for (unsigned m = 0; m < count; m++) {
            sum *= (double)factors.row[m][factors.offset[m][r]];
        }
        output[span->rows[r]] += sum;
    }
}

/* Adds, to the output row of each nonzero `begin` + i before `end`, its value times shared[i]. */
static inline __attribute__((always_inline)) void COLUMN(add_buffered)(
    const struct slc_fiber_span *span, const double *shared, uint32_t begin, uint32_t end)
{
    const ELEMENT *values = (const ELEMENT *)span->values + begin;
    const uint32_t *rows = span->run_offset + begin;
    double *output = (double *)(void *)span->output;

    for (uint32_t i = 0; i < end - begin; i++) {
        output[rows[i]] += (double)values[i] * shared[i];
    }
}

/* Used if the output's mode is the fibers' mode. Adds, to the output row of each nonzero of a run,
 * its value times the product that the run shares. The shared products are buffered, one per
 * nonzero, so that a run of up to eight nonzeros needs no branch on its length. */
static inline __attribute__((always_inline)) void
COLUMN(scatter_runs)(const struct slc_fiber_span *span, unsigned count)
{
    const uint32_t *begin = span->begin;
    double shared[COLUMN_BUFFER + 8];
    struct COLUMN(factors) factors;
    uint32_t from = begin[0];

    COLUMN(set_factors)(&factors, span->factor, span->offset, count);
    for (uint32_t r = 0; r < span->runs; r++) {
        double product = (double)factors.row[0][factors.offset[0][r]];

        for (unsigned m = 1; m < count; m++) {
            product *= (double)factors.row[m][factors.offset[m][r]];
        }
        for (uint32_t i = begin[r]; i < begin[r + 1]; i += 8) {
            if (i - from >= COLUMN_BUFFER) {
                COLUMN(add_buffered)(span, shared, from, i);
                from = i;
            }
            /* The store may exceed the end of the run; the next run overwrites these elements of
             * `shared` later. */
            *(column_eight *)(void *)(shared + (i - from)) = (column_eight){
                product, product, product, product, product, product, product, product};
        }
    }
    COLUMN(add_buffered)(span, shared, from, begin[span->runs]);
}

static inline __attribute__((always_inline)) void COLUMN(runs)(const struct slc_fiber_span *span,
                                                               unsigned count)
{
    if (span->run_factor == NULL) {
        COLUMN(scatter_runs)(span, count);
    } else {
        COLUMN(gather_runs)(span, count);
    }
}

/* A row has one column, so the column offset is 0. */
KERNEL(ENTRY(factors_1), slc_mttkrp_span, COLUMN(nonzeros)(span, 1))
KERNEL(ENTRY(factors_2), slc_mttkrp_span, COLUMN(nonzeros)(span, 2))
KERNEL(ENTRY(factors_3), slc_mttkrp_span, COLUMN(nonzeros)(span, 3))
KERNEL(ENTRY(factors_4), slc_mttkrp_span, COLUMN(nonzeros)(span, 4))
KERNEL(ENTRY(factors_any), slc_mttkrp_span, COLUMN(nonzeros)(span, span->factor_count))
/* No shared factor means order 2, with an output whose mode is not the fibers' mode. */
KERNEL(ENTRY(shared_0), slc_fiber_span, COLUMN(gather_runs)(span, 0))
KERNEL(ENTRY(shared_1), slc_fiber_span, COLUMN(runs)(span, 1))
KERNEL(ENTRY(shared_2), slc_fiber_span, COLUMN(runs)(span, 2))
KERNEL(ENTRY(shared_3), slc_fiber_span, COLUMN(runs)(span, 3))
KERNEL(ENTRY(shared_any), slc_fiber_span, COLUMN(runs)(span, span->factor_count))

#undef ENTRY
#undef ENTRY_EXPAND
#undef ENTRY_PASTE
#undef COLUMN
#undef COLUMN_EXPAND
#undef COLUMN_PASTE
