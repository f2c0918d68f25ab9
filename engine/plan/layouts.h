/*
 * The layouts of one store that an operation may read: `blco`, which serves every mode, and sorted
 * layouts, each for its own mode. All hold the same nonzeros, with keys of the same bits in
 * different orders, so that decoders of one size and one set of slots serve passes over any of
 * them.
 */
#ifndef SLC_ENGINE_LAYOUTS_H
#define SLC_ENGINE_LAYOUTS_H

#include "base/error/error.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Which layouts an operation reads. */
enum slc_layout_choice {
    /* Sorted layouts if passes over them read no more bytes than passes over `blco` alone. */
    SLC_LAYOUTS_AUTO,
    SLC_LAYOUTS_BLCO,  /* `blco` alone */
    SLC_LAYOUTS_SORTED /* every mode from the layout sorted by it; an error if one is missing */
};
const char *slc_layout_choice_name(enum slc_layout_choice choice); /* "auto", "blco", "sorted" */
bool slc_layout_choice_parse(const char *name, enum slc_layout_choice *choice);

struct slc_layouts {
    unsigned count;                             /* 1 or more */
    struct slc_reader *reader[SLC_MAX_LAYOUTS]; /* reader[0] reads `blco` */
};

/* Returns layouts that consist of a single one. Borrows the reader. */
static inline struct slc_layouts slc_layouts_one(struct slc_reader *reader)
{
    return (struct slc_layouts){.count = 1, .reader = {reader}};
}

/*
 * Opens the store's `blco` layout and, unless `choice` is BLCO, the layouts sorted by the modes of
 * the set `modes` (bit n: mode n). Their indices together must fit in `memory_bytes`. Owns:
 * slc_layouts_close closes the sorted layouts; `blco` stays owned by the store, which must outlive
 * them. Errors: those of opening them; SLC_ERR_USAGE if `choice` is SORTED and the store has no
 * sorted layout for a mode; the message names the mode and how to make the layout.
 */
enum slc_status slc_layouts_open(const struct slc_store *store,
                                 enum slc_layout_choice choice,
                                 uint32_t modes,
                                 uint64_t memory_bytes,
                                 struct slc_layouts *layouts,
                                 struct slc_error *err) SLC_NODISCARD;
/* Accepts an all-zero struct. */
void slc_layouts_close(struct slc_layouts *layouts);

/* Returns the index of the layout sorted by `mode`, or 0 if there is none. */
unsigned slc_layouts_sorted_by(const struct slc_layouts *layouts, unsigned mode);

/*
 * Partitions of a layout for MTTKRPs of `mode`: 0 unless it is sorted by the mode (base/backend.h).
 */
static inline uint64_t slc_layout_partitions(const struct slc_layout_info *info, unsigned mode)
{
    return info->layout == SLC_LAYOUT_SORTED && info->layout_mode == mode ? info->partition_count
                                                                          : 0;
}

#endif
