/* What a command line asks of the layouts of a store; see layout_wish.h. */
#include "tools/options/layout_wish.h"

#include <string.h>

const enum slc_layout_kind layout_kinds[LAYOUT_KINDS] = {SLC_LAYOUT_SORTED, SLC_LAYOUT_FIBER};

/* A mode from 1 to `order`, up to a comma or the end; 0 where it is something else. */
static unsigned parse_mode(const char **text, unsigned order)
{
    unsigned mode = 0;

    for (; **text >= '0' && **text <= '9' && mode <= order; ++*text) {
        mode = mode * 10 + (unsigned)(**text - '0');
    }
    if ((**text != ',' && **text != '\0') || mode > order) {
        return 0;
    }
    *text += **text == ',';
    return mode;
}

/* The modes of a list, or all. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_modes(
    const char *option, const char *list, unsigned order, uint32_t *modes, struct slc_error *err)
{
    const char *text = list;

    if (strcmp(list, "all") == 0) {
        *modes = (UINT32_C(1) << order) - 1;
        return SLC_OK;
    }
    while (*text != '\0') {
        const unsigned mode = parse_mode(&text, order);

        if (mode == 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s '%s': modes from 1 to %u, with commas between, or all", option,
                            list, order);
        }
        *modes |= UINT32_C(1) << (mode - 1);
    }
    return SLC_OK;
}

/* Layouts by their names; *blco, which may be NULL, for the first. Errors: SLC_ERR_USAGE. */
static enum slc_status parse_layouts(const char *option,
                                     const char *list,
                                     unsigned order,
                                     uint32_t *modes,
                                     bool *blco,
                                     struct slc_error *err)
{
    const char *text = list;

    while (*text != '\0') {
        const size_t first = blco == NULL                     ? 0
                             : strncmp(text, "blco,", 5) == 0 ? 5
                             : strcmp(text, "blco") == 0      ? 4
                                                              : 0;
        unsigned mode = 0;

        text += first;
        if (first > 0) {
            *blco = true;
            continue;
        }
        for (unsigned k = 0; k < LAYOUT_KINDS && mode == 0; k++) {
            const char *name = slc_layout_name(layout_kinds[k]);

            if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '-') {
                text += strlen(name) + 1;
                mode = parse_mode(&text, order);
                modes[k] |= mode > 0 ? UINT32_C(1) << (mode - 1) : 0;
                break;
            }
        }
        if (mode == 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s '%s': modes from 1 to %u, each as sorted-K or fiber-K, with "
                            "commas between%s",
                            option, list, order, blco != NULL ? ", or blco" : "");
        }
    }
    return SLC_OK;
}

enum slc_status layout_wish_parse(const struct layout_lists *lists,
                                  unsigned order,
                                  struct layout_wish *wish,
                                  struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    wish->move_all = lists->of == NULL;
    if (lists->sorted != NULL) {
        status = parse_modes("sorted", lists->sorted, order, &wish->add[0], err);
    }
    if (status == SLC_OK && lists->fiber != NULL) {
        status = parse_modes("fiber", lists->fiber, order, &wish->add[1], err);
    }
    if (status == SLC_OK && lists->drop != NULL) {
        status = parse_layouts("drop", lists->drop, order, wish->drop, NULL, err);
    }
    if (status == SLC_OK && lists->of != NULL) {
        status = parse_layouts("of", lists->of, order, wish->move, &wish->move_blco, err);
    }
    if (status == SLC_OK && ((lists->stripe != NULL) + lists->gather > 1 ||
                             (lists->of != NULL && lists->stripe == NULL && !lists->gather))) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "--of goes with one of --stripe and --gather, which do not go together");
    }
    if (status == SLC_OK &&
        ((wish->add[0] & wish->drop[0]) != 0 || (wish->add[1] & wish->drop[1]) != 0)) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "the same layout is to be added and dropped: drop it first to build it "
                          "again");
    }
    return status;
}

bool layout_is_to_move(const struct layout_wish *wish, const struct slc_store_layout *layout)
{
    if (wish->move_all) {
        return true;
    }
    return layout->layout == SLC_LAYOUT_BLCO
               ? wish->move_blco
               : layout_has_mode(wish->move[layout->layout == SLC_LAYOUT_FIBER],
                                 layout->layout_mode);
}
