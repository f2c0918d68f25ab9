/* Sums of the Poisson log-likelihood and multiplicative updates. Part of row_kernel_set.c, after
 * the functions for groups and blocks of nonzeros. */
#ifndef SLC_CPU_ROW_POISSON_TMPL_H
#define SLC_CPU_ROW_POISSON_TMPL_H

/* Computes the scales of a group and stores its models and curvature. */
INLINE void group_scales(
    const struct slc_row_poisson_span *span, uint32_t i, uint32_t last, vector model, double *scale)
{
    const vector floor = broadcast(span->floor);
    const vector value = load_group(span->values + i, last);
    const vector least = at_least(model, floor);

    store(scale, value / least);
    if (span->curvature != NULL) {
        store_group(span->curvature + i, last, value / at_least(model * model, floor));
    }
    if (span->models != NULL) {
        store_group(span->models + i, last, model);
    }
}

/* All scales of a block are computed before they are used: groups then overlap in the processor,
 * which otherwise waits for the division of each. */
INLINE void poisson_blocks(const struct slc_row_poisson_span *span, uint32_t width)
{
    double scale[BLOCK_NNZ] __attribute__((aligned(SET_VECTOR_BYTES)));

    for (uint32_t first = 0; first < span->nnz; first += BLOCK_NNZ) {
        const double *block = span->products + (uint64_t)first * width;
        const uint32_t nnz = span->nnz - first < BLOCK_NNZ ? span->nnz - first : BLOCK_NNZ;
        uint32_t i = 0;

        for (; i + LANES <= nnz; i += LANES) {
            group_scales(span, first + i, LANES - 1,
                         group_models(block + (uint64_t)i * width, width, LANES - 1, span->x),
                         scale + i);
        }
        if (i < nnz) {
            group_scales(span, first + i, nnz - i - 1,
                         group_models(block + (uint64_t)i * width, width, nnz - i - 1, span->x),
                         scale + i);
        }
        add_block(nnz, width, block, scale, span->phi);
    }
}

static void poisson(const struct slc_row_poisson_span *span)
{
    switch (SLC_FEW_FORMS ? 0 : span->width / LANES) {
    case 1:
        poisson_blocks(span, LANES);
        break;
    case 2:
        poisson_blocks(span, 2 * LANES);
        break;
    case 4:
        poisson_blocks(span, 4 * LANES);
        break;
    default:
        poisson_blocks(span, span->width);
    }
}

/* Multiplicative updates. */

static double violation(uint32_t width, const double *x, const double *totals, const double *phi)
{
    vector most = {0};

    for (uint32_t j = 0; j < width; j += LANES) {
        const vector gradient = load(totals + j) - load(phi + j), number = load(x + j);
        const bits less = number < gradient;
        const vector least = (vector)(((bits)number & less) | ((bits)gradient & ~less));

        most = at_least((vector)((bits)least & INT64_MAX), most); /* the magnitude */
    }
    most = at_least(most, __builtin_shufflevector(most, most, SWAP_1));
#if SET_VECTOR_BYTES >= 32
    most = at_least(most, __builtin_shufflevector(most, most, SWAP_2));
#endif
#if SET_VECTOR_BYTES >= 64
    most = at_least(most, __builtin_shufflevector(most, most, SWAP_4));
#endif
    return most[0];
}

static void rescale(uint32_t width, const double *totals, const double *phi, double *x)
{
    for (uint32_t j = 0; j < width; j += LANES) {
        const vector total = load(totals + j), number = load(x + j);
        const bits used = total > (vector){0};
        const vector scaled = number * (load(phi + j) / total);

        store(x + j, (vector)(((bits)scaled & used) | ((bits)number & ~used)));
    }
}

#endif
