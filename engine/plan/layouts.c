/* Opens the layouts of a store that an operation may read. */
#include "engine/plan/layouts.h"

#include <string.h>

/* Opens the layout sorted by `mode`, appends it to `layouts`, and subtracts its memory from
 * *available_bytes. */
static enum slc_status open_sorted(const struct slc_store *store,
                                   unsigned mode,
                                   uint64_t *available_bytes,
                                   struct slc_layouts *layouts,
                                   struct slc_error *err)
{
    struct slc_reader *reader;

    SLC_TRY(slc_store_open_layout(store, SLC_LAYOUT_SORTED, mode, *available_bytes, &reader, err));
    layouts->reader[layouts->count++] = reader;
    uint64_t bytes = slc_reader_memory_bytes(reader);
    *available_bytes = *available_bytes > bytes ? *available_bytes - bytes : 0;
    return SLC_OK;
}

enum slc_status slc_layouts_open(const struct slc_store *store,
                                 enum slc_layout_choice choice,
                                 uint32_t modes,
                                 uint64_t memory_bytes,
                                 struct slc_layouts *layouts,
                                 struct slc_error *err)
{
    uint64_t available_bytes = memory_bytes;
    enum slc_status status = SLC_OK;

    *layouts = slc_layouts_one(store->reader);
    for (unsigned n = 0; n < store->manifest.order && status == SLC_OK; n++) {
        if ((modes >> n & 1U) == 0 || choice == SLC_LAYOUTS_BLCO) {
            continue;
        }
        if (slc_manifest_find(&store->manifest, SLC_LAYOUT_SORTED, n) != NULL) {
            status = open_sorted(store, n, &available_bytes, layouts, err);
        } else if (choice == SLC_LAYOUTS_SORTED) {
            status = slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_SORTED_LAYOUT, SLC_FIELD_LAYOUTS,
                                     "the store has no layout sorted by mode %u: build it, or "
                                     "request the layouts 'auto' or 'blco'",
                                     n + 1);
        }
    }
    if (status != SLC_OK) {
        slc_layouts_close(layouts);
    }
    return status;
}

void slc_layouts_close(struct slc_layouts *layouts)
{
    for (unsigned l = 1; l < layouts->count; l++) {
        slc_reader_close(layouts->reader[l]);
    }
    memset(layouts, 0, sizeof *layouts);
}

unsigned slc_layouts_sorted_by(const struct slc_layouts *layouts, unsigned mode)
{
    for (unsigned l = 0; l < layouts->count; l++) {
        const struct slc_layout_info *info = slc_reader_info(layouts->reader[l]);

        if (info->layout == SLC_LAYOUT_SORTED && info->layout_mode == mode) {
            return l;
        }
    }
    return 0;
}
