/* Builds the byte tables that convert keys from one layout to another. */
#include "base/key_moves.h"

#include "base/memory/memory.h"

static unsigned key_bytes(unsigned bits)
{
    return (bits + 7) / 8;
}

static size_t words_of(unsigned from_bits)
{
    return (size_t)key_bytes(from_bits) * SLC_KEY_MOVES_TABLE;
}

uint64_t slc_key_moves_memory_bytes(unsigned from_bits, unsigned to_bits)
{
    return words_of(from_bits) * (to_bits > 64 ? 2 : 1) * sizeof(uint64_t);
}

enum slc_status slc_key_moves_create(struct slc_key_moves *moves,
                                     unsigned from_bits,
                                     unsigned to_bits,
                                     struct slc_error *err)
{
    const size_t words = words_of(from_bits);

    *moves = (struct slc_key_moves){.bytes = key_bytes(from_bits), .two_words = to_bits > 64};
    moves->lo = slc_calloc(words * (moves->two_words ? 2 : 1) + 1, sizeof *moves->lo);
    SLC_TRY(slc_check_memory(moves->lo != NULL, err, "for tables that convert keys of %u bytes",
                             moves->bytes));
    moves->hi = moves->lo + words;
    return SLC_OK;
}

void slc_key_moves_destroy(struct slc_key_moves *moves)
{
    slc_free(moves->lo);
    *moves = (struct slc_key_moves){.bytes = 0};
}

void slc_key_moves_add(struct slc_key_moves *moves, unsigned from, unsigned to)
{
    const slc_u128 moved = (slc_u128)1 << to;
    const size_t table = (size_t)(from / 8) * SLC_KEY_MOVES_TABLE;

    for (unsigned value = 0; value < SLC_KEY_MOVES_TABLE; value++) {
        if ((value >> from % 8 & 1) != 0) {
            moves->lo[table + value] |= (uint64_t)moved;
            if (moves->two_words) {
                moves->hi[table + value] |= (uint64_t)(moved >> 64);
            }
        }
    }
}

unsigned slc_key_bit_position(const struct slc_key_layout *layout, unsigned n, unsigned bit)
{
    const slc_u128 mask = slc_key_join(layout->mask_lo[n], layout->mask_hi[n]);
    unsigned position = 0;

    for (;; position++) {
        if ((mask >> position & 1) != 0 && bit-- == 0) {
            return position;
        }
    }
}

enum slc_status slc_key_moves_between(struct slc_key_moves *moves,
                                      const struct slc_key_layout *from,
                                      const struct slc_key_layout *to,
                                      struct slc_error *err)
{
    SLC_TRY(slc_key_moves_create(moves, from->bits, to->bits, err));
    for (unsigned n = 0; n < from->order; n++) {
        for (unsigned bit = 0; bit < from->mode_bits[n] && bit < to->mode_bits[n]; bit++) {
            slc_key_moves_add(moves, slc_key_bit_position(from, n, bit),
                              slc_key_bit_position(to, n, bit));
        }
    }
    return SLC_OK;
}
