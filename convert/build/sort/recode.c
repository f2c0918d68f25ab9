#include "convert/build/sort/recode.h"

#include <assert.h>

enum slc_status slc_recoder_init_coords(struct slc_recoder *recoder,
                                        const struct slc_key_layout *from,
                                        uint64_t from_base,
                                        uint64_t to_base,
                                        struct slc_error *err)
{
    unsigned offset = 0;

    *recoder = (struct slc_recoder){.order = from->order,
                                    .wide = from->bits > 64,
                                    .rebased = true,
                                    .base_shift = from_base - to_base};
    SLC_TRY(slc_key_moves_create(&recoder->moves, from->bits, from->bits, err));
    for (unsigned n = 0; n < from->order; n++) {
        recoder->offset[n] = offset;
        recoder->mode_bits[n] = from->mode_bits[n];
        for (unsigned bit = 0; bit < from->mode_bits[n]; bit++) {
            slc_key_moves_add(&recoder->moves, slc_key_bit_position(from, n, bit), offset++);
        }
    }
    return SLC_OK;
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
    if (slc_key_layout_same(from, to)) {
        recoder->same = true;
        return SLC_OK;
    }
    return slc_key_moves_between(&recoder->moves, from, to, err);
}

void slc_recoder_destroy(struct slc_recoder *recoder)
{
    slc_key_moves_destroy(&recoder->moves);
    *recoder = (struct slc_recoder){0};
}

void slc_recode_coords(const struct slc_recoder *recoder,
                       const uint64_t *lo,
                       const uint64_t *hi,
                       uint32_t count,
                       uint64_t (*columns)[SLC_KEY_BATCH])
{
    for (uint32_t i = 0; i < count; i++) {
        slc_u128 bits = slc_key_moves_apply(&recoder->moves, lo[i], recoder->wide ? hi[i] : 0,
                                            recoder->moves.two_words);

        for (unsigned n = 0; n < recoder->order; n++) {
            uint64_t mask = (UINT64_C(1) << recoder->mode_bits[n]) - 1;
            unsigned offset = recoder->offset[n];
            /* The offset of a mode without bits may be 128. */
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
    assert(!recoder->same && count <= SLC_KEY_BATCH);
    if (recoder->rebased) {
        recode_rebased(recoder, lo, hi, count);
    } else if (recoder->moves.two_words) {
        for (uint32_t i = 0; i < count; i++) {
            slc_u128 key =
                slc_key_moves_apply(&recoder->moves, lo[i], recoder->wide ? hi[i] : 0, true);

            lo[i] = (uint64_t)key;
            hi[i] = (uint64_t)(key >> 64);
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            lo[i] = (uint64_t)slc_key_moves_apply(&recoder->moves, lo[i], recoder->wide ? hi[i] : 0,
                                                  false);
        }
    }
}
