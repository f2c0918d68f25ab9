/* Loads a tensor. Finds the fibers of a mode by sorting the nonzeros by their coordinates in the
 * other modes. */
#include "tools/bench/product/ttv_tensor.h"

#include "base/key.h"
#include "base/memory/checked.h"
#include "storage/scan/store_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A nonzero and the key of its fiber, for sorting. */
struct item {
    uint64_t hi, lo;
    uint64_t at;
};

/* A fiber and its number among all fibers, including empty fibers, for sorting. */
struct dense_item {
    uint64_t at;
    uint64_t fiber;
};

uint64_t ttv_tensor_bytes(const struct slc_manifest *manifest)
{
    /* Bytes per nonzero of: coordinates and value; an item while sorting; the list, the sorted list
     * and its fibers; sums. The factor 5/2 also covers the fibers as stored for each kernel, which
     * are in memory at the same time: they took 1.3 times `each` in a measurement in which nearly
     * every fiber had one nonzero. */
    const uint64_t each = manifest->order * 8 + 8 + sizeof(struct item) + 8 + 16 + 16;
    uint64_t bytes;

    return slc_mul_u64(manifest->nnz + 64, each / 2 * 5, &bytes) ? bytes : UINT64_MAX;
}

static enum slc_status
add_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct ttv_tensor *tensor = context;

    (void)worker;
    (void)err;
    for (unsigned m = 0; m < tensor->order; m++) {
        memcpy(tensor->coords[m] + tensor->nnz, rows->coords[m], rows->count * sizeof(uint64_t));
    }
    memcpy(tensor->values + tensor->nnz, rows->values, rows->count * sizeof(double));
    tensor->nnz += rows->count;
    return SLC_OK;
}

enum slc_status
ttv_tensor_load(struct ttv_tensor *tensor, const struct slc_store *store, struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->manifest;
    const uint64_t column = manifest->nnz + 1;

    SLC_TRY(slc_buffer_create(&tensor->memory, (manifest->order + 1) * column * sizeof(uint64_t),
                              SLC_PAGES_SMALL, err));
    uint64_t *at = tensor->memory.data;
    tensor->order = manifest->order;
    memcpy(tensor->dims, manifest->dims, sizeof tensor->dims);
    for (unsigned m = 0; m < tensor->order; m++, at += column) {
        tensor->coords[m] = at;
    }
    tensor->values = (double *)(void *)at;
    /* One worker delivers the nonzeros in the order of the store. */
    return slc_store_scan(store, 1, NULL, add_rows, tensor, err);
}

void ttv_tensor_destroy(struct ttv_tensor *tensor)
{
    slc_buffer_destroy(&tensor->memory);
    memset(tensor, 0, sizeof *tensor);
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    if (x->hi != y->hi) {
        return x->hi < y->hi ? -1 : 1;
    }
    if (x->lo != y->lo) {
        return x->lo < y->lo ? -1 : 1;
    }
    return x->at < y->at ? -1 : 1;
}

static int compare_dense(const void *a, const void *b)
{
    const struct dense_item *x = a;
    const struct dense_item *y = b;

    return x->at < y->at ? -1 : 1;
}

/* Sorts nonzeros by fiber. The nonzeros of a fiber stay in the order of the store, which sorts them
 * by index. */
static enum slc_status sort_nonzeros(const struct ttv_tensor *tensor,
                                     unsigned mode,
                                     struct item *items,
                                     struct slc_error *err)
{
    struct slc_key_layout layout = {.order = 0};
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t coords[SLC_MAX_ORDER];
    unsigned others = 0;

    for (unsigned m = 0; m < tensor->order; m++) {
        if (m != mode) {
            dims[others++] = tensor->dims[m];
        }
    }
    if (others > 0) {
        SLC_TRY(slc_key_layout_init(&layout, others, dims, err));
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        slc_u128 key = 0;

        others = 0;
        for (unsigned m = 0; m < tensor->order; m++) {
            if (m != mode) {
                coords[others++] = tensor->coords[m][i];
            }
        }
        key = others > 0 ? slc_key_encode(&layout, coords) : 0;
        items[i] = (struct item){(uint64_t)(key >> 64), (uint64_t)key, i};
    }
    qsort(items, tensor->nnz, sizeof *items, compare_items);
    return SLC_OK;
}

/* Returns the number of the fiber of nonzero i among all fibers of the mode, including empty
 * fibers. */
static uint64_t dense_number(const struct ttv_tensor *tensor, unsigned mode, uint64_t i)
{
    uint64_t number = 0;

    for (unsigned m = 0; m < tensor->order; m++) {
        if (m != mode) {
            number = number * tensor->dims[m] + tensor->coords[m][i];
        }
    }
    return number;
}

static enum slc_status create_buffers(struct ttv_fibers *fibers, struct slc_error *err)
{
    const uint64_t count = fibers->nnz + 2;

    SLC_TRY(slc_buffer_create(&fibers->memory,
                              count * (3 * sizeof(uint64_t) + 4 * sizeof(uint32_t)),
                              SLC_PAGES_SMALL, err));
    uint64_t *at = fibers->memory.data;
    fibers->begin = at;
    fibers->dense_at = at + count;
    fibers->sorted_values = (double *)(void *)(at + 2 * count);
    fibers->row = (uint32_t *)(void *)(at + 3 * count);
    fibers->index = fibers->row + count;
    fibers->sorted_row = fibers->row + 2 * count;
    fibers->sorted_index = fibers->row + 3 * count;
    return SLC_OK;
}

static void
number_fibers(struct ttv_fibers *fibers, const struct ttv_tensor *tensor, const struct item *items)
{
    fibers->count = 0;
    for (uint64_t k = 0; k < fibers->nnz; k++) {
        const uint64_t i = items[k].at;
        const bool first =
            k == 0 || items[k].hi != items[k - 1].hi || items[k].lo != items[k - 1].lo;

        if (first) {
            fibers->begin[fibers->count] = k;
            fibers->dense_at[fibers->count++] = dense_number(tensor, fibers->mode, i);
        }
        fibers->row[i] = (uint32_t)(fibers->count - 1);
        fibers->index[i] = (uint32_t)tensor->coords[fibers->mode][i];
        fibers->sorted_row[k] = fibers->row[i];
        fibers->sorted_index[k] = fibers->index[i];
        fibers->sorted_values[k] = tensor->values[i];
    }
    fibers->begin[fibers->count] = fibers->nnz;
}

enum slc_status ttv_fibers_create(struct ttv_fibers *fibers,
                                  const struct ttv_tensor *tensor,
                                  unsigned mode,
                                  struct slc_error *err)
{
    struct slc_buffer items = SLC_BUFFER_INIT;

    *fibers = (struct ttv_fibers){.mode = mode,
                                  .length = tensor->dims[mode],
                                  .nnz = tensor->nnz,
                                  .dense_count = 1,
                                  .values = tensor->values};
    if (tensor->nnz > UINT32_MAX || fibers->length > UINT64_C(1) << 31) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%" PRIu64 " nonzeros with a mode of size %" PRIu64
                        ": in memory, the limits are 2^32 - 1 nonzeros and mode size 2^31",
                        tensor->nnz, fibers->length);
    }
    for (unsigned m = 0; m < tensor->order; m++) {
        fibers->dense_count *= m == mode ? 1 : (double)tensor->dims[m];
    }
    enum slc_status status = create_buffers(fibers, err);
    SLC_THEN(status, slc_buffer_create(&items, (tensor->nnz + 1) * sizeof(struct item),
                                       SLC_PAGES_SMALL, err));
    SLC_THEN(status, sort_nonzeros(tensor, mode, items.data, err));
    if (status == SLC_OK) {
        number_fibers(fibers, tensor, items.data);
    }
    slc_buffer_destroy(&items);
    return status;
}

void ttv_fibers_destroy(struct ttv_fibers *fibers)
{
    slc_buffer_destroy(&fibers->memory);
    memset(fibers, 0, sizeof *fibers);
}

/* Makes a list of the fibers, sorted by their numbers among all fibers, including empty fibers. */
static enum slc_status
sort_dense(const struct ttv_fibers *fibers, struct dense_item **items, struct slc_error *err)
{
    *items = slc_calloc(fibers->count + 1, sizeof **items);
    SLC_TRY(slc_check_memory(*items != NULL, err, "for %" PRIu64 " fibers", fibers->count));
    for (uint64_t f = 0; f < fibers->count; f++) {
        (*items)[f] = (struct dense_item){fibers->dense_at[f], f};
    }
    qsort(*items, fibers->count, sizeof **items, compare_dense);
    return SLC_OK;
}

enum slc_status ttv_fibers_dense(const struct ttv_fibers *fibers,
                                 uint64_t memory_bytes,
                                 struct slc_buffer *memory,
                                 struct slc_sptv_source *source,
                                 struct slc_error *err)
{
    /* Bytes per fiber: its start, its sum and the position that the kernel stores. Bytes per
     * nonzero: index and value, in the source and as the kernel stores them. */
    const double need = fibers->dense_count * (8 + 8 + 2) + (double)fibers->nnz * (12 + 12);
    const uint64_t count = fibers->dense_count < 0x1p60 ? (uint64_t)fibers->dense_count : 0;
    struct dense_item *items = NULL;
    uint64_t at = 0, next = 0;

    if (!(need <= (double)memory_bytes)) {
        return slc_fail(
            err, SLC_ERR_BUDGET,
            "%.3g fibers, including empty ones, need %.3g MiB, but the rest of the budget is "
            "%" PRIu64 " MiB",
            fibers->dense_count, need / (1 << 20), memory_bytes >> 20);
    }
    enum slc_status status = sort_dense(fibers, &items, err);
    SLC_THEN(status, slc_buffer_create(memory,
                                       (count + 1) * sizeof(uint64_t) +
                                           (fibers->nnz + 1) * (sizeof(double) + sizeof(uint32_t)),
                                       SLC_PAGES_SMALL, err));
    if (status != SLC_OK) {
        slc_free(items);
        return status;
    }
    uint64_t *begin = memory->data;
    double *values = (double *)(void *)(begin + count + 1);
    uint32_t *index = (uint32_t *)(void *)(values + fibers->nnz + 1);
    for (uint64_t f = 0; f < fibers->count; f++) {
        const uint64_t from = fibers->begin[items[f].fiber];
        const uint64_t length = fibers->begin[items[f].fiber + 1] - from;

        for (; next <= items[f].at; next++) {
            begin[next] = at;
        }
        memcpy(index + at, fibers->sorted_index + from, length * sizeof *index);
        memcpy(values + at, fibers->sorted_values + from, length * sizeof *values);
        at += length;
    }
    for (; next <= count; next++) {
        begin[next] = at;
    }
    slc_free(items);
    *source = (struct slc_sptv_source){fibers->length, count, begin, index, values};
    return SLC_OK;
}
