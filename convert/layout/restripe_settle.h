/*
 * What changes of stripes (convert/layout/restripe.h) leave beside a block file P, and its end:
 *
 *     P.stripes   the list of stripes that are being written; becomes P by rename
 *     P.unstripe  the list that P is about to be no longer
 *     P.gathered  the block file that is being put together; becomes P by rename
 */
#ifndef SLC_CONVERT_RESTRIPE_SETTLE_H
#define SLC_CONVERT_RESTRIPE_SETTLE_H

#include "base/error/error.h"
#include "storage/file/files.h"

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
