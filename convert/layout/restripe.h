/*
 * Moves a layout's block file out of its store, in stripes to folders elsewhere, and back. Whatever
 * ends the process, and whenever, the store is whole: the list of stripes takes the place of the
 * block file, or the block file that of the list, by one rename, after all bytes are on the drive.
 * What may be left is named by a list beside the block file, and removed by the next change.
 */
#ifndef SLC_CONVERT_RESTRIPE_H
#define SLC_CONVERT_RESTRIPE_H

#include "base/error/error.h"
#include "convert/layout/relayout.h"
#include "storage/file/files.h"

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

/*
 * What changes of stripes (convert/layout/restripe.h) leave beside a block file P, and its end:
 *
 *     P.stripes   the list of stripes that are being written; becomes P by rename
 *     P.unstripe  the list that P is about to be no longer
 *     P.gathered  the block file that is being put together; becomes P by rename
 */
#define SLC_STRIPES_COMING   ".stripes"
#define SLC_STRIPES_LEAVING  ".unstripe"
#define SLC_STRIPES_GATHERED ".gathered"

/* PATH + SUFFIX in fresh memory (slc_free), or NULL without memory. */
char *slc_restripe_path(const char *path, const char *suffix);

/*
 * Ends what a list PATH + SUFFIX was left for: removes it, and its stripes unless PATH is of the
 * same. Without one nothing is done. Errors: those of files and lists; the list is then still
 * there.
 */
enum slc_status slc_restripe_settle_list(const struct slc_files *files,
                                         const char *path,
                                         const char *suffix,
                                         struct slc_error *err) SLC_NODISCARD;

/* Removes what changes of stripes that were interrupted have left of a store, and elsewhere. */
enum slc_status slc_restripe_settle(const struct slc_files *files,
                                    const char *store,
                                    struct slc_error *err) SLC_NODISCARD;

/* Removes a list of stripes at `path`, if there is one, with its stripes. */
enum slc_status slc_restripe_discard(const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
