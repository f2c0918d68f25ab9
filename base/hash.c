/* XXH3 from libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t slc_hash64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}
