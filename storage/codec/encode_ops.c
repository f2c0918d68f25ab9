/* The portable table of encoding loops, and the selection of a table. */
#include "storage/codec/encode_ops.h"

#include "storage/codec/bitpack.h"
#include "storage/codec/encode_loops.h"

#include <string.h>

static void portable_survey(const struct slc_tile_source *source, struct slc_value_survey *survey)
{
    *survey = slc_survey_none();
    slc_survey_add(source, 0, source->nnz, survey);
}

static void portable_above(const double *values, uint32_t count, int64_t low, uint64_t *above)
{
    for (uint32_t i = 0; i < count; i++) {
        above[i] = (uint64_t)((int64_t)values[i] - low);
    }
}

static unsigned portable_longer(const uint64_t *values, uint32_t count, uint8_t *longer)
{
    /* Two sets of counters: neighbours often have equal lengths, and increments of the same counter
     * would have to wait for each other. */
    uint8_t even[65] = {0}, odd[65] = {0};
    uint64_t any = 0;
    uint32_t i, above = 0;

    for (i = 0; i + 1 < count; i += 2) {
        even[slc_bit_length_u64(values[i])]++;
        odd[slc_bit_length_u64(values[i + 1])]++;
        any |= values[i] | values[i + 1];
    }
    if (i < count) {
        even[slc_bit_length_u64(values[i])]++;
        any |= values[i];
    }
    unsigned longest = slc_bit_length_u64(any);
    for (unsigned width = longest; width-- > 0;) {
        above += (uint32_t)even[width + 1] + odd[width + 1];
        longer[width] = (uint8_t)above;
    }
    return longest;
}

static const struct slc_encode_ops portable_ops = {.name = "portable",
                                                   .survey = portable_survey,
                                                   .above = portable_above,
                                                   .longer = portable_longer};

const struct slc_encode_ops *slc_encode_ops_portable(void)
{
    return &portable_ops;
}

/* Best first; the last table always exists. */
static const struct slc_encode_ops *(*const tables[])(void) = {slc_encode_ops_avx512,
                                                               slc_encode_ops_portable};
enum { TABLES = sizeof tables / sizeof tables[0] };

/* Returns the best table of this machine with this name (NULL means any name), or NULL. */
static const struct slc_encode_ops *find_ops(const char *name)
{
    for (unsigned t = 0; t < TABLES; t++) {
        const struct slc_encode_ops *ops = tables[t]();

        if (ops != NULL && (name == NULL || strcmp(ops->name, name) == 0)) {
            return ops;
        }
    }
    return NULL;
}

_Atomic(const struct slc_encode_ops *) slc_encode_ops_chosen;

const struct slc_encode_ops *slc_encode_ops_choose(void)
{
    const struct slc_encode_ops *ops = find_ops(NULL);

    atomic_store_explicit(&slc_encode_ops_chosen, ops, memory_order_relaxed);
    return ops;
}

bool slc_encoder_force(const char *name)
{
    const struct slc_encode_ops *ops = find_ops(name);

    if (ops == NULL) {
        return false;
    }
    atomic_store_explicit(&slc_encode_ops_chosen, ops, memory_order_relaxed);
    return true;
}
