#include "convert/build/sort/key_tables.h"

#include "base/memory/memory.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TABLE = 256 };

#if defined(__x86_64__)

#define SPREADING __attribute__((target("bmi2")))

/* Returns true if pdep is fast. It needs about 250 cycles on the first two generations of AMD
 * Zen. */
static bool spread_is_fast(void)
{
    return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
           !__builtin_cpu_is("znver2");
}

SPREADING static inline uint64_t spread(uint64_t bits, uint64_t mask)
{
    return _pdep_u64(bits, mask);
}

#else

#define SPREADING

static bool spread_is_fast(void)
{
    return false;
}

static inline uint64_t spread(uint64_t bits, uint64_t mask)
{
    return slc_bits_spread(bits, mask);
}

#endif

SPREADING static void
spread_column(uint64_t mask, unsigned shift, const uint64_t *coords, uint32_t count, uint64_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] |= spread(coords[i] >> shift, mask);
    }
}

/* Forms the low words of keys of `order` modes. The function is inlined once per order, so that one
 * loop processes all columns. */
SPREADING static inline __attribute__((always_inline)) void
spread_modes(const struct slc_key_tables *tables,
             unsigned order,
             const uint64_t *const *coords,
             uint32_t begin,
             uint32_t count,
             uint64_t index_base,
             uint64_t *lo)
{
    const uint64_t *columns[SLC_MAX_ORDER];
    uint64_t masks[SLC_MAX_ORDER];

    for (unsigned mode = 0; mode < order; mode++) {
        columns[mode] = coords[mode] + begin;
        masks[mode] = tables->mask_lo[mode];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = 0;

        for (unsigned mode = 0; mode < order; mode++) {
            bits |= spread(columns[mode][i] - index_base, masks[mode]);
        }
        lo[i] = bits;
    }
}

SPREADING static void spread_low(const struct slc_key_tables *tables,
                                 const uint64_t *const *coords,
                                 uint32_t begin,
                                 uint32_t count,
                                 uint64_t index_base,
                                 uint64_t *lo)
{
    switch (tables->order) {
    case 3:
        spread_modes(tables, 3, coords, begin, count, index_base, lo);
        return;
    case 4:
        spread_modes(tables, 4, coords, begin, count, index_base, lo);
        return;
    case 5:
        spread_modes(tables, 5, coords, begin, count, index_base, lo);
        return;
    default:
        spread_modes(tables, tables->order, coords, begin, count, index_base, lo);
    }
}

/* Forms the upper words of keys of more than 64 bits. */
static void spread_high(const struct slc_key_tables *tables,
                        const uint64_t *const *coords,
                        uint32_t begin,
                        uint32_t count,
                        uint64_t index_base,
                        uint64_t *hi)
{
    uint64_t column[SLC_KEY_BATCH];

    memset(hi, 0, count * sizeof *hi);
    for (unsigned mode = 0; mode < tables->order; mode++) {
        if (tables->mask_hi[mode] != 0) {
            for (uint32_t i = 0; i < count; i++) {
                column[i] = coords[mode][begin + i] - index_base;
            }
            /* The shift is below 64: a mode has at most 62 bits. */
            spread_column(tables->mask_hi[mode], tables->low_bits[mode], column, count, hi);
        }
    }
}

enum slc_status slc_key_tables_init(struct slc_key_tables *tables,
                                    const struct slc_key_layout *layout,
                                    struct slc_error *err)
{
    size_t count = 0;
    size_t used = 0;

    *tables = (struct slc_key_tables){
        .order = layout->order, .wide = layout->bits > 64, .spread = spread_is_fast()};
    for (unsigned mode = 0; mode < layout->order; mode++) {
        tables->byte_count[mode] = (layout->mode_bits[mode] + 7) / 8;
        count += (size_t)tables->byte_count[mode] * TABLE * (tables->wide ? 2 : 1);
    }
    tables->memory = slc_calloc(count + 1, sizeof *tables->memory);
    SLC_TRY(
        slc_check_memory(tables->memory != NULL, err, "for %zu bytes of key tables", count * 8));
    for (unsigned mode = 0; mode < layout->order; mode++) {
        size_t bytes = (size_t)tables->byte_count[mode] * TABLE;

        tables->mask_lo[mode] = layout->mask_lo[mode];
        tables->mask_hi[mode] = layout->mask_hi[mode];
        tables->low_bits[mode] = (unsigned)__builtin_popcountll(layout->mask_lo[mode]);
        tables->lo[mode] = tables->memory + used;
        used += bytes;
        if (tables->wide) {
            tables->hi[mode] = tables->memory + used;
            used += bytes;
        }
        for (unsigned byte = 0; byte < tables->byte_count[mode]; byte++) {
            unsigned below = tables->low_bits[mode];

            for (unsigned value = 0; value < TABLE; value++) {
                uint64_t part = (uint64_t)value << (8 * byte);

                tables->lo[mode][byte * TABLE + value] =
                    slc_bits_spread(part, layout->mask_lo[mode]);
                if (tables->wide) {
                    tables->hi[mode][byte * TABLE + value] =
                        slc_bits_spread(below < 64 ? part >> below : 0, layout->mask_hi[mode]);
                }
            }
        }
    }
    return SLC_OK;
}

void slc_key_tables_destroy(struct slc_key_tables *tables)
{
    slc_free(tables->memory);
    *tables = (struct slc_key_tables){0};
}

static void add_column(
    const uint64_t *table, unsigned bytes, const uint64_t *coords, uint32_t count, uint64_t *out)
{
    uint32_t i;
    unsigned byte;

    switch (bytes) {
    case 0:
        return;
    case 1:
        for (i = 0; i < count; i++) {
            out[i] |= table[coords[i] & 255];
        }
        return;
    case 2:
        for (i = 0; i < count; i++) {
            out[i] |= table[coords[i] & 255] | table[TABLE + (coords[i] >> 8 & 255)];
        }
        return;
    case 3:
        for (i = 0; i < count; i++) {
            out[i] |= table[coords[i] & 255] | table[TABLE + (coords[i] >> 8 & 255)] |
                      table[2 * TABLE + (coords[i] >> 16 & 255)];
        }
        return;
    default:
        for (i = 0; i < count; i++) {
            uint64_t bits = 0;

            for (byte = 0; byte < bytes; byte++) {
                bits |= table[byte * TABLE + (coords[i] >> (8 * byte) & 255)];
            }
            out[i] |= bits;
        }
    }
}

void slc_key_tables_add(const struct slc_key_tables *tables,
                        unsigned mode,
                        const uint64_t *coords,
                        uint32_t count,
                        uint64_t *lo,
                        uint64_t *hi)
{
    if (tables->spread) {
        spread_column(tables->mask_lo[mode], 0, coords, count, lo);
        if (hi != NULL && tables->mask_hi[mode] != 0) {
            /* The shift is below 64: a mode has at most 62 bits. */
            spread_column(tables->mask_hi[mode], tables->low_bits[mode], coords, count, hi);
        }
        return;
    }
    add_column(tables->lo[mode], tables->byte_count[mode], coords, count, lo);
    if (hi != NULL && tables->wide) {
        add_column(tables->hi[mode], tables->byte_count[mode], coords, count, hi);
    }
}

void slc_key_tables_form(const struct slc_key_tables *tables,
                         const uint64_t *const *coords,
                         uint32_t begin,
                         uint32_t count,
                         uint64_t index_base,
                         uint64_t *lo,
                         uint64_t *hi)
{
    uint64_t column[SLC_KEY_BATCH];

    assert(count <= SLC_KEY_BATCH);
    if (tables->spread) {
        spread_low(tables, coords, begin, count, index_base, lo);
        if (hi != NULL && tables->wide) {
            spread_high(tables, coords, begin, count, index_base, hi);
        }
        return;
    }
    memset(lo, 0, count * sizeof *lo);
    if (hi != NULL && tables->wide) {
        memset(hi, 0, count * sizeof *hi);
    }
    for (unsigned mode = 0; mode < tables->order; mode++) {
        for (uint32_t i = 0; i < count; i++) {
            column[i] = coords[mode][begin + i] - index_base;
        }
        slc_key_tables_add(tables, mode, column, count, lo, hi);
    }
}
