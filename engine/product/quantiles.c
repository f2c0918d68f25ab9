#include "engine/product/quantiles.h"

#include "base/memory/checked.h"

#include <math.h>
#include <string.h>

/* Bits of a magnitude: all bits of a double except its sign. */
enum { KEY_BITS = 63, DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

static uint64_t counter_tables(unsigned count, unsigned workers)
{
    return slc_max_u64(count, workers);
}

static uint64_t memory_bytes(unsigned count, unsigned workers, uint64_t capacity)
{
    return (counter_tables(count, workers) * DIGITS + capacity) * sizeof(uint64_t);
}

uint64_t slc_quantiles_memory_bytes(unsigned count, unsigned workers, uint64_t capacity)
{
    return count > 0 ? slc_buffer_footprint(memory_bytes(count, workers, capacity), SLC_PAGES_SMALL)
                     : 0;
}

static unsigned digit_bits(const struct slc_quantiles *quantiles)
{
    return quantiles->shift < DIGIT_BITS ? quantiles->shift : DIGIT_BITS;
}

/* Returns the first quantile whose known bits are those of `key`, or `count` if there is none. */
static unsigned group_of(const struct slc_quantiles *quantiles, uint64_t key)
{
    unsigned g = 0;

    while (g < quantiles->count && quantiles->prefix[g] != key >> quantiles->shift) {
        g++;
    }
    return g;
}

enum slc_status slc_quantiles_open(struct slc_quantiles *quantiles,
                                   unsigned count,
                                   const double *fraction,
                                   uint64_t total,
                                   unsigned workers,
                                   uint64_t capacity,
                                   struct slc_error *err)
{
    *quantiles = (struct slc_quantiles){.count = total > 0 ? count : 0,
                                        .shift = KEY_BITS,
                                        .workers = workers,
                                        .capacity = capacity,
                                        .candidates = total,
                                        .collecting = total <= capacity};
    if (quantiles->count == 0) {
        return SLC_OK;
    }
    SLC_TRY(slc_buffer_create(&quantiles->memory, memory_bytes(count, workers, capacity),
                              SLC_PAGES_SMALL, err));
    quantiles->counters = quantiles->memory.data;
    quantiles->keys = quantiles->counters + counter_tables(count, workers) * DIGITS;
    for (unsigned i = 0; i < count; i++) {
        const double position = ceil(fraction[i] * (double)total) - 1.0;

        quantiles->rank[i] =
            position > 0.0 ? slc_min_u64((uint64_t)position, total - 1) : UINT64_C(0);
    }
    return SLC_OK;
}

void slc_quantiles_close(struct slc_quantiles *quantiles)
{
    slc_buffer_destroy(&quantiles->memory);
}

/* Counts a candidate by its next bits. In the first pass, every number is a candidate, so each
 * worker has its own counters. */
static void count_key(struct slc_quantiles *quantiles, unsigned worker, uint64_t key)
{
    const unsigned bits = digit_bits(quantiles);
    const unsigned group = group_of(quantiles, key);

    if (group < quantiles->count) {
        const unsigned table = quantiles->shift == KEY_BITS ? worker : group;
        const uint64_t digit = key >> (quantiles->shift - bits) & ((UINT64_C(1) << bits) - 1);

        __atomic_add_fetch(&quantiles->counters[(uint64_t)table * DIGITS + digit], 1,
                           __ATOMIC_RELAXED);
    }
}

void slc_quantiles_add(struct slc_quantiles *quantiles, unsigned worker, double number)
{
    const double magnitude = fabs(number);
    uint64_t key;

    if (quantiles->count == 0) {
        return;
    }
    memcpy(&key, &magnitude, sizeof key);
    if (!quantiles->collecting) {
        count_key(quantiles, worker, key);
    } else if (group_of(quantiles, key) < quantiles->count) {
        const uint64_t at = __atomic_fetch_add(&quantiles->collected, 1, __ATOMIC_RELAXED);

        /* False only if the passes add different numbers. */
        if (at < quantiles->capacity) {
            quantiles->keys[at] = key;
        }
    }
}

/* Finds the next bits of quantile i in the counters of its group, and its rank among the numbers
 * with these bits. Returns how many numbers have these bits. */
static uint64_t find_digit(struct slc_quantiles *quantiles, unsigned i, unsigned table)
{
    const uint64_t *counters = quantiles->counters + (uint64_t)table * DIGITS;
    uint64_t digit = 0;

    while (digit + 1 < DIGITS && quantiles->rank[i] >= counters[digit]) {
        quantiles->rank[i] -= counters[digit++];
    }
    quantiles->prefix[i] = quantiles->prefix[i] << digit_bits(quantiles) | digit;
    return counters[digit];
}

/* Extends all quantiles by the bits that were counted. */
static void use_counters(struct slc_quantiles *quantiles)
{
    uint64_t known[SLC_QUANTILES_MAX];

    for (unsigned w = 1; quantiles->shift == KEY_BITS && w < quantiles->workers; w++) {
        for (uint64_t d = 0; d < DIGITS; d++) {
            quantiles->counters[d] += quantiles->counters[(uint64_t)w * DIGITS + d];
        }
    }
    memcpy(known, quantiles->prefix, sizeof known);
    quantiles->candidates = 0;
    for (unsigned i = 0; i < quantiles->count; i++) {
        unsigned table = 0;

        while (known[table] != known[i]) {
            table++;
        }
        const uint64_t members = find_digit(quantiles, i, table);
        bool repeated = false;
        for (unsigned k = 0; k < i; k++) {
            repeated = repeated || quantiles->prefix[k] == quantiles->prefix[i];
        }
        quantiles->candidates += repeated ? 0 : members;
    }
    quantiles->shift -= digit_bits(quantiles);
    memset(quantiles->counters, 0,
           counter_tables(quantiles->count, quantiles->workers) * DIGITS * sizeof(uint64_t));
}

bool slc_quantiles_end_pass(struct slc_quantiles *quantiles)
{
    if (quantiles->count == 0) {
        return true;
    }
    if (!quantiles->collecting) {
        use_counters(quantiles);
        quantiles->collecting = quantiles->candidates <= quantiles->capacity;
        return quantiles->shift == 0;
    }
    while (quantiles->shift > 0) {
        for (uint64_t i = 0; i < slc_min_u64(quantiles->collected, quantiles->capacity); i++) {
            count_key(quantiles, 0, quantiles->keys[i]);
        }
        use_counters(quantiles);
    }
    return true;
}

double slc_quantiles_get(const struct slc_quantiles *quantiles, unsigned i)
{
    double number = 0.0;

    if (i < quantiles->count) {
        memcpy(&number, &quantiles->prefix[i], sizeof number);
    }
    return number;
}
