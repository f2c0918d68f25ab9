/* Computes the moves of struct slc_compress by parallel prefix ([Warren] section 7-4). */
#include "base/compress.h"

#include <string.h>

void slc_compress_init(struct slc_compress *compress, uint64_t mask)
{
    uint64_t selected = mask;
    uint64_t zeros_right = ~mask << 1; /* bit p is set if bit p - 1 is not selected */

    memset(compress, 0, sizeof *compress);
    compress->mask = mask;
    compress->bits = (uint32_t)__builtin_popcountll(mask);
    /* Stop when the selected bits have moved to the lowest positions without gaps. */
    for (unsigned s = 0; (selected & (selected + 1)) != 0; s++) {
        /* After the loop below, bit p of `odd` is bit s of the count of unselected bits below p. */
        uint64_t odd = zeros_right;

        for (unsigned shift = 1; shift < 64; shift *= 2) {
            odd ^= odd << shift;
        }
        compress->move[s] = odd & selected;
        selected = (selected ^ compress->move[s]) | compress->move[s] >> (1U << s);
        zeros_right &= ~odd;
        compress->steps = s + 1;
    }
}
