/*
 * XXH3 from libxxhash. The plain function runs whatever the library was compiled for, SSE2 in
 * distributions; the dispatching one, where the library has it, chooses AVX2 or AVX-512 at its
 * first call: 14 to 22 against 10 to 13 GB/s on blocks that have just been read. Threads that make
 * the first call together store the same choice.
 */
#include "base/hash.h"

/* Shows the state of a hash, whose memory is the caller's. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#ifdef SLC_HAVE_XXHASH_DISPATCH
/* Redefines XXH3_64bits. */
#include <xxh_x86dispatch.h>
#endif

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct slc_hash_stream),
               "a stream has room for the library's state");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(struct slc_hash_stream),
               "a stream is aligned as the library's state");

uint64_t slc_hash64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

/* These fail for NULL alone. */
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
