/* The portable table of decoding loops, and the selection of a table: the best table for the
 * machine, or the table that a test or benchmark forces. */
#include "storage/codec/decode_ops.h"

#include "storage/codec/decode_loops.h"
#include "storage/codec/decoder.h"

#include <stdatomic.h>
#include <string.h>

static void portable_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    slc_loop_unpack(packed, width, count, values);
}

#define LOOP_TARGET
#define LOOP_UNPACK portable_unpack
#include "storage/codec/decode_loops_tmpl.h"

static void portable_gather(const struct slc_gather *gather,
                            const uint64_t *keys,
                            uint32_t count,
                            uint32_t *fields)
{
    slc_loop_gather(gather, keys, count, fields);
}

static void portable_fields(const struct slc_fields *plan,
                            uint64_t *keys,
                            uint32_t count,
                            uint32_t largest[SLC_MAX_ORDER])
{
    slc_loop_fields(plan, keys, count, portable_gather, largest);
}

static const struct slc_decode_ops portable_ops = {
    .name = "portable",
    .unpack = portable_unpack,
    .gather = portable_gather,
    .gather_wide = loop_gather_wide,
    .fields = portable_fields,
    LOOP_OPS,
};

const struct slc_decode_ops *slc_decode_ops_portable(void)
{
    return &portable_ops;
}

/* Best first; the last table always exists. */
static const struct slc_decode_ops *(*const tables[])(void) = {
    slc_decode_ops_avx512, slc_decode_ops_avx2, slc_decode_ops_neon, slc_decode_ops_portable};
enum { TABLES = sizeof tables / sizeof tables[0] };

/* Returns the best table of this machine with this name (NULL means any name), or NULL. */
static const struct slc_decode_ops *find_ops(const char *name)
{
    for (unsigned t = 0; t < TABLES; t++) {
        const struct slc_decode_ops *ops = tables[t]();

        if (ops != NULL && (name == NULL || strcmp(ops->name, name) == 0)) {
            return ops;
        }
    }
    return NULL;
}

/* NULL until its first use; all threads that find NULL here choose the same table. */
static _Atomic(const struct slc_decode_ops *) chosen_ops;

const struct slc_decode_ops *slc_decode_ops(void)
{
    const struct slc_decode_ops *ops = atomic_load_explicit(&chosen_ops, memory_order_relaxed);

    if (ops == NULL) {
        ops = find_ops(NULL);
        atomic_store_explicit(&chosen_ops, ops, memory_order_relaxed);
    }
    return ops;
}

bool slc_decoder_force(const char *name)
{
    const struct slc_decode_ops *ops = find_ops(name);

    if (ops == NULL) {
        return false;
    }
    atomic_store_explicit(&chosen_ops, ops, memory_order_relaxed);
    return true;
}
