/* Computes random tensors. Uniform: the linear index of entry j is the image of j under a
 * permutation, so entries are distinct although earlier entries are not stored. If the product of
 * mode sizes exceeds 2^128, there is no linear index. The index in each mode is then drawn
 * independently, and the probability that any two of nnz entries coincide is below nnz^2 / 2^129.
 * Best: the linear index of entry j within the box is j. Worst: in every mode, the index of entry j
 * is the image of j under a permutation. */
#include "convert/generate/random_tensor.h"

#include "base/hash.h"
#include "base/random.h"
#include "convert/generate/full_box.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum {
    STREAM_NOISE = 32,
    STREAM_HASH = 33,
    STREAM_LINEAR = 64,
    STREAM_IDS = 128,
    STREAM_TRIALS = 256
};

/* Computes the product of the mode sizes; 0 means 2^128. Returns false if it exceeds 2^128. */
static bool product_of(unsigned order, const uint64_t *dims, slc_u128 *product)
{
    slc_u128 total = 1;

    for (unsigned mode = 0; mode < order; mode++) {
        if (total == 0) {
            if (dims[mode] != 1) {
                return false;
            }
        } else if (total > ~(slc_u128)0 / dims[mode]) {
            /* A product that wraps is allowed only if it is 2^128, which wraps to 0. */
            if (total * dims[mode] != 0 || ~(slc_u128)0 / dims[mode] != total - 1) {
                return false;
            }
            total = 0;
        } else {
            total *= dims[mode];
        }
    }
    *product = total;
    return true;
}

/* Returns the root mean square of the values of a model with uniform factors at uniform
 * coordinates. For order N and rank R: the product of N uniform numbers has the mean square 3^-N,
 * and the product of two such products has the mean 4^-N, so E v^2 = R 3^-N + R (R - 1) 4^-N. */
static double model_rms(unsigned order, uint32_t rank)
{
    double columns = rank;

    return sqrt(columns * pow(3, -(double)order) +
                columns * (columns - 1) * pow(4, -(double)order));
}

static bool is_zipf(enum slc_distribution distribution)
{
    return distribution == SLC_DIST_ZIPF || distribution == SLC_DIST_ZIPF_SHUFFLED;
}

static enum slc_status check_options(const struct slc_generate_options *options,
                                     struct slc_error *err)
{
    if (options->order == 0 || options->order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "a tensor of %u modes: must be 1 to %d", options->order,
                        SLC_MAX_ORDER);
    }
    for (unsigned mode = 0; mode < options->order; mode++) {
        if (options->dims[mode] == 0 || options->dims[mode] > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_USAGE, "mode %u of size %" PRIu64 ": must be 1 to 2^62",
                            mode + 1, options->dims[mode]);
        }
    }
    if (options->rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "rank %u: must be at most %d", options->rank,
                        SLC_MAX_RANK);
    }
    if (!(options->noise >= 0) || !isfinite(options->noise)) {
        return slc_fail(err, SLC_ERR_USAGE, "noise %g: must be 0 or more", options->noise);
    }
    if (is_zipf(options->distribution) &&
        (!(options->zipf_exponent >= 0) || options->zipf_exponent > 100)) {
        return slc_fail(err, SLC_ERR_USAGE, "Zipf exponent %g: must be 0 to 100",
                        options->zipf_exponent);
    }
    return SLC_OK;
}

static enum slc_status fail_places(uint64_t nnz, uint64_t places, struct slc_error *err)
{
    return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_NNZ, SLC_FIELD_DIMS,
                           "%" PRIu64 " distinct nonzeros do not fit a tensor with %" PRIu64
                           " cells: use fewer nonzeros or larger modes",
                           nnz, places);
}

static enum slc_status
init_uniform(struct slc_random_tensor *tensor, uint64_t nnz, struct slc_error *err)
{
    slc_u128 product;

    tensor->independent = !product_of(tensor->order, tensor->dims, &product);
    if (tensor->independent) {
        return SLC_OK;
    }
    if (product != 0 && nnz > product) {
        return fail_places(nnz, (uint64_t)product, err);
    }
    slc_feistel_init(&tensor->linear, product, tensor->seed, STREAM_LINEAR);
    return SLC_OK;
}

static enum slc_status
init_best(struct slc_random_tensor *tensor, uint64_t nnz, unsigned ttm_mode, struct slc_error *err)
{
    slc_u128 product;

    if (ttm_mode > tensor->order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "best for a TTM in mode %u: the tensor has only %u modes", ttm_mode,
                        tensor->order);
    }
    if (product_of(tensor->order, tensor->dims, &product) && product != 0 && nnz > product) {
        return fail_places(nnz, (uint64_t)product, err);
    }
    if (nnz > 0) {
        slc_full_box_sides(tensor->order, tensor->dims, nnz, ttm_mode, tensor->sides);
    }
    return SLC_OK;
}

static enum slc_status
check_worst(const struct slc_random_tensor *tensor, uint64_t nnz, struct slc_error *err)
{
    for (unsigned mode = 0; mode < tensor->order; mode++) {
        if (tensor->dims[mode] < nnz) {
            return slc_fail_fields(
                err, SLC_ERR_USAGE, SLC_FIELD_NNZ, SLC_FIELD_DIMS,
                "mode %u of size %" PRIu64 " is too small for %" PRIu64
                " nonzeros that share no index: use fewer nonzeros or larger modes",
                mode + 1, tensor->dims[mode], nnz);
        }
    }
    return SLC_OK;
}

static double
factor(const struct slc_random_tensor *tensor, unsigned mode, uint64_t row, uint32_t column)
{
    return slc_random_f64(tensor->seed, mode, row * tensor->rank + column);
}

/* Fills the factor tables that fit in `table_bytes`, starting with the smallest mode. */
static enum slc_status
fill_tables(struct slc_random_tensor *tensor, uint64_t table_bytes, struct slc_error *err)
{
    bool done[SLC_MAX_ORDER] = {false};

    for (unsigned round = 0; round < tensor->order; round++) {
        unsigned best = SLC_MAX_ORDER;

        for (unsigned mode = 0; mode < tensor->order; mode++) {
            if (!done[mode] && (best == SLC_MAX_ORDER || tensor->dims[mode] < tensor->dims[best])) {
                best = mode;
            }
        }
        assert(best < tensor->order);
        done[best] = true;
        if (tensor->dims[best] > table_bytes / (8 * (uint64_t)tensor->rank)) {
            return SLC_OK;
        }
        uint64_t bytes = tensor->dims[best] * tensor->rank * 8;
        if (slc_buffer_footprint(bytes, SLC_PAGES_SMALL) > table_bytes) {
            return SLC_OK;
        }
        if (slc_buffer_create(&tensor->tables[best], bytes, SLC_PAGES_SMALL, err) != SLC_OK) {
            return SLC_ERR_MEMORY;
        }
        table_bytes -= tensor->tables[best].bytes;
        double *table = tensor->tables[best].data;
        for (uint64_t i = 0; i < tensor->dims[best] * tensor->rank; i++) {
            table[i] = slc_random_f64(tensor->seed, best, i);
        }
    }
    return SLC_OK;
}

enum slc_status slc_random_tensor_init(struct slc_random_tensor *tensor,
                                       const struct slc_generate_options *options,
                                       uint64_t table_bytes,
                                       struct slc_error *err)
{
    enum slc_status status = check_options(options, err);

    *tensor = (struct slc_random_tensor){.order = options->order,
                                         .seed = options->seed,
                                         .distribution = options->distribution,
                                         .rank = options->rank};
    SLC_TRY(status);
    for (unsigned mode = 0; mode < tensor->order; mode++) {
        tensor->dims[mode] = options->dims[mode];
        tensor->sides[mode] = options->dims[mode];
        slc_zipf_init(&tensor->zipf[mode], tensor->dims[mode], options->zipf_exponent);
        slc_feistel_init(&tensor->shuffles[mode], tensor->dims[mode], tensor->seed,
                         STREAM_IDS + mode);
    }
    tensor->hash_key = slc_random_u64(tensor->seed, STREAM_HASH, 0);
    if (tensor->distribution == SLC_DIST_UNIFORM) {
        status = init_uniform(tensor, options->nnz, err);
    } else if (tensor->distribution == SLC_DIST_BEST) {
        status = init_best(tensor, options->nnz, options->best_ttm, err);
    } else if (tensor->distribution == SLC_DIST_WORST) {
        status = check_worst(tensor, options->nnz, err);
    }
    if (status == SLC_OK && tensor->rank > 0) {
        tensor->noise_scale = options->noise * model_rms(tensor->order, tensor->rank);
        status = fill_tables(tensor, table_bytes, err);
    }
    if (status != SLC_OK) {
        slc_random_tensor_destroy(tensor);
    }
    return status;
}

void slc_random_tensor_destroy(struct slc_random_tensor *tensor)
{
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        slc_buffer_destroy(&tensor->tables[mode]);
    }
}

uint64_t slc_random_tensor_memory_bytes(const struct slc_random_tensor *tensor)
{
    uint64_t bytes = 0;

    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        bytes += tensor->tables[mode].bytes;
    }
    return bytes;
}

/* Splits a linear index into coordinates; the index of the last mode varies fastest. */
static void split_index(const struct slc_random_tensor *tensor,
                        slc_u128 index,
                        uint32_t at,
                        uint64_t *const *coords)
{
    unsigned mode = tensor->order;

    while (mode-- > 0) {
        if (index >> 64 == 0) {
            /* A 64-bit division is several times faster than a 128-bit division. */
            uint64_t low = (uint64_t)index;

            coords[mode][at] = low % tensor->sides[mode];
            index = low / tensor->sides[mode];
        } else {
            coords[mode][at] = (uint64_t)(index % tensor->sides[mode]);
            index /= tensor->sides[mode];
        }
    }
}

static uint64_t draw_id(const struct slc_random_tensor *tensor, unsigned mode, uint64_t index)
{
    uint64_t stream = STREAM_TRIALS + mode;

    if (tensor->distribution == SLC_DIST_UNIFORM) {
        return slc_random_below(tensor->seed, stream, index, tensor->dims[mode]);
    }
    if (tensor->distribution == SLC_DIST_WORST) {
        return (uint64_t)slc_feistel_apply(&tensor->shuffles[mode], index);
    }
    uint64_t id = slc_zipf_draw(&tensor->zipf[mode], tensor->seed, stream, SLC_MAX_ORDER, index);
    if (tensor->distribution == SLC_DIST_ZIPF_SHUFFLED) {
        id = (uint64_t)slc_feistel_apply(&tensor->shuffles[mode], id);
    }
    return id;
}

void slc_random_tensor_coords(const struct slc_random_tensor *tensor,
                              uint64_t begin,
                              uint64_t stride,
                              uint32_t count,
                              uint64_t *const *coords)
{
    bool best = tensor->distribution == SLC_DIST_BEST;
    bool linear = best || (tensor->distribution == SLC_DIST_UNIFORM && !tensor->independent);

    if (linear) {
        for (uint32_t i = 0; i < count; i++) {
            uint64_t entry = begin + i * stride;

            split_index(tensor, best ? entry : slc_feistel_apply(&tensor->linear, entry), i,
                        coords);
        }
        return;
    }
    for (unsigned mode = 0; mode < tensor->order; mode++) {
        for (uint32_t i = 0; i < count; i++) {
            coords[mode][i] = draw_id(tensor, mode, begin + i * stride);
        }
    }
}

static double
model_value(const struct slc_random_tensor *tensor, const uint64_t *const *coords, uint32_t i)
{
    const double *rows[SLC_MAX_ORDER];
    double value = 0;

    for (unsigned mode = 0; mode < tensor->order; mode++) {
        const double *table = tensor->tables[mode].data;

        rows[mode] = table == NULL ? NULL : table + coords[mode][i] * tensor->rank;
    }
    for (uint32_t r = 0; r < tensor->rank; r++) {
        double product = 1;

        for (unsigned mode = 0; mode < tensor->order; mode++) {
            product *=
                rows[mode] != NULL ? rows[mode][r] : factor(tensor, mode, coords[mode][i], r);
        }
        value += product;
    }
    return value;
}

void slc_random_tensor_values(const struct slc_random_tensor *tensor,
                              const uint64_t *const *coords,
                              uint32_t count,
                              double *values)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = tensor->hash_key;

        for (unsigned mode = 0; mode < tensor->order; mode++) {
            hash = slc_mix64(hash + coords[mode][i] + 1);
        }
        if (tensor->rank == 0) {
            /* Scale the upper 32 bits to 0 .. 8 without a division. */
            values[i] = (double)(1 + ((hash >> 32) * 9 >> 32));
            continue;
        }
        values[i] = model_value(tensor, coords, i);
        if (tensor->noise_scale != 0) {
            values[i] += tensor->noise_scale * slc_random_normal(tensor->seed, STREAM_NOISE, hash);
        }
    }
}
