/*
 * XXH3 from libxxhash. The plain function runs whatever the library was compiled for, SSE2 in
 * distributions; the dispatching one, where the library has it, chooses AVX2 or AVX-512 at its
 * first call: 14 to 22 against 10 to 13 GB/s on blocks that have just been read. Threads that make
 * the first call together store the same choice.
 */
#include "base/hash.h"

#include <xxhash.h>
#ifdef SLC_HAVE_XXHASH_DISPATCH
/* Redefines XXH3_64bits. */
#include <xxh_x86dispatch.h>
#endif

uint64_t slc_hash64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}
