/* See convert/splitters.h. */
#include "convert/splitters.h"

#include "base/memory.h"
#include "convert/heap_sort.h"

#include <assert.h>
#include <string.h>

enum {
    CELL_BITS = 12 /* SLC_SPLITTER_CELLS is 2^CELL_BITS */
};

/* ---- choosing */

static bool row_less(const void *context, const void *a, const void *b)
{
    const struct slc_splitters *splitters = context;

    return slc_coords_compare(splitters->order, splitters->run, a, b) < 0;
}

/*
 * Provisional widths: two spare bits per mode where the key then stays within 64 bits, else one,
 * else none, so that input a little beyond the sample still takes the fast path.
 */
static bool provisional_layout(struct slc_splitters *splitters, const uint64_t *largest)
{
    unsigned order = splitters->order;
    unsigned limit = 64;
    int spare;

    for (;;) {
        for (spare = 2; spare >= 0; spare--) {
            uint64_t dims[SLC_MAX_ORDER];
            unsigned total = 0;
            unsigned mode;

            for (mode = 0; mode < order; mode++) {
                unsigned bits = slc_bits_for_length(largest[mode] + 1) + (unsigned)spare;

                bits = bits > 62 ? 62 : bits;
                if (largest[mode] >> bits != 0) {
                    return false;
                }
                dims[mode] = UINT64_C(1) << bits;
                total += bits;
            }
            if (total <= limit) {
                return slc_key_layout_init_run(&splitters->layout, order, dims, splitters->run,
                                               NULL) == SLC_OK;
            }
        }
        if (limit == SLC_MAX_KEY_BITS) {
            return false;
        }
        limit = SLC_MAX_KEY_BITS;
    }
}

/* The cell of a key; beyond the last splitter's, the one after all others. */
static inline uint32_t
cell_of(const struct slc_splitters *splitters, uint64_t lo, uint64_t hi, bool wide)
{
    if (wide) {
        slc_u128 cell = slc_key_join(lo, hi) >> splitters->cell_shift;

        return cell < SLC_SPLITTER_CELLS ? (uint32_t)cell : SLC_SPLITTER_CELLS;
    }
    lo >>= splitters->cell_shift;
    return lo < SLC_SPLITTER_CELLS ? (uint32_t)lo : SLC_SPLITTER_CELLS;
}

/* Counts splitters per cell, once their keys are there. */
static void fill_cells(struct slc_splitters *splitters)
{
    uint32_t last = splitters->count - 1;
    uint64_t lo = splitters->key_lo[last];
    uint64_t hi = splitters->key_hi[last];
    unsigned bits =
        hi != 0 ? 128U - (unsigned)__builtin_clzll(hi) : 64U - (unsigned)__builtin_clzll(lo | 1);
    uint32_t at = 0;
    uint32_t cell;

    splitters->cell_shift = bits > CELL_BITS ? bits - CELL_BITS : 0;
    splitters->cell_most = 0;
    for (cell = 0; cell < SLC_SPLITTER_CELLS; cell++) {
        splitters->cell_start[cell] = (uint16_t)at;
        while (at < splitters->count &&
               cell_of(splitters, splitters->key_lo[at], splitters->key_hi[at], true) == cell) {
            at++;
        }
        if (at - splitters->cell_start[cell] > splitters->cell_most) {
            splitters->cell_most = at - splitters->cell_start[cell];
        }
    }
    splitters->cell_start[SLC_SPLITTER_CELLS] = (uint16_t)at;
}

static enum slc_status form_keys(struct slc_splitters *splitters, struct slc_error *err)
{
    /* A search looks at as many keys from its cell's first as any cell has. */
    uint32_t room = 2 * splitters->count + 1;
    size_t bytes = room * sizeof(uint64_t);
    enum slc_status status;
    uint32_t i;

    status = slc_key_tables_init(&splitters->tables, &splitters->layout, err);
    if (status != SLC_OK) {
        return status;
    }
    splitters->key_lo = slc_malloc(bytes);
    splitters->key_hi = slc_malloc(bytes);
    if (splitters->key_lo == NULL || splitters->key_hi == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u key splitters", splitters->count);
    }
    memset(splitters->key_lo, 0xff, bytes);
    memset(splitters->key_hi, 0xff, bytes);
    for (i = 0; i < splitters->count; i++) {
        slc_u128 key =
            slc_key_encode(&splitters->layout, splitters->coords + (size_t)i * splitters->order);

        splitters->key_lo[i] = (uint64_t)key;
        splitters->key_hi[i] = (uint64_t)(key >> 64);
    }
    if (splitters->count > 0) {
        fill_cells(splitters);
    }
    splitters->keyed = true;
    return SLC_OK;
}

enum slc_status slc_splitters_choose(struct slc_splitters *splitters,
                                     unsigned order,
                                     struct slc_fiber_run run,
                                     uint64_t *rows,
                                     uint32_t count,
                                     uint32_t buckets,
                                     struct slc_error *err)
{
    uint64_t largest[SLC_MAX_ORDER] = {0};
    size_t row_bytes = order * sizeof *rows;
    enum slc_status status = SLC_OK;
    uint32_t i;
    unsigned mode;

    assert(buckets >= 1 && buckets <= SLC_BUCKETS_MAX);
    *splitters = (struct slc_splitters){.order = order, .run = run};
    splitters->coords = slc_malloc(buckets * row_bytes);
    if (splitters->coords == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u key splitters", buckets);
    }
    slc_heap_sort(rows, count, row_bytes, row_less, splitters);
    for (i = 0; i < count; i++) {
        for (mode = 0; mode < order; mode++) {
            uint64_t coord = rows[(size_t)i * order + mode];

            largest[mode] = coord > largest[mode] ? coord : largest[mode];
        }
    }
    for (i = 1; i < buckets && count > 0; i++) {
        const uint64_t *row = rows + (uint64_t)i * count / buckets * order;
        uint64_t *last = splitters->coords + (size_t)splitters->count * order;

        /* The smallest of the sample would only cut off what lies below it. */
        if (slc_coords_compare(order, splitters->run, row,
                               splitters->count > 0 ? last - order : rows) > 0) {
            memcpy(last, row, row_bytes);
            splitters->count++;
        }
    }
    if (provisional_layout(splitters, largest)) {
        status = form_keys(splitters, err);
    }
    if (status != SLC_OK) {
        slc_splitters_destroy(splitters);
    }
    return status;
}

void slc_splitters_destroy(struct slc_splitters *splitters)
{
    slc_key_tables_destroy(&splitters->tables);
    slc_free(splitters->coords);
    slc_free(splitters->key_lo);
    slc_free(splitters->key_hi);
    *splitters = (struct slc_splitters){0};
}

/* ---- finding */

static inline bool
at_most(const struct slc_splitters *splitters, uint32_t at, uint64_t lo, uint64_t hi, bool wide)
{
    if (!wide) {
        return splitters->key_lo[at] <= lo;
    }
    return ((slc_u128)splitters->key_hi[at] << 64 | splitters->key_lo[at]) <=
           ((slc_u128)hi << 64 | lo);
}

/*
 * How many splitters are at most each of `count` keys. A table of cells gives where to start; then
 * all keys take the same steps, one after the
 * other, so no branch depends on them and their loads overlap: a search for one key at a time waits
 * for every load and mispredicts every other step, which was a quarter of a conversion.
 */
static inline void upper_keys(const struct slc_splitters *splitters,
                              const uint64_t *lo,
                              const uint64_t *hi,
                              uint32_t count,
                              bool wide,
                              uint32_t *upper)
{
    uint32_t left = splitters->cell_most;
    uint32_t i;

    for (i = 0; i < count; i++) {
        upper[i] = splitters->cell_start[cell_of(splitters, lo[i], wide ? hi[i] : 0, wide)];
    }
    for (; left > 1; left -= left / 2) {
        uint32_t half = left / 2;

        for (i = 0; i < count; i++) {
            bool beyond = at_most(splitters, upper[i] + half - 1, lo[i], hi[i], wide);

            upper[i] += half & -(uint32_t)beyond;
        }
    }
    for (i = 0; i < count; i++) {
        uint32_t found = upper[i] + at_most(splitters, upper[i], lo[i], hi[i], wide);

        /* A key of all ones is at least what fills the room behind the splitters. */
        upper[i] = found < splitters->count ? found : splitters->count;
    }
}

uint32_t slc_keys_upper(
    const uint64_t *lo, const uint64_t *hi, uint32_t count, uint64_t key_lo, uint64_t key_hi)
{
    uint32_t base = 0;
    slc_u128 key = (slc_u128)key_hi << 64 | key_lo;

    while (count > 1) {
        uint32_t half = count / 2;
        slc_u128 middle = (slc_u128)hi[base + half - 1] << 64 | lo[base + half - 1];

        base += middle <= key ? half : 0;
        count -= half;
    }
    return base + (count == 1 && ((slc_u128)hi[base] << 64 | lo[base]) <= key);
}

/* The way that needs no widths: for coordinates far beyond the sample. */
static uint32_t upper_coords(const struct slc_splitters *splitters, const uint64_t *coords)
{
    uint32_t low = 0;
    uint32_t high = splitters->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const uint64_t *row = splitters->coords + (size_t)middle * splitters->order;

        if (slc_coords_compare(splitters->order, splitters->run, row, coords) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void find_slowly(const struct slc_splitters *splitters,
                        const uint64_t *const *coords,
                        uint32_t begin,
                        uint32_t count,
                        uint64_t index_base,
                        uint32_t *buckets)
{
    uint64_t row[SLC_MAX_ORDER];
    uint32_t i;
    unsigned mode;

    for (i = 0; i < count; i++) {
        for (mode = 0; mode < splitters->order; mode++) {
            row[mode] = coords[mode][begin + i] - index_base;
        }
        buckets[i] = upper_coords(splitters, row);
    }
}

void slc_splitters_find(const struct slc_splitters *splitters,
                        const uint64_t *const *coords,
                        uint32_t begin,
                        uint32_t count,
                        uint64_t index_base,
                        uint32_t *buckets)
{
    uint64_t lo[SLC_KEY_BATCH];
    uint64_t hi[SLC_KEY_BATCH];
    uint64_t column[SLC_KEY_BATCH];
    uint32_t i;
    unsigned mode;

    assert(count <= SLC_KEY_BATCH);
    if (splitters->count == 0) {
        memset(buckets, 0, count * sizeof *buckets);
        return;
    }
    if (!splitters->keyed) {
        find_slowly(splitters, coords, begin, count, index_base, buckets);
        return;
    }
    memset(lo, 0, sizeof lo);
    memset(hi, 0, sizeof hi);
    for (mode = 0; mode < splitters->order; mode++) {
        uint64_t any = 0;

        for (i = 0; i < count; i++) {
            column[i] = coords[mode][begin + i] - index_base;
            any |= column[i];
        }
        if (any >> splitters->layout.mode_bits[mode] != 0) {
            find_slowly(splitters, coords, begin, count, index_base, buckets);
            return;
        }
        slc_key_tables_add(&splitters->tables, mode, column, count, lo, hi);
    }
    if (splitters->tables.wide) {
        upper_keys(splitters, lo, hi, count, true, buckets);
    } else {
        upper_keys(splitters, lo, hi, count, false, buckets);
    }
}
