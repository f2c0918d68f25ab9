/*
 * Moves a layout's block file out of its store, in stripes to other folders, and back. If the
 * process ends at any point, the store is whole: the list of stripes replaces the block file, or
 * vice versa, by one rename after all bytes are on the drive. A list next to the block file names
 * the leftovers, which the next change removes.
 */
#ifndef SLC_CONVERT_RESTRIPE_H
#define SLC_CONVERT_RESTRIPE_H

#include "base/error/error.h"
#include "convert/layout/relayout.h"
#include "storage/file/files.h"

/*
 * Moves the block file of a listed layout into `count` stripes, number k in folders[k] (absolute,
 * or relative to the store's folder), which must exist. *changed: false if it was there already.
 * Stripes that the user moved to those folders are listed there without rewriting. Errors:
 * SLC_ERR_USAGE: no such layout or folders; those of files. The store is then unchanged.
 */
enum slc_status slc_relayout_stripe(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *const *folders,
                                    unsigned count,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/* Moves it back into the store; *changed: false if it is there. Errors: as slc_relayout_stripe. */
enum slc_status slc_relayout_gather(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Temporary files of a change of stripes, next to a block file P, and their cleanup:
 *
 *     P.stripes   list of the stripes being written; becomes P by rename
 *     P.unstripe  list that P is about to replace
 *     P.gathered  block file being gathered; becomes P by rename
 */
#define SLC_STRIPES_COMING   ".stripes"
#define SLC_STRIPES_LEAVING  ".unstripe"
#define SLC_STRIPES_GATHERED ".gathered"

/* PATH + SUFFIX in new memory (slc_free), or NULL without memory. */
char *slc_restripe_path(const char *path, const char *suffix);

/* Cleans up after a list PATH + SUFFIX: removes it, and its stripes unless PATH uses the same ones.
 * Does nothing without the list. Errors: those of files and lists; the list then still exists. */
enum slc_status slc_restripe_clean_list(const struct slc_files *files,
                                        const char *path,
                                        const char *suffix,
                                        struct slc_error *err) SLC_NODISCARD;

/* Removes the leftovers of interrupted changes of stripes in a store and in other folders. */
enum slc_status slc_restripe_clean(const struct slc_files *files,
                                   const char *store,
                                   struct slc_error *err) SLC_NODISCARD;

/* Removes a list of stripes at `path`, if it exists, with its stripes. */
enum slc_status slc_restripe_discard(const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
