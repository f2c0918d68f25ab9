/* Implements the counter as a hash table: open addressing, linear probing, at most half full. */
#include "convert/build/sort/distinct.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* Returns the first slot for a number. Mixes the number, because the upper bits of kept numbers are
 * 0, and the low bits of sums of products are poor hashes. */
static uint32_t slot_of(uint64_t number)
{
    return (uint32_t)((number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 51);
}

/* Inserts a number; returns true if it is new. */
static bool insert(uint64_t *slots, uint64_t number)
{
    uint32_t at = slot_of(number);

    assert(at < SLC_DISTINCT_SLOTS);
    while (slots[at] != 0) {
        if (slots[at] == number) {
            return false;
        }
        at = (at + 1) % SLC_DISTINCT_SLOTS;
    }
    slots[at] = number;
    return true;
}

void slc_distinct_init(struct slc_distinct *distinct, uint64_t *slots)
{
    *distinct = (struct slc_distinct){.slots = slots, .limit = UINT64_MAX};
    memset(slots, 0, SLC_DISTINCT_BYTES);
}

/* Halves the limit once and removes larger numbers. */
static void halve(struct slc_distinct *distinct)
{
    uint64_t numbers[SLC_DISTINCT_KEPT_MAX + 1];
    uint32_t count = 0;

    distinct->limit >>= 1;
    distinct->halvings++;
    for (uint32_t at = 0; at < SLC_DISTINCT_SLOTS; at++) {
        if (distinct->slots[at] != 0 && distinct->slots[at] <= distinct->limit) {
            numbers[count++] = distinct->slots[at];
        }
    }
    memset(distinct->slots, 0, SLC_DISTINCT_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        (void)insert(distinct->slots, numbers[i]);
    }
    distinct->kept = count;
}

void slc_distinct_keep(struct slc_distinct *distinct, uint64_t number)
{
    assert(number <= distinct->limit);
    /* 0 marks a free slot, so number 0 is treated as 1, which changes the count by at most 1. */
    distinct->kept += insert(distinct->slots, number != 0 ? number : 1);
    while (distinct->kept > SLC_DISTINCT_KEPT_MAX) {
        halve(distinct);
    }
}

void slc_distinct_join(struct slc_distinct *distinct, const struct slc_distinct *from)
{
    while (distinct->halvings < from->halvings) {
        halve(distinct);
    }
    for (uint32_t at = 0; at < SLC_DISTINCT_SLOTS; at++) {
        if (from->slots[at] != 0 && from->slots[at] <= distinct->limit) {
            slc_distinct_keep(distinct, from->slots[at]);
        }
    }
}

uint64_t slc_distinct_count(const struct slc_distinct *distinct)
{
    /* After this number of halvings, all numbers up to the limit fit the table. */
    assert(distinct->halvings <= SLC_DISTINCT_HALVINGS_MAX);
    return (uint64_t)distinct->kept << distinct->halvings;
}
