/*
 * Moves a layout's block file out of its store, in stripes to folders elsewhere, and back. Whatever
 * ends the process, and whenever, the store is whole: the list of stripes takes the place of the
 * block file, or the block file that of the list, by one rename, after all bytes are on the drive.
 * What may be left is named by a list beside the block file, and removed by the next change.
 */
#ifndef SLC_CONVERT_RESTRIPE_H
#define SLC_CONVERT_RESTRIPE_H

#include "convert/layout/relayout.h"

/*
 * Puts the block file of a listed layout into `count` stripes, number k in folders[k] (absolute, or
 * from the store's folder on), which exist. *changed: false where they were there already. Stripes
 * that lie in those folders because somebody moved them are listed there and not written again.
 * Errors: SLC_ERR_USAGE: no such layout, no such folders; those of files. The store is then as it
 * was.
 */
enum slc_status slc_relayout_stripe(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *const *folders,
                                    unsigned count,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/* Puts it back into the store; *changed: false where it is there. Errors: as slc_relayout_stripe.
 */
enum slc_status slc_relayout_gather(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
