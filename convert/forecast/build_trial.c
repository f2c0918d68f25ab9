/* Encodes a typical tile of a build.
 *
 * A sample is sparser than the store: neighbouring nonzeros are farther apart. If fibers are not
 * kept together, the indices of a nonzero together need one bit less whenever the number of
 * nonzeros doubles, so the sample is encoded unchanged and bits are subtracted from the result. If
 * fibers are kept together, this would subtract too few bits, because gaps within a piece of a
 * fiber (sort/fibers.h) are short. In this case, a tile is synthesized: the distances between its
 * pieces are the distances between the pieces of the sample, times the sampled fraction of all
 * pieces. Each piece is filled to the expected number of nonzeros, at positions that occur in the
 * sample.
 *
 * A tile ends early at the extent limit (tile_cut.h); in a very sparse tensor, a tile may have a
 * single nonzero. Such tiles are counted as occupied cells of a grid. The store may have more
 * occupied cells than the sample shows. */
#include "convert/forecast/build_forecast.h"

#include "base/error/clock.h"
#include "base/key.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "convert/build/sort/fibers.h"
#include "convert/build/tile_cut.h"
#include "storage/codec/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIALS = 4, /* number of times that a tile is encoded */
    LOWS = 1 << SLC_FIBER_BITS,
    /* Most values that are summed for one coordinate. */
    REPEATS_MAX = 64
};

/* A nonzero of the sample. */
struct entry {
    slc_u128 key;
    double value;
};

/* Nonzeros to be encoded. */
struct tile {
    uint32_t nnz;
    uint64_t *lo, *hi;
    double *values;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* Writes the distinct nonzeros of the sample to `entries`, by key. Returns their number. */
static uint32_t sort_sample(const struct slc_build_job *job,
                            const struct slc_key_layout *keys,
                            struct entry *entries)
{
    const struct slc_entries *sample = job->sample;
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < sample->count && i < SLC_TILE_NNZ; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned m = 0; m < sample->order; m++) {
            coords[m] = sample->coords[m][i] - (sample->coords[m][i] >= job->base ? job->base : 0);
        }
        if (job->build->keep_zeros || sample->values[i] != 0) {
            /* adding 0 turns -0 into +0 */
            entries[count++] =
                (struct entry){slc_key_encode(keys, coords), sample->values[i] + 0.0};
        }
    }
    qsort(entries, count, sizeof *entries, compare);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || entries[i].key != entries[kept - 1].key) {
            entries[kept++] = entries[i];
        }
    }
    return kept;
}

/* Replaces each value with the sum of several sampled values. The number of values is geometrically
 * distributed and `repeats` on average. */
static void sum_values(struct entry *entries, uint32_t count, double repeats)
{
    for (uint32_t i = 0; i < count && repeats > 1.02; i++) {
        const double drawn = log(1 - slc_random_f64(0, 1, i)) / log(1 - 1 / repeats);
        const uint32_t more = drawn < REPEATS_MAX ? (uint32_t)drawn : REPEATS_MAX;

        for (uint32_t k = 1; k <= more; k++) {
            entries[i].value += entries[(i + k) % count].value;
        }
    }
}

static slc_u128 run_mask(const struct slc_fiber_run *run)
{
    return ((slc_u128)1 << run->bits) - 1;
}

/* Returns the number of entries in the piece of a fiber that starts at entry `begin`. */
static uint32_t piece_length(const struct entry *entries,
                             uint32_t count,
                             uint32_t begin,
                             const struct slc_fiber_run *run)
{
    uint32_t end = begin + 1;

    while (end < count && entries[end].key >> run->bits == entries[begin].key >> run->bits) {
        end++;
    }
    return end - begin;
}

/* Returns the factor by which pieces of these lengths must grow to have `nnz` nonzeros in total. */
static double fill_factor(const uint32_t *lengths, uint32_t pieces, double nnz)
{
    double low = 0, high = nnz;

    for (unsigned step = 0; step < 50; step++) {
        const double middle = (low + high) / 2;
        double sum = 0;

        for (uint32_t p = 0; p < pieces; p++) {
            sum += fmin(fmax(lengths[p] * middle, 1), LOWS);
        }
        *(sum < nnz ? &low : &high) = middle;
    }
    return high;
}

/* Adds the nonzeros of a piece to the tile, at distinct positions that occur in the sample. */
static void fill_piece(const struct entry *entries,
                       uint32_t count,
                       const struct slc_fiber_run *run,
                       slc_u128 piece,
                       uint32_t needed,
                       struct tile *tile)
{
    uint64_t taken[LOWS / 64] = {0};
    uint32_t placed = 0;

    for (uint64_t i = 0; placed < needed && i < UINT64_C(4) * needed + 8; i++) {
        const struct entry *from =
            &entries[slc_random_below(0, 2, (uint64_t)tile->nnz * 8 + i, count)];
        const uint32_t low = (uint32_t)(from->key & run_mask(run)) % LOWS;

        placed += (taken[low / 64] >> low % 64 & 1) == 0;
        taken[low / 64] |= UINT64_C(1) << low % 64;
    }
    for (uint32_t low = 0; low < LOWS && tile->nnz < SLC_TILE_NNZ; low++) {
        const slc_u128 key = piece << run->bits | low;

        if ((taken[low / 64] >> low % 64 & 1) != 0) {
            tile->lo[tile->nnz] = (uint64_t)key;
            tile->hi[tile->nnz] = (uint64_t)(key >> 64);
            tile->values[tile->nnz] = entries[tile->nnz % count].value;
            tile->nnz++;
        }
    }
}

/* Synthesizes a tile of fibers that are kept together, starting with the lowest piece of the
 * sample. */
static enum slc_status synthesize_tile(const struct entry *entries,
                                       uint32_t count,
                                       const struct slc_build_sample *found,
                                       const struct slc_fiber_run *run,
                                       struct tile *tile,
                                       struct slc_error *err)
{
    uint32_t *lengths = slc_malloc((count + (size_t)1) * sizeof *lengths);
    uint32_t pieces = 0, at = 0;
    slc_u128 place = 0;

    SLC_TRY(slc_check_memory(lengths != NULL, err, "for a trial of encoding"));
    for (uint32_t i = 0; i < count; i += lengths[pieces++]) {
        lengths[pieces] = piece_length(entries, count, i, run);
    }
    double closer = fmin(pieces / found->pieces, 1);
    double fill = fill_factor(lengths, pieces, pieces * found->nnz / found->pieces);
    for (uint32_t p = 0; p < pieces && tile->nnz < SLC_TILE_NNZ; p++) {
        if (p > 0) {
            const double gap = (double)((entries[at].key >> run->bits) -
                                        (entries[at - lengths[p - 1]].key >> run->bits));

            place += (slc_u128)fmax(gap * closer, 1);
        }
        fill_piece(entries, count, run, place, (uint32_t)fmax(lengths[p] * fill + 0.5, 1), tile);
        at += lengths[p];
    }
    slc_free(lengths);
    return SLC_OK;
}

/* Copies the sample unchanged to the tile. */
static void copy_sample(const struct entry *entries, uint32_t count, struct tile *tile)
{
    for (uint32_t i = 0; i < count; i++) {
        tile->lo[i] = (uint64_t)entries[i].key;
        tile->hi[i] = (uint64_t)(entries[i].key >> 64);
        tile->values[i] = entries[i].value;
    }
    tile->nnz = count;
}

/* Bytes of the encoded tiles. */
struct encoded {
    uint64_t index_bytes, data_bytes;
    uint32_t tiles;
};

/* Encodes the nonzeros as one tile, or as several tiles if the extent limit cuts them. */
static enum slc_status encode_cut(struct slc_encoder *encoder,
                                  const struct slc_key_layout *keys,
                                  const uint64_t *dims,
                                  const struct tile *tile,
                                  struct encoded *encoded,
                                  struct slc_error *err)
{
    struct slc_tile_cutter cutter;
    uint32_t fit;

    *encoded = (struct encoded){.tiles = 0};
    slc_tile_cutter_init(&cutter, keys, dims);
    for (uint32_t i = 0; i < tile->nnz; i += fit) {
        struct slc_tile_source source = {
            .key_lo = tile->lo + i, .key_hi = tile->hi + i, .values = tile->values + i};
        struct slc_tile_blob blob;

        fit = slc_tile_cutter_fit(&cutter, source.key_lo, source.key_hi, 0, tile->nnz - i, false);
        source.nnz = fit;
        SLC_TRY(slc_tile_encode(encoder, &source, &blob, err));
        encoded->index_bytes += blob.index_bytes;
        encoded->data_bytes += blob.data_bytes;
        encoded->tiles++;
    }
    return SLC_OK;
}

/* Returns the estimated number of cells that `nnz` nonzeros occupy if `seen` of them occupy `cells`
 * cells. Model: n nonzeros in `all` equally likely cells are expected to occupy all * (1 - exp(-n /
 * all)) cells. */
static double occupied_cells(double cells, double seen, double nnz)
{
    double low = log(cells), high = low + log(1e12);

    if (cells <= 1 || cells >= seen) {
        return cells <= 1 ? 1 : nnz;
    }
    for (unsigned step = 0; step < 60; step++) {
        const double middle = (low + high) / 2, all = exp(middle);

        *(-all * expm1(-seen / all) < cells ? &low : &high) = middle;
    }
    return -exp(high) * expm1(-nnz / exp(high));
}

/* Encodes the tile several times and uses the shortest time, which is the least disturbed. */
static enum slc_status encode_tile(const struct slc_build_job *job,
                                   const struct slc_key_layout *keys,
                                   const struct tile *tile,
                                   double nnz,
                                   struct slc_build_trial *trial,
                                   struct slc_error *err)
{
    struct slc_encoder *encoder = NULL;
    struct encoded encoded;
    enum slc_status status = slc_encoder_create(keys, job->build->codec, &encoder, err);

    for (unsigned k = 0; k < TRIALS && status == SLC_OK; k++) {
        const uint64_t start_ns = slc_clock_ns();

        status = encode_cut(encoder, keys, job->dims, tile, &encoded, err);
        double nanoseconds = (double)(slc_clock_ns() - start_ns) / tile->nnz;
        trial->nanoseconds =
            k == 0 || nanoseconds < trial->nanoseconds ? nanoseconds : trial->nanoseconds;
    }
    if (status == SLC_OK) {
        trial->index_bits = 8.0 * (double)encoded.index_bytes / tile->nnz;
        trial->value_bits = 8.0 * (double)(encoded.data_bytes - encoded.index_bytes) / tile->nnz;
        trial->tiles = occupied_cells(encoded.tiles, tile->nnz, nnz);
        trial->closer = nnz / trial->tiles / (tile->nnz / (double)encoded.tiles);
    }
    slc_encoder_destroy(encoder);
    return status;
}

/* Encodes the sample in plain order or, if `made_up`, a synthesized tile under found->run. */
static enum slc_status try_entries(const struct slc_build_job *job,
                                   const struct slc_build_sample *found,
                                   bool made_up,
                                   struct entry *entries,
                                   struct slc_build_trial *trial,
                                   struct slc_error *err)
{
    const struct slc_fiber_run plain = {0, 0};
    uint64_t *memory = slc_malloc(3 * (size_t)SLC_TILE_NNZ * sizeof *memory);
    struct tile tile = {.lo = memory};
    struct slc_key_layout keys;
    enum slc_status status = slc_key_layout_init_run(&keys, job->sample->order, job->dims,
                                                     made_up ? found->run : plain, err);

    *trial = (struct slc_build_trial){.nnz = 0};
    if (status == SLC_OK && memory == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a trial of encoding");
    }
    if (status == SLC_OK) {
        tile.hi = memory + SLC_TILE_NNZ;
        tile.values = (double *)(void *)(memory + 2 * (size_t)SLC_TILE_NNZ);
        trial->key_bits = keys.bits;
        trial->nnz = sort_sample(job, &keys, entries);
    }
    if (status == SLC_OK && trial->nnz > 0) {
        sum_values(entries, trial->nnz,
                   job->build->duplicates == SLC_DUPLICATES_SUM ? (double)job->entries / found->nnz
                                                                : 1);
        if (made_up) {
            status = synthesize_tile(entries, trial->nnz, found, &keys.run, &tile, err);
        } else {
            copy_sample(entries, trial->nnz, &tile);
        }
    }
    if (status == SLC_OK && trial->nnz > 0) {
        status = encode_tile(job, &keys, &tile, found->nnz, trial, err);
    }
    if (status == SLC_OK && !made_up && trial->nnz > 0) {
        trial->index_bits = fmax(trial->index_bits - log2(trial->closer), 1);
    }
    slc_free(memory);
    return status;
}

enum slc_status slc_build_trial(const struct slc_build_job *job,
                                const struct slc_build_sample *found,
                                struct slc_build_trial *trial,
                                struct slc_error *err)
{
    const size_t most = (size_t)slc_min_u64(job->sample->count, SLC_TILE_NNZ);
    struct entry *entries = slc_malloc((most + 1) * sizeof *entries);
    struct slc_build_trial together;

    *trial = (struct slc_build_trial){.nnz = 0};
    SLC_TRY(slc_check_memory(entries != NULL, err, "for a trial of encoding"));
    enum slc_status status = try_entries(job, found, false, entries, trial, err);
    /* The number of pieces is known only for runs of SLC_FIBER_BITS bits. The result of the
     * synthesized tile is used only if it is smaller than the result in plain order. */
    if (status == SLC_OK && found->run.bits == SLC_FIBER_BITS && found->pieces > 0) {
        status = try_entries(job, found, true, entries, &together, err);
        if (status == SLC_OK && together.nnz > 0 && together.index_bits < trial->index_bits) {
            *trial = together;
        }
    }
    slc_free(entries);
    return status;
}
