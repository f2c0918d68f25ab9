/* See convert/recode.h. */
#include "convert/recode.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { TABLE = 256 };

static bool same_bits(const struct slc_key_layout *a, const struct slc_key_layout *b)
{
    return memcmp(a->mask_lo, b->mask_lo, sizeof a->mask_lo) == 0 &&
           memcmp(a->mask_hi, b->mask_hi, sizeof a->mask_hi) == 0;
}

/* Position of bit `bit` of mode n in the key. */
static unsigned position_of(const struct slc_key_layout *layout, unsigned n, unsigned bit)
{
    slc_u128 mask = slc_key_join(layout->mask_lo[n], layout->mask_hi[n]);
    unsigned position = 0;

    for (;; position++) {
        if ((mask >> position & 1) != 0 && bit-- == 0) {
            return position;
        }
    }
}

/* A bit of keys moves from one position to another. */
static void move_bit(struct slc_recoder *recoder, unsigned from, unsigned to)
{
    slc_u128 moved = (slc_u128)1 << to;
    size_t table = (size_t)(from / 8) * TABLE;

    for (unsigned value = 0; value < TABLE; value++) {
        if ((value >> from % 8 & 1) != 0) {
            recoder->lo[table + value] |= (uint64_t)moved;
            if (recoder->two_words) {
                recoder->hi[table + value] |= (uint64_t)(moved >> 64);
            }
        }
    }
}

static enum slc_status take_tables(struct slc_recoder *recoder,
                                   const struct slc_key_layout *from,
                                   unsigned to_bits,
                                   struct slc_error *err)
{
    size_t words;

    recoder->bytes = (from->bits + 7) / 8;
    recoder->two_words = to_bits > 64;
    words = (size_t)recoder->bytes * TABLE;
    recoder->lo = slc_calloc(words * (recoder->two_words ? 2 : 1) + 1, sizeof *recoder->lo);
    if (recoder->lo == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for tables of %u bytes of a key",
                        recoder->bytes);
    }
    recoder->hi = recoder->lo + words;
    return SLC_OK;
}

enum slc_status slc_recoder_init_coords(struct slc_recoder *recoder,
                                        const struct slc_key_layout *from,
                                        uint64_t from_base,
                                        uint64_t to_base,
                                        struct slc_error *err)
{
    unsigned offset = 0;
    enum slc_status status;

    *recoder = (struct slc_recoder){.order = from->order,
                                    .wide = from->bits > 64,
                                    .rebased = true,
                                    .base_shift = from_base - to_base};
    status = take_tables(recoder, from, from->bits, err);
    for (unsigned n = 0; n < from->order && status == SLC_OK; n++) {
        recoder->offset[n] = offset;
        recoder->mode_bits[n] = from->mode_bits[n];
        for (unsigned bit = 0; bit < from->mode_bits[n]; bit++) {
            move_bit(recoder, position_of(from, n, bit), offset++);
        }
    }
    return status;
}

enum slc_status slc_recoder_init(struct slc_recoder *recoder,
                                 const struct slc_key_layout *from,
                                 uint64_t from_base,
                                 const struct slc_key_layout *to,
                                 const struct slc_key_tables *tables,
                                 uint64_t to_base,
                                 struct slc_error *err)
{
    enum slc_status status;

    if (from_base != to_base) {
        status = slc_recoder_init_coords(recoder, from, from_base, to_base, err);
        recoder->to = tables;
        return status;
    }
    *recoder = (struct slc_recoder){.wide = from->bits > 64, .to = tables};
    if (same_bits(from, to)) {
        recoder->same = true;
        return SLC_OK;
    }
    status = take_tables(recoder, from, to->bits, err);
    for (unsigned n = 0; n < from->order && status == SLC_OK; n++) {
        for (unsigned bit = 0; bit < from->mode_bits[n] && bit < to->mode_bits[n]; bit++) {
            move_bit(recoder, position_of(from, n, bit), position_of(to, n, bit));
        }
    }
    return status;
}

void slc_recoder_destroy(struct slc_recoder *recoder)
{
    slc_free(recoder->lo);
    *recoder = (struct slc_recoder){0};
}

/* Where the tables put the bits of a key. */
static inline slc_u128
moved_bits(const struct slc_recoder *recoder, uint64_t lo, uint64_t hi, bool two_words)
{
    uint64_t moved_lo = 0;
    uint64_t moved_hi = 0;

    for (unsigned byte = 0; byte < recoder->bytes; byte++) {
        uint64_t word = byte < 8 ? lo : hi;
        size_t at = (size_t)byte * TABLE + (word >> 8 * (byte % 8) & 255);

        moved_lo |= recoder->lo[at];
        if (two_words) {
            moved_hi |= recoder->hi[at];
        }
    }
    return slc_key_join(moved_lo, moved_hi);
}

void slc_recode_coords(const struct slc_recoder *recoder,
                       const uint64_t *lo,
                       const uint64_t *hi,
                       uint32_t count,
                       uint64_t (*columns)[SLC_KEY_BATCH])
{
    for (uint32_t i = 0; i < count; i++) {
        slc_u128 bits = moved_bits(recoder, lo[i], recoder->wide ? hi[i] : 0, recoder->two_words);

        for (unsigned n = 0; n < recoder->order; n++) {
            uint64_t mask = (UINT64_C(1) << recoder->mode_bits[n]) - 1;
            unsigned offset = recoder->offset[n];
            /* A mode without bits may stand behind all 128. */
            uint64_t coord = offset < 128 ? (uint64_t)(bits >> offset) & mask : 0;

            columns[n][i] = coord + recoder->base_shift;
        }
    }
}

static void
recode_rebased(const struct slc_recoder *recoder, uint64_t *lo, uint64_t *hi, uint32_t count)
{
    uint64_t columns[SLC_MAX_ORDER][SLC_KEY_BATCH];
    const uint64_t *view[SLC_MAX_ORDER];

    slc_recode_coords(recoder, lo, hi, count, columns);
    for (unsigned n = 0; n < recoder->order; n++) {
        view[n] = columns[n];
    }
    slc_key_tables_form(recoder->to, view, 0, count, 0, lo, hi);
}

void slc_recode(const struct slc_recoder *recoder, uint64_t *lo, uint64_t *hi, uint32_t count)
{
    assert(count <= SLC_KEY_BATCH);
    if (recoder->same) {
        return;
    }
    if (recoder->rebased) {
        recode_rebased(recoder, lo, hi, count);
    } else if (recoder->two_words) {
        for (uint32_t i = 0; i < count; i++) {
            slc_u128 key = moved_bits(recoder, lo[i], recoder->wide ? hi[i] : 0, true);

            lo[i] = (uint64_t)key;
            hi[i] = (uint64_t)(key >> 64);
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            lo[i] = (uint64_t)moved_bits(recoder, lo[i], recoder->wide ? hi[i] : 0, false);
        }
    }
}
