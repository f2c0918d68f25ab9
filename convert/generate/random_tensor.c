/* Computes random tensors. Except for Zipf and worst, the entries form units: single cells
 * (uniform), one full box (best), or fibers or slices of a mode. The *place* of a unit is its index
 * in each mode that is the same for all its entries; the other modes select a *cell* of the unit.
 * The linear index of the place of unit u is the image of u under a permutation, so places are
 * distinct although earlier places are not stored. If there are more than 2^128 places, they have
 * no linear index. The index in each mode is then drawn independently, and the probability that any
 * two of n units coincide is below n^2 / 2^129. The linear index of the cell of the p-th entry of a
 * unit is p. In fibers that are not dense, it is instead an element of a permutation, p after an
 * element that is drawn for the fiber. Worst: in every mode, the index of entry j is the image of j
 * under a permutation. */
#include "convert/generate/random_tensor.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/random.h"
#include "convert/generate/full_box.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum {
    STREAM_NOISE = 32,
    STREAM_HASH = 33,
    STREAM_LINEAR = 64,
    STREAM_CELLS = 65,
    STREAM_FIBERS = 66,
    STREAM_IDS = 128,
    STREAM_TRIALS = 256
};

/* Computes the product of the sizes of the modes in the set `modes`; 0 means 2^128. Returns false
 * if it exceeds 2^128. */
static bool product_of(unsigned order, const uint64_t *dims, uint32_t modes, slc_u128 *product)
{
    slc_u128 total = 1;

    for (unsigned mode = 0; mode < order; mode++) {
        if ((modes >> mode & 1) == 0) {
            continue;
        }
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

/* Returns the number of cells of the modes in the set `modes`, or UINT64_MAX if there are more. */
static uint64_t count_cells(const struct slc_random_tensor *tensor, uint32_t modes)
{
    slc_u128 product;

    return product_of(tensor->order, tensor->sides, modes, &product) && product != 0 &&
                   product < UINT64_MAX
               ? (uint64_t)product
               : UINT64_MAX;
}

/* Checks the mode of a distribution that has one. */
static enum slc_status check_mode(const struct slc_generate_options *options, struct slc_error *err)
{
    static const char *const names[] = {[SLC_DIST_BEST] = "best for a TTM",
                                        [SLC_DIST_DENSE_FIBERS] = "dense fibers",
                                        [SLC_DIST_DENSE_SLICES] = "dense slices",
                                        [SLC_DIST_FIBERS] = "fibers"};
    const unsigned least = options->distribution == SLC_DIST_BEST ? 0 : 1;

    if (options->mode < least || options->mode > options->order) {
        return slc_fail(err, SLC_ERR_USAGE, "%s in mode %u: the tensor has modes 1 to %u",
                        names[options->distribution], options->mode, options->order);
    }
    return SLC_OK;
}

static enum slc_status check_fibers(const struct slc_random_tensor *tensor,
                                    const struct slc_generate_options *options,
                                    struct slc_error *err)
{
    const uint64_t places = count_cells(tensor, tensor->placed);
    const uint64_t cells = tensor->sides[options->mode - 1];
    const uint64_t least = slc_div_up_u64(options->nnz, cells);
    const uint64_t most = slc_min_u64(options->nnz, places);

    if (options->fiber_count < least || options->fiber_count > most) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%" PRIu64 " fibers of mode %u: %" PRIu64 " nonzeros form %" PRIu64
                        " to %" PRIu64 " nonempty fibers",
                        options->fiber_count, options->mode, options->nnz, least, most);
    }
    return SLC_OK;
}

/* Divides the entries into units. */
static enum slc_status init_units(struct slc_random_tensor *tensor,
                                  const struct slc_generate_options *options,
                                  struct slc_error *err)
{
    const uint32_t all = (UINT32_C(1) << tensor->order) - 1;
    const uint64_t cells = count_cells(tensor, all);
    slc_u128 places = 1;
    uint64_t units;

    if (options->distribution != SLC_DIST_UNIFORM) {
        SLC_TRY(check_mode(options, err));
    }
    if (options->nnz > cells) {
        return fail_places(options->nnz, cells, err);
    }
    switch (options->distribution) {
    case SLC_DIST_BEST:
        tensor->placed = 0;
        if (options->nnz > 0) {
            slc_full_box_sides(tensor->order, tensor->dims, options->nnz, options->mode,
                               tensor->sides);
        }
        break;
    case SLC_DIST_DENSE_SLICES:
        tensor->placed = UINT32_C(1) << (options->mode - 1);
        break;
    case SLC_DIST_DENSE_FIBERS:
    case SLC_DIST_FIBERS:
        tensor->placed = all & ~(UINT32_C(1) << (options->mode - 1));
        break;
    default:
        tensor->placed = all;
    }
    units = slc_div_up_u64(options->nnz, count_cells(tensor, all & ~tensor->placed));
    if (options->distribution == SLC_DIST_FIBERS) {
        SLC_TRY(check_fibers(tensor, options, err));
        units = options->fiber_count;
        slc_feistel_init(&tensor->cells, tensor->sides[options->mode - 1], tensor->seed,
                         STREAM_CELLS);
    }
    tensor->unit_nnz = units > 0 ? options->nnz / units : 0;
    tensor->longer_units = units > 0 ? options->nnz % units : 0;
    tensor->independent = !product_of(tensor->order, tensor->dims, tensor->placed, &places);
    slc_feistel_init(&tensor->linear, places, tensor->seed, STREAM_LINEAR);
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
    if (tensor->distribution == SLC_DIST_WORST) {
        status = check_worst(tensor, options->nnz, err);
    } else if (!is_zipf(tensor->distribution)) {
        status = init_units(tensor, options, err);
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

/* Splits a linear index into the coordinates in the modes of the set `modes`; the index of the last
 * mode varies fastest. */
static void split_index(const struct slc_random_tensor *tensor,
                        uint32_t modes,
                        slc_u128 index,
                        uint32_t at,
                        uint64_t *const *coords)
{
    unsigned mode = tensor->order;

    while (mode-- > 0) {
        if ((modes >> mode & 1) == 0) {
            continue;
        }
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

    if (tensor->distribution == SLC_DIST_WORST) {
        return (uint64_t)slc_feistel_apply(&tensor->shuffles[mode], index);
    }
    if (!is_zipf(tensor->distribution)) {
        return slc_random_below(tensor->seed, stream, index, tensor->dims[mode]);
    }
    uint64_t id = slc_zipf_draw(&tensor->zipf[mode], tensor->seed, stream, SLC_MAX_ORDER, index);
    if (tensor->distribution == SLC_DIST_ZIPF_SHUFFLED) {
        id = (uint64_t)slc_feistel_apply(&tensor->shuffles[mode], id);
    }
    return id;
}

/* Computes the coordinates of an entry, which is the p-th of its unit. */
static void place_entry(const struct slc_random_tensor *tensor,
                        uint64_t entry,
                        uint32_t at,
                        uint64_t *const *coords)
{
    /* The first longer_units units have unit_nnz + 1 entries, the others unit_nnz. */
    const uint64_t longer = tensor->longer_units * (tensor->unit_nnz + 1);
    const bool in_longer = entry < longer;
    const uint64_t length = tensor->unit_nnz + in_longer;
    const uint64_t from = in_longer ? 0 : longer;
    const uint64_t unit = (in_longer ? 0 : tensor->longer_units) + (entry - from) / length;
    uint64_t p = (entry - from) % length;

    if (tensor->distribution == SLC_DIST_FIBERS) {
        const uint64_t cells = (uint64_t)tensor->cells.length;

        p = (p + slc_random_below(tensor->seed, STREAM_FIBERS, unit, cells)) % cells;
        p = (uint64_t)slc_feistel_apply(&tensor->cells, p);
    }
    split_index(tensor, ~tensor->placed, p, at, coords);
    if (!tensor->independent) {
        split_index(tensor, tensor->placed, slc_feistel_apply(&tensor->linear, unit), at, coords);
        return;
    }
    for (unsigned mode = 0; mode < tensor->order; mode++) {
        if ((tensor->placed >> mode & 1) != 0) {
            coords[mode][at] = draw_id(tensor, mode, unit);
        }
    }
}

void slc_random_tensor_coords(const struct slc_random_tensor *tensor,
                              uint64_t begin,
                              uint64_t stride,
                              uint32_t count,
                              uint64_t *const *coords)
{
    if (!is_zipf(tensor->distribution) && tensor->distribution != SLC_DIST_WORST) {
        for (uint32_t i = 0; i < count; i++) {
            place_entry(tensor, begin + i * stride, i, coords);
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
