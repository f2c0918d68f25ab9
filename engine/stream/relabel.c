/* Permutes rows along the cycles of the permutation. This needs memory for one additional row, not
 * for a second factor. */
#include "engine/stream/relabel.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/labels.h"

#include <assert.h>
#include <string.h>

uint64_t slc_relabel_memory_bytes(const struct slc_layout_info *info)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < info->order; n++) {
        if ((info->relabelled_modes >> n & 1) != 0) {
            bytes = slc_max_u64(bytes, slc_labels_memory_bytes(info->dims[n]));
        }
    }
    return bytes;
}

uint64_t slc_relabel_all_bytes(const struct slc_layout_info *info)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < info->order; n++) {
        if ((info->relabelled_modes >> n & 1) != 0) {
            bytes += slc_labels_memory_bytes(info->dims[n]);
        }
    }
    return bytes;
}

/* Moves row from[i] to row i for all i, and sets from[i] to i. `held` is a buffer for one row. */
static void move_rows(struct slc_matrix *matrix, uint32_t *from, void *held)
{
    const size_t row_bytes = (size_t)matrix->pitch * slc_value_bytes(matrix->type);
    char *rows = matrix->buffer.data;

    for (uint64_t start = 0; start < matrix->rows; start++) {
        uint64_t at = start;

        if (from[start] == start) {
            continue;
        }
        memcpy(held, rows + start * row_bytes, row_bytes);
        while (from[at] != start) {
            uint64_t next = from[at];

            memcpy(rows + at * row_bytes, rows + next * row_bytes, row_bytes);
            from[at] = (uint32_t)at;
            at = next;
        }
        memcpy(rows + at * row_bytes, held, row_bytes);
        from[at] = (uint32_t)at;
    }
}

enum slc_status slc_relabel_rows(const struct slc_store *store,
                                 unsigned mode,
                                 enum slc_row_order to,
                                 struct slc_matrix *matrix,
                                 struct slc_error *err)
{
    const struct slc_store_permutation *listed = slc_manifest_permutation(&store->manifest, mode);
    struct slc_labels labels;
    void *held;

    if (listed == NULL) {
        return SLC_OK;
    }
    assert(matrix->rows == store->manifest.dims[mode]);
    held = slc_malloc((size_t)matrix->pitch * slc_value_bytes(matrix->type));
    SLC_TRY(slc_check_memory(held != NULL, err, "for a row of a factor"));
    enum slc_status status = slc_store_labels(store, listed, &labels, err);
    if (status == SLC_OK) {
        /* label[i] is the index in the store of index i of the input. */
        if (to == SLC_ROWS_OF_STORE) {
            slc_labels_invert(&labels);
        }
        move_rows(matrix, labels.label, held);
        slc_labels_destroy(&labels);
    }
    slc_free(held);
    return status;
}

enum slc_status slc_relabel_names(const struct slc_store *store,
                                  unsigned mode,
                                  struct slc_labels labels[SLC_MAX_ORDER],
                                  const uint32_t *index[SLC_MAX_ORDER],
                                  struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->manifest;

    for (unsigned n = 0; n < manifest->order; n++) {
        const struct slc_store_permutation *listed = slc_manifest_permutation(manifest, n);

        if (listed == NULL || n == mode) {
            continue;
        }
        SLC_TRY(slc_store_labels(store, listed, &labels[n], err));
        slc_labels_invert(&labels[n]);
        index[n] = labels[n].label;
    }
    return SLC_OK;
}
