#include "engine/product/fiber_operator.h"

#include "base/memory/checked.h"
#include "convert/build/sort/column_sort.h"
#include "convert/build/sort/key_tables.h"
#include "storage/manifest/labels.h"
#include "storage/scan/store_scan.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    /* Upper limits of the bytes per nonzero during the call: the sorted nonzeros, and either a
     * second set of columns for sorting, or fibers and the stored form. */
    NARROW_BYTES = 56,
    WIDE_BYTES = 80,
    OVERHEAD_BYTES = 4 << 20
};

/* State of slc_fiber_operator_create. */
struct making {
    const struct slc_fiber_operator_options *options;
    struct slc_fiber_operator *made;
    unsigned kept_count;
    unsigned kept_mode[SLC_MAX_ORDER];
    unsigned index_bits; /* bits of an index of the operator's mode, the lowest bits of a key */
    bool wide;           /* keys have more than 64 bits */
    uint64_t nnz;
    struct slc_labels labels[SLC_MAX_ORDER]; /* store index -> input index of relabelled modes */
    struct slc_key_tables tables;
    struct slc_buffer buffers[2]; /* memory of columns and scratch */
    struct slc_key_columns columns;
    atomic_uint_fast64_t filled; /* nonzeros in the columns */
};

/* Decides the form of the keys. A key has the key of the fiber in its upper bits and the index in
 * the operator's mode in its lower bits, so that sorted nonzeros are in fibers. */
static enum slc_status init_keys(struct making *making, struct slc_error *err)
{
    struct slc_fiber_operator *made = making->made;
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned n = 0; n < made->order; n++) {
        if (n != made->mode) {
            dims[making->kept_count] = made->dims[n];
            making->kept_mode[making->kept_count++] = n;
        }
    }
    if (making->kept_count > 0) {
        SLC_TRY(slc_key_layout_init(&made->keys, making->kept_count, dims, err));
        SLC_TRY(slc_key_tables_init(&making->tables, &made->keys, err));
    }
    making->index_bits = slc_bits_for_length(made->dims[made->mode]);
    making->wide = made->keys.bits + making->index_bits > 64;
    return SLC_OK;
}

static enum slc_status check_budget(const struct making *making, struct slc_error *err)
{
    const struct slc_fiber_operator_options *options = making->options;
    const struct slc_manifest *manifest = &options->store->manifest;
    const uint64_t length = making->made->dims[making->made->mode];
    /* Maps of used indices, and a short vector with its map. */
    uint64_t bytes = length / 4 + slc_min_u64(length, making->nnz) * 12;
    uint64_t needs;

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        bytes += slc_labels_memory_bytes(manifest->dims[manifest->permutations[i].mode]);
    }
    bytes += slc_memory_resident() + OVERHEAD_BYTES +
             slc_store_scan_memory_bytes(slc_reader_info(options->store->reader), options->threads);
    if (!slc_mul_u64(making->nnz, making->wide ? WIDE_BYTES : NARROW_BYTES, &needs) ||
        !slc_add_u64(needs, bytes, &needs)) {
        needs = UINT64_MAX / 2;
    }
    return needs <= options->memory_bytes
               ? SLC_OK
               : slc_fail_budget(err, options->memory_bytes, needs,
                                 "keeping the %" PRIu64 " nonzeros of the tensor in memory",
                                 making->nnz);
}

/* Divides the memory of a buffer into columns. */
static struct slc_key_columns columns_in(const struct making *making, const struct slc_buffer *from)
{
    uint64_t *at = from->data;
    const uint64_t column = making->nnz + 1;

    return (struct slc_key_columns){.lo = at,
                                    .hi = making->wide ? at + 2 * column : NULL,
                                    .values = (double *)(void *)(at + column)};
}

static enum slc_status allocate(struct making *making, struct slc_error *err)
{
    const struct slc_store *store = making->options->store;
    const uint64_t bytes = (making->nnz + 1) * (making->wide ? 3 : 2) * sizeof(uint64_t);

    for (unsigned i = 0; i < store->manifest.permutation_count; i++) {
        const struct slc_store_permutation *listed = &store->manifest.permutations[i];

        SLC_TRY(slc_store_labels(store, listed, &making->labels[listed->mode], err));
        slc_labels_invert(&making->labels[listed->mode]);
    }
    SLC_TRY(slc_buffer_create(&making->buffers[0], bytes, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&making->buffers[1], bytes, SLC_PAGES_HUGE, err));
    making->columns = columns_in(making, &making->buffers[0]);
    return SLC_OK;
}

/* Replaces store indices by input indices in relabelled modes. */
static void restore_indices(const struct making *making, const struct slc_scan_rows *rows)
{
    for (unsigned n = 0; n < making->made->order; n++) {
        const uint32_t *index = making->labels[n].label;

        for (uint32_t i = 0; index != NULL && i < rows->count; i++) {
            rows->coords[n][i] = index[rows->coords[n][i]];
        }
    }
}

/* Forms the keys of nonzeros begin .. begin + count - 1 of `rows` in columns at + begin .. */
static void form_keys(const struct making *making,
                      const struct slc_scan_rows *rows,
                      uint32_t begin,
                      uint32_t count,
                      uint64_t at)
{
    const uint64_t *index = rows->coords[making->made->mode] + begin;
    const uint64_t *kept[SLC_MAX_ORDER] = {NULL};
    uint64_t lo[SLC_KEY_BATCH] = {0}, hi[SLC_KEY_BATCH] = {0};

    for (unsigned k = 0; k < making->kept_count; k++) {
        kept[k] = rows->coords[making->kept_mode[k]];
    }
    if (making->kept_count > 0) {
        slc_key_tables_form(&making->tables, kept, begin, count, 0, lo, hi);
    }
    for (uint32_t i = 0; i < count; i++) {
        const slc_u128 key = slc_key_join(lo[i], hi[i]) << making->index_bits | index[i];

        making->columns.lo[at + begin + i] = (uint64_t)key;
        if (making->wide) {
            making->columns.hi[at + begin + i] = (uint64_t)(key >> 64);
        }
    }
}

static enum slc_status
add_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct making *making = context;
    const uint64_t at = atomic_fetch_add(&making->filled, rows->count);

    if (rows->count > making->nnz || at > making->nnz - rows->count) {
        return slc_fail(err, SLC_ERR_DAMAGED, "the store has more than its %" PRIu64 " nonzeros",
                        making->nnz);
    }
    restore_indices(making, rows);
    for (uint32_t begin = 0; begin < rows->count; begin += SLC_KEY_BATCH) {
        form_keys(making, rows, begin, (uint32_t)slc_min_u64(rows->count - begin, SLC_KEY_BATCH),
                  at);
    }
    memcpy(making->columns.values + at, rows->values, rows->count * sizeof *rows->values);
    if (worker == 0 && making->options->progress != NULL) {
        making->options->progress(making->options->context, "read", at + rows->count, making->nnz);
    }
    return SLC_OK;
}

static slc_u128 fiber_key(const struct making *making, uint64_t i)
{
    return slc_key_columns_get(making->columns, i) >> making->index_bits;
}

static bool begins_fiber(const struct making *making, uint64_t i)
{
    return i == 0 || fiber_key(making, i) != fiber_key(making, i - 1);
}

/* Finds the fibers of the sorted nonzeros, and stores them. Uses the scratch columns as memory of
 * the fibers' starts and the nonzeros' indices. */
static enum slc_status store_fibers(struct making *making, struct slc_error *err)
{
    struct slc_fiber_operator *made = making->made;
    const uint64_t mask = (UINT64_C(1) << making->index_bits) - 1;
    uint64_t *begin = making->buffers[1].data;
    uint32_t *index = (uint32_t *)(void *)(begin + making->nnz + 1);
    uint64_t fibers = 0, f = 0;

    for (uint64_t i = 0; i < making->nnz; i++) {
        fibers += begins_fiber(making, i);
        index[i] = (uint32_t)(making->columns.lo[i] & mask);
    }
    SLC_TRY(slc_buffer_create(&made->memory,
                              (fibers + 1) * (made->keys.bits > 64 ? 2 : 1) * sizeof(uint64_t),
                              SLC_PAGES_MIXED, err));
    made->key_lo = made->memory.data;
    made->key_hi = made->keys.bits > 64 ? made->key_lo + fibers + 1 : NULL;
    for (uint64_t i = 0; i < making->nnz; i++) {
        if (begins_fiber(making, i)) {
            const slc_u128 key = fiber_key(making, i);

            begin[f] = i;
            made->key_lo[f] = (uint64_t)key;
            if (made->key_hi != NULL) {
                made->key_hi[f] = (uint64_t)(key >> 64);
            }
            f++;
        }
    }
    begin[fibers] = making->nnz;
    return slc_sptv_create(&made->sptv,
                           &(struct slc_sptv_source){.length = made->dims[made->mode],
                                                     .fibers = fibers,
                                                     .begin = begin,
                                                     .index = index,
                                                     .values = making->columns.values},
                           &(struct slc_sptv_options){.unused = SLC_SPTV_UNUSED_AUTO}, err);
}

static enum slc_status make(struct making *making, struct slc_error *err)
{
    const struct slc_fiber_operator_options *options = making->options;

    SLC_TRY(init_keys(making, err));
    SLC_TRY(check_budget(making, err));
    SLC_TRY(allocate(making, err));
    SLC_TRY(slc_store_scan(options->store, options->threads, options->stop, add_rows, making, err));
    if (atomic_load(&making->filled) != making->nnz) {
        return slc_fail(err, SLC_ERR_DAMAGED, "the store has fewer than its %" PRIu64 " nonzeros",
                        making->nnz);
    }
    slc_column_sort(making->columns, columns_in(making, &making->buffers[1]), making->nnz);
    SLC_TRY(slc_stop_check(options->stop, err));
    return store_fibers(making, err);
}

enum slc_status slc_fiber_operator_create(struct slc_fiber_operator *made,
                                          const struct slc_fiber_operator_options *options,
                                          struct slc_error *err)
{
    const struct slc_manifest *manifest = &options->store->manifest;

    memset(made, 0, sizeof *made);
    if (options->mode >= manifest->order) {
        return slc_fail(err, SLC_ERR_USAGE, "mode %u does not exist; the tensor has modes 0 to %u",
                        options->mode, manifest->order - 1);
    }
    struct making *making = slc_calloc(1, sizeof *making);
    SLC_TRY(slc_check_memory(making != NULL, err, "to read a tensor"));
    making->options = options;
    making->made = made;
    making->nnz = manifest->nnz;
    made->order = manifest->order;
    made->mode = options->mode;
    memcpy(made->dims, manifest->dims, sizeof made->dims);
    enum slc_status status =
        made->dims[made->mode] <= SLC_SPTV_LENGTH_MAX
            ? make(making, err)
            : slc_fail(err, SLC_ERR_UNSUPPORTED,
                       "mode %u has %" PRIu64 " indices: in memory, the limit is 2^31", made->mode,
                       made->dims[made->mode]);

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&making->labels[n]);
    }
    slc_key_tables_destroy(&making->tables);
    slc_buffer_destroy(&making->buffers[0]);
    slc_buffer_destroy(&making->buffers[1]);
    slc_free(making);
    if (status != SLC_OK) {
        slc_fiber_operator_destroy(made);
    }
    return status;
}

void slc_fiber_operator_destroy(struct slc_fiber_operator *made)
{
    slc_sptv_destroy(&made->sptv);
    slc_buffer_destroy(&made->memory);
    memset(made, 0, sizeof *made);
}

void slc_fiber_operator_indices(const struct slc_fiber_operator *made,
                                unsigned mode,
                                uint64_t *indices)
{
    const unsigned kept = mode - (mode > made->mode);
    uint64_t coords[SLC_MAX_ORDER];

    for (uint64_t f = 0; f < made->sptv.fibers; f++) {
        slc_key_decode(&made->keys,
                       slc_key_join(made->key_lo[f], made->key_hi != NULL ? made->key_hi[f] : 0),
                       coords);
        indices[f] = coords[kept];
    }
}

uint64_t slc_fiber_operator_bytes(const struct slc_fiber_operator *made)
{
    return made->memory.bytes + slc_sptv_memory_bytes(&made->sptv);
}
