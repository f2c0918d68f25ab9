/* Computes XXH3 with libxxhash. The plain function uses the instruction set for which the library
 * was compiled (SSE2 in distributions) and hashes 10 to 13 GB/s of blocks that have just been read.
 * The dispatching function, if the library has it, selects AVX2 or AVX-512 at its first call and
 * hashes 14 to 22 GB/s. Threads that make the first call at the same time all store the same
 * choice, so no lock is needed. */
#include "base/hash.h"

/* Makes xxhash.h declare the size of the hash state, whose memory the caller provides. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#ifdef SLC_HAVE_XXHASH_DISPATCH
/* Redefines XXH3_64bits. */
#include <xxh_x86dispatch.h>
#endif

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct slc_hash_stream),
               "a stream holds the library's state");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(struct slc_hash_stream),
               "a stream is aligned as the library's state");

uint64_t slc_hash64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

/* The library calls below fail only for NULL. */
void slc_hash_stream_begin(struct slc_hash_stream *stream)
{
    XXH3_state_t *state = (XXH3_state_t *)stream;

    XXH3_INITSTATE(state);
    (void)XXH3_64bits_reset(state);
}

void slc_hash_stream_add(struct slc_hash_stream *stream, const void *data, size_t bytes)
{
    (void)XXH3_64bits_update((XXH3_state_t *)stream, data, bytes);
}

uint64_t slc_hash_stream_end(const struct slc_hash_stream *stream)
{
    return XXH3_64bits_digest((const XXH3_state_t *)stream);
}
