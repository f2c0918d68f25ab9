/* Moves a layout's block file out of its store into stripes in other folders, and back. The store
 * is complete whenever the process ends: after all bytes are on the drive, one rename replaces the
 * block file with the list of stripes, or vice versa. If a change is interrupted, a list next to
 * the block file names the files that must be removed; the next change removes them. */
#ifndef SLC_CONVERT_RESTRIPE_H
#define SLC_CONVERT_RESTRIPE_H

#include "base/error/error.h"
#include "convert/layout/relayout.h"
#include "storage/file/files.h"

/* Moves the block file of a listed layout into `count` stripes, stripe k in folders[k] (absolute,
 * or relative to the store's folder). The folders must exist. *changed is false if the stripes were
 * already in these folders. If the user moved the stripes to these folders, only the list is
 * rewritten. If another store owns the stripes, they stay, and this store gets its own. Errors:
 * SLC_ERR_USAGE for an unknown layout or a wrong number of folders; errors of file operations.
 * After an error, the store is unchanged. */
enum slc_status slc_relayout_stripe(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *const *folders,
                                    unsigned count,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/* Moves the block file back into the store. *changed is false if the block file is already in
 * the store. Errors: those of slc_relayout_stripe. */
enum slc_status slc_relayout_gather(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/* Suffixes of the temporary files that exist next to a block file P while its stripes change:
 *
 *     P.stripes   list of the stripes being written; becomes P by rename
 *     P.unstripe  copy of the list P, made before P is replaced
 *     P.gathered  block file being gathered; becomes P by rename */
#define SLC_STRIPES_COMING   ".stripes"
#define SLC_STRIPES_LEAVING  ".unstripe"
#define SLC_STRIPES_GATHERED ".gathered"

/* Returns PATH + SUFFIX, newly allocated (slc_free), or NULL if out of memory. */
char *slc_restripe_path(const char *path, const char *suffix);

/* If there is a list of stripes at PATH + SUFFIX, removes the list, and also its stripes unless
 * PATH uses them or another store owns them. Errors: those of files and lists. After an error, the
 * list still exists. */
enum slc_status slc_restripe_clean_list(const struct slc_files *files,
                                        const char *path,
                                        const char *suffix,
                                        struct slc_error *err) SLC_NODISCARD;

/* Removes the files that interrupted changes of stripes left in a store and in other folders. */
enum slc_status slc_restripe_clean(const struct slc_files *files,
                                   const char *store,
                                   struct slc_error *err) SLC_NODISCARD;

/* Removes a list of stripes at `path`, if it exists, with the stripes that this store owns. */
enum slc_status slc_restripe_discard(const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
