#include "storage/manifest/name_index.h"

#include "base/hash.h"
#include "base/memory/checked.h"

#include <string.h>

/* A slot of the hash table (linear probing); index_plus_1 is 0 if the slot is empty. */
struct slot {
    uint64_t hash, index_plus_1;
};

/* Returns the number of slots: a power of two, at least twice the number of names. */
static uint64_t slot_count(uint64_t count)
{
    uint64_t slots = 16;

    while (slots / 2 < count) {
        slots *= 2;
    }
    return slots;
}

uint64_t slc_name_index_memory_bytes(uint64_t count)
{
    return count < UINT64_C(1) << 58
               ? slc_buffer_footprint(slot_count(count) * sizeof(struct slot), SLC_PAGES_SMALL)
               : UINT64_MAX;
}

/* Returns the slot of a hash: the first slot from *at on that is empty or has this hash. */
static struct slot *next_slot(const struct slc_name_index *index, uint64_t hash, uint64_t *at)
{
    struct slot *slots = index->memory.data;

    while (slots[*at].index_plus_1 != 0 && slots[*at].hash != hash) {
        *at = (*at + 1) & index->mask;
    }
    return &slots[*at];
}

enum slc_status slc_name_index_create(struct slc_name_index *index,
                                      struct slc_names *names,
                                      uint64_t count,
                                      struct slc_error *err)
{
    enum slc_status status;

    count = slc_min_u64(count, slc_names_count(names));
    *index = (struct slc_name_index){.names = names, .mask = slot_count(count) - 1};
    status = slc_buffer_create(&index->memory, (index->mask + 1) * sizeof(struct slot),
                               SLC_PAGES_SMALL, err);
    for (uint64_t i = 0; i < count && status == SLC_OK; i++) {
        const char *name;
        size_t bytes;

        status = slc_names_get(names, i, &name, &bytes, err);
        if (status == SLC_OK) {
            const uint64_t hash = slc_hash64(name, bytes);
            uint64_t at = hash & index->mask;
            struct slot *slot = next_slot(index, hash, &at);

            /* Equal hashes are equal names or, rarely, a collision; slc_name_index_find checks. */
            while (slot->index_plus_1 != 0) {
                at = (at + 1) & index->mask;
                slot = next_slot(index, hash, &at);
            }
            *slot = (struct slot){hash, i + 1};
        }
    }
    if (status != SLC_OK) {
        slc_name_index_destroy(index);
    }
    return status;
}

void slc_name_index_destroy(struct slc_name_index *index)
{
    slc_buffer_destroy(&index->memory);
    memset(index, 0, sizeof *index);
}

enum slc_status slc_name_index_find(const struct slc_name_index *index,
                                    const char *name,
                                    size_t bytes,
                                    uint64_t *found,
                                    struct slc_error *err)
{
    const uint64_t hash = slc_hash64(name, bytes);
    uint64_t at = hash & index->mask;

    *found = UINT64_MAX;
    for (struct slot *slot = next_slot(index, hash, &at); slot->index_plus_1 != 0;
         slot = next_slot(index, hash, &at)) {
        const char *known;
        size_t known_bytes;

        SLC_TRY(slc_names_get(index->names, slot->index_plus_1 - 1, &known, &known_bytes, err));
        if (known_bytes == bytes && memcmp(known, name, bytes) == 0) {
            *found = slot->index_plus_1 - 1;
            return SLC_OK;
        }
        at = (at + 1) & index->mask;
    }
    return SLC_OK;
}
