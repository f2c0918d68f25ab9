/* Converts keys from one layout to another. One table per byte of the key maps the value of the
 * byte to its bits in the converted key. A conversion therefore costs one load and one OR per byte,
 * on every machine.
 *
 * Memory: 2 KiB per byte of the key to convert, or 4 KiB if the converted key has more than 64
 * bits; at most 64 KiB. */
#ifndef SLC_BASE_KEY_MOVES_H
#define SLC_BASE_KEY_MOVES_H

#include "base/error/error.h"
#include "base/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_KEY_MOVES_TABLE = 256 };

struct slc_key_moves {
    unsigned bytes; /* bytes of a key to convert; there is one table per byte */
    bool two_words; /* true if converted keys have more than 64 bits */
    uint64_t *lo, *hi;
};

/* Returns the size in bytes of the tables. */
uint64_t slc_key_moves_memory_bytes(unsigned from_bits, unsigned to_bits);

/* Creates tables without moves. Ownership: release with slc_key_moves_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_key_moves_create(struct slc_key_moves *moves,
                                     unsigned from_bits,
                                     unsigned to_bits,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_key_moves_destroy(struct slc_key_moves *moves);

/* Makes the tables move bit `from` of a key to bit `to`. */
void slc_key_moves_add(struct slc_key_moves *moves, unsigned from, unsigned to);

/* Creates tables for two layouts with the same number of modes. For each mode the tables move the
 * bits that both layouts have. Ownership and errors: those of slc_key_moves_create. */
enum slc_status slc_key_moves_between(struct slc_key_moves *moves,
                                      const struct slc_key_layout *from,
                                      const struct slc_key_layout *to,
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns the position in keys of bit `bit` of mode n. Needs: the mode has this bit. */
unsigned slc_key_bit_position(const struct slc_key_layout *layout, unsigned n, unsigned bit);

/* Converts a key. Needs: `two_words` equals moves->two_words. The compiler specializes the loop if
 * `two_words` is a constant. */
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
