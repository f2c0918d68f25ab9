/* The kernels of xplat.h for vectors of 2^VECTOR_LOG2 bytes of ELEMENT. xplat_set.c includes this
 * file once per type and width, and defines TYPE (f32 or f64). Rows are whole vectors, because
 * matrices are padded; the padding is 0. */
#define XPLAT_PASTE(name, type, log2)  xplat_##name##_##type##_##log2
#define XPLAT_EXPAND(name, type, log2) XPLAT_PASTE(name, type, log2)
#define XPLAT(name)                    XPLAT_EXPAND(name, TYPE, VECTOR_LOG2)
/* Two arrays of vectors fill half of the registers. */
#define VECTORS_MOST ((1 << VECTOR_LOG2) < SET_VECTOR_BYTES ? 1U : SET_VECTOR_REGISTERS / 4U)

typedef ELEMENT XPLAT(vec) __attribute__((vector_size(1 << VECTOR_LOG2), may_alias));

static inline __attribute__((always_inline)) const XPLAT(vec) *
    XPLAT(row)(const struct slc_xplat_span *span, const unsigned char *matrix, uint32_t index)
{
    return (const XPLAT(vec) *)(const void *)(matrix + index * span->row_bytes);
}

/* Returns the row of shared matrix m that multiplies the sum of a fiber. */
static inline __attribute__((always_inline)) const XPLAT(vec) *
    XPLAT(shared_row)(const struct slc_xplat_span *span,
                      unsigned m,
                      uint64_t fiber,
                      uint64_t column)
{
    return XPLAT(row)(span, span->shared[m] + column, span->shared_index[m][fiber]);
}

/* Adds to `sum` the rows of `matrix` of the nonzeros of a fiber, each times the value. */
static inline __attribute__((always_inline)) void
XPLAT(add_fiber)(const struct slc_xplat_span *span,
                 const unsigned char *matrix,
                 uint64_t fiber,
                 unsigned vectors,
                 XPLAT(vec) * sum)
{
    const struct slc_csf *csf = span->csf;
    const ELEMENT *values = csf->values;

    for (uint32_t e = csf->fiber_begin[fiber]; e < csf->fiber_begin[fiber + 1]; e++) {
        const XPLAT(vec) *row = XPLAT(row)(span, matrix, csf->index[e]);
        const ELEMENT value = values[e];

        UNROLL
        for (unsigned k = 0; k < vectors; k++) {
            sum[k] += value * row[k];
        }
    }
}

static inline __attribute__((always_inline)) void XPLAT(store)(const struct slc_xplat_span *span,
                                                               uint64_t row,
                                                               uint64_t column,
                                                               unsigned vectors,
                                                               const XPLAT(vec) * sum)
{
    XPLAT(vec) *to = (XPLAT(vec) *)(void *)(span->output + row * span->row_bytes + column);

    UNROLL
    for (unsigned k = 0; k < vectors; k++) {
        to[k] = sum[k];
    }
}

/* TTM: computes `vectors` vectors of the output row of a fiber, from byte `column` of the row on.
 */
static inline __attribute__((always_inline)) void
XPLAT(ttm)(const struct slc_xplat_span *span, uint64_t fiber, uint64_t column, unsigned vectors)
{
    XPLAT(vec) sum[SLC_XPLAT_VECTORS] = {{0}};

    XPLAT(add_fiber)(span, span->matrix + column, fiber, vectors, sum);
    XPLAT(store)(span, fiber, column, vectors, sum);
}

/* MTTKRP: computes `vectors` vectors of the output row of a slice. */
static inline __attribute__((always_inline)) void
XPLAT(mttkrp)(const struct slc_xplat_span *span, uint64_t slice, uint64_t column, unsigned vectors)
{
    const uint32_t *slice_begin = span->csf->slice_begin;
    XPLAT(vec) sum[SLC_XPLAT_VECTORS] = {{0}};

    for (uint32_t fiber = slice_begin[slice]; fiber < slice_begin[slice + 1]; fiber++) {
        XPLAT(vec) product[SLC_XPLAT_VECTORS] = {{0}};

        XPLAT(add_fiber)(span, span->matrix + column, fiber, vectors, product);
        for (unsigned m = 1; m < span->shared_count; m++) {
            const XPLAT(vec) *row = XPLAT(shared_row)(span, m, fiber, column);

            UNROLL
            for (unsigned k = 0; k < vectors; k++) {
                product[k] *= row[k];
            }
        }
        const XPLAT(vec) *row = XPLAT(shared_row)(span, 0, fiber, column);
        UNROLL
        for (unsigned k = 0; k < vectors; k++) {
            sum[k] += product[k] * row[k];
        }
    }
    XPLAT(store)(span, slice, column, vectors, sum);
}

static inline __attribute__((always_inline)) void XPLAT(compute)(
    const struct slc_xplat_span *span, bool ttm, uint64_t row, uint64_t column, unsigned vectors)
{
    if (ttm) {
        XPLAT(ttm)(span, row, column, vectors);
    } else {
        XPLAT(mttkrp)(span, row, column, vectors);
    }
}

/* Listings 1 and 3: a unit is a vector of neighbouring elements of the output. */
static inline __attribute__((always_inline)) void
XPLAT(elements)(const struct slc_xplat_span *span, bool ttm, uint64_t begin, uint64_t end)
{
    const uint64_t each = span->row_bytes >> VECTOR_LOG2;
    uint64_t row = begin / each, column = (begin % each) << VECTOR_LOG2;

    for (; begin < end; begin++) {
        XPLAT(compute)(span, ttm, row, column, 1);
        column += UINT64_C(1) << VECTOR_LOG2;
        if (column == span->row_bytes) {
            column = 0;
            row++;
        }
    }
}

/* Calls XPLAT(compute) with a constant number of vectors. */
#define WITH_VECTORS(count)                                                                        \
    case count:                                                                                    \
        XPLAT(compute)(span, ttm, begin, column, count);                                           \
        break;

/* Listings 2 and 4: a unit is a row of the output. */
static inline __attribute__((always_inline)) void
XPLAT(rows)(const struct slc_xplat_span *span, bool ttm, uint64_t begin, uint64_t end)
{
    for (; begin < end; begin++) {
        uint64_t left = span->row_bytes >> VECTOR_LOG2, column = 0;

        while (left > 0) {
            const uint64_t vectors = left < VECTORS_MOST ? left : VECTORS_MOST;

            switch (vectors) {
                WITH_VECTORS(1)
                WITH_VECTORS(2)
                WITH_VECTORS(3)
                WITH_VECTORS(4)
                WITH_VECTORS(5)
                WITH_VECTORS(6)
                WITH_VECTORS(7)
                WITH_VECTORS(8)
            }
            left -= vectors;
            column += vectors << VECTOR_LOG2;
        }
    }
}

#undef WITH_VECTORS

static void XPLAT(ttm_element)(const struct slc_xplat_span *span, uint64_t begin, uint64_t end)
{
    XPLAT(elements)(span, true, begin, end);
}

static void XPLAT(ttm_fiber)(const struct slc_xplat_span *span, uint64_t begin, uint64_t end)
{
    XPLAT(rows)(span, true, begin, end);
}

static void XPLAT(mttkrp_element)(const struct slc_xplat_span *span, uint64_t begin, uint64_t end)
{
    XPLAT(elements)(span, false, begin, end);
}

static void XPLAT(mttkrp_row)(const struct slc_xplat_span *span, uint64_t begin, uint64_t end)
{
    XPLAT(rows)(span, false, begin, end);
}

#undef XPLAT
#undef XPLAT_EXPAND
#undef XPLAT_PASTE
#undef VECTORS_MOST
#undef VECTOR_LOG2
