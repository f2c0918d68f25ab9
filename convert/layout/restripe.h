/*
 * Moves a layout's block file out of its store into stripes in other folders, and back. The store
 * is complete even if the process ends at any point: after all bytes are on the drive, one rename
 * replaces the block file with the list of stripes, or vice versa. A list next to the block file
 * names the files that an interrupted change left; the next change removes them.
 */
#ifndef SLC_CONVERT_RESTRIPE_H
#define SLC_CONVERT_RESTRIPE_H

#include "base/error/error.h"
#include "convert/layout/relayout.h"
#include "storage/file/files.h"

/*
 * Moves the block file of a listed layout into `count` stripes, stripe k in folders[k] (absolute,
 * or relative to the store's folder). The folders must exist. *changed is false if the stripes were
 * already there. If the user moved the stripes to these folders, only the list is rewritten.
 * Errors: SLC_ERR_USAGE: no such layout or folders; errors of file operations. The store is then
 * unchanged.
 */
enum slc_status slc_relayout_stripe(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *const *folders,
                                    unsigned count,
                                    bool *changed,
                                    struct slc_error *err) SLC_NODISCARD;

/* Moves the block file back into the store. *changed is false if the block file is already in
 * the store. Errors: as slc_relayout_stripe. */
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

/* PATH + SUFFIX, newly allocated (slc_free), or NULL if out of memory. */
char *slc_restripe_path(const char *path, const char *suffix);

/* Cleans up after a list PATH + SUFFIX: removes the list, and also its stripes unless PATH uses
 * them. Does nothing without the list. Errors: those of files and lists; the list then still
 * exists. */
enum slc_status slc_restripe_clean_list(const struct slc_files *files,
                                        const char *path,
                                        const char *suffix,
                                        struct slc_error *err) SLC_NODISCARD;

/* Removes the files that interrupted changes of stripes left in a store and in other folders. */
enum slc_status slc_restripe_clean(const struct slc_files *files,
                                   const char *store,
                                   struct slc_error *err) SLC_NODISCARD;

/* Removes a list of stripes at `path`, if it exists, with its stripes. */
enum slc_status slc_restripe_discard(const struct slc_files *files,
                                     const char *path,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
