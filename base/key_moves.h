/*
 * The bits of a key under one layout moved to where another layout has them: a table per byte of
 * the key tells where its bits go, so that a key costs a load and an OR per byte on every machine.
 *
 * Memory: 2 KiB (4 KiB to more than 64 bits) per byte of a key, at most 64 KiB.
 */
#ifndef SLC_BASE_KEY_MOVES_H
#define SLC_BASE_KEY_MOVES_H

#include "base/error/error.h"
#include "base/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_KEY_MOVES_TABLE = 256 };

struct slc_key_moves {
    unsigned bytes; /* of a key; a table each */
    bool two_words; /* of bits that the tables give */
    uint64_t *lo, *hi;
};

/* What the tables take. */
uint64_t slc_key_moves_memory_bytes(unsigned from_bits, unsigned to_bits);

/*
 * Tables that move no bit yet. Owns: slc_key_moves_destroy, which takes an all-zero struct.
 * Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_key_moves_create(struct slc_key_moves *moves,
                                     unsigned from_bits,
                                     unsigned to_bits,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_key_moves_destroy(struct slc_key_moves *moves);

/* Bit `from` of keys goes to `to`. */
void slc_key_moves_add(struct slc_key_moves *moves, unsigned from, unsigned to);

/*
 * Tables from one layout to another of as many modes; of each mode they move the bits that both
 * have. Owns and errors as slc_key_moves_create.
 */
enum slc_status slc_key_moves_between(struct slc_key_moves *moves,
                                      const struct slc_key_layout *from,
                                      const struct slc_key_layout *to,
                                      struct slc_error *err) SLC_NODISCARD;

/* Where bit `bit` of mode n stands in keys; the mode has it. */
unsigned slc_key_bit_position(const struct slc_key_layout *layout, unsigned n, unsigned bit);

/* Where the bits of a key go; `two_words` is that of the tables, said again for the compiler. */
static inline slc_u128
slc_key_moves_apply(const struct slc_key_moves *moves, uint64_t lo, uint64_t hi, bool two_words)
{
    uint64_t moved_lo = 0;
    uint64_t moved_hi = 0;

    for (unsigned byte = 0; byte < moves->bytes; byte++) {
        uint64_t word = byte < 8 ? lo : hi;
        size_t at = (size_t)byte * SLC_KEY_MOVES_TABLE + (word >> 8 * (byte % 8) & 255);

        moved_lo |= moves->lo[at];
        if (two_words) {
            moved_hi |= moves->hi[at];
        }
    }
    return slc_key_join(moved_lo, moved_hi);
}

#endif
