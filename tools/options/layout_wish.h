/* What a command line asks of the layouts of a store. */
#ifndef SLC_TOOLS_LAYOUT_WISH_H
#define SLC_TOOLS_LAYOUT_WISH_H

#include "storage/manifest/store.h"

/* Further kinds of layouts. */
enum { LAYOUT_KINDS = 2 };
extern const enum slc_layout_kind layout_kinds[LAYOUT_KINDS];

/* Lists as they were given; NULL: not given. */
struct layout_lists {
    const char *sorted; /* modes to add sorted layouts of .. */
    const char *fiber;  /* .. and those with whole fibers */
    const char *drop;   /* layouts */
    const char *stripe; /* folders */
    const char *of;     /* layouts to be moved; all where it is NULL */
    bool gather;
};

/* Sets of modes of each kind, a bit each. */
struct layout_wish {
    uint32_t add[LAYOUT_KINDS];
    uint32_t drop[LAYOUT_KINDS];
    uint32_t move[LAYOUT_KINDS]; /* further layouts to be striped or gathered .. */
    bool move_blco;              /* .. and the first .. */
    bool move_all;               /* .. or whatever there is */
};

/* Of a store with so many modes. Errors: SLC_ERR_USAGE. */
enum slc_status layout_wish_parse(const struct layout_lists *lists,
                                  unsigned order,
                                  struct layout_wish *wish,
                                  struct slc_error *err) SLC_NODISCARD;

static inline bool layout_has_mode(uint32_t modes, unsigned mode)
{
    return (modes >> mode & 1) != 0;
}

/* Whether a layout is to be striped or gathered. */
bool layout_is_to_move(const struct layout_wish *wish, const struct slc_store_layout *layout);

#endif
