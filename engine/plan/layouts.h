/* The layouts of one store that an operation may read: `blco`, which serves every mode, and sorted
 * layouts, each for its own mode. All layouts of a store hold the same nonzeros. Their keys have
 * the same number of bits, so one set of decoders and slots serves passes over any layout. */
#ifndef SLC_ENGINE_LAYOUTS_H
#define SLC_ENGINE_LAYOUTS_H

#include "base/error/error.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* The layouts that an operation reads. */
enum slc_layout_choice {
    /* Sorted layouts, unless passes over them read more bytes than passes over `blco` alone. */
    SLC_LAYOUTS_AUTO,
    SLC_LAYOUTS_BLCO,  /* `blco` alone */
    SLC_LAYOUTS_SORTED /* each mode from its own sorted layout, which must exist */
};
const char *slc_layout_choice_name(enum slc_layout_choice choice); /* "auto", "blco", "sorted" */
bool slc_layout_choice_parse(const char *name, enum slc_layout_choice *choice);

struct slc_layouts {
    unsigned count;                             /* 1 or more */
    struct slc_reader *reader[SLC_MAX_LAYOUTS]; /* reader[0] reads `blco` */
};

/* Returns a list with only this layout. Borrows the reader. */
static inline struct slc_layouts slc_layouts_one(struct slc_reader *reader)
{
    return (struct slc_layouts){.count = 1, .reader = {reader}};
}

/* Opens the store's `blco` layout and, unless `choice` is SLC_LAYOUTS_BLCO, the sorted layouts of
 * the modes in `modes` (bit n: mode n). The indices of all these layouts must fit in
 * `memory_bytes`. Ownership: slc_layouts_close closes the sorted layouts; the store owns `blco` and
 * must outlive `layouts`. Errors: those of opening a layout; SLC_ERR_USAGE if `choice` is
 * SLC_LAYOUTS_SORTED and the store has no sorted layout for a mode. The message then names the mode
 * and how to make the layout. */
enum slc_status slc_layouts_open(const struct slc_store *store,
                                 enum slc_layout_choice choice,
                                 uint32_t modes,
                                 uint64_t memory_bytes,
                                 struct slc_layouts *layouts,
                                 struct slc_error *err) SLC_NODISCARD;
/* Closes the sorted layouts. Accepts an all-zero struct. */
void slc_layouts_close(struct slc_layouts *layouts);

/* Returns the index of the layout sorted by `mode`, or 0 if there is none. */
unsigned slc_layouts_sorted_by(const struct slc_layouts *layouts, unsigned mode);

/* Returns the number of partitions for MTTKRPs of `mode` (base/backend.h), or 0 if the layout is
 * not sorted by `mode`. */
static inline uint64_t slc_layout_partitions(const struct slc_layout_info *info, unsigned mode)
{
    return info->layout == SLC_LAYOUT_SORTED && info->layout_mode == mode ? info->partition_count
                                                                          : 0;
}

#endif
