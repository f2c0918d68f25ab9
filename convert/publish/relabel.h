/*
 * Relabelling by frequency: the indices of a mode are renumbered by falling number of nonzeros.
 * What occurs often then lies together in a corner of the tensor, so that keys get close to one
 * another and the rows of factors that are used most share cache lines and pages.
 */
#ifndef SLC_CONVERT_RELABEL_H
#define SLC_CONVERT_RELABEL_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

/*
 * `folder` holds a finished store in the numbering of the input that nobody else uses yet. Builds
 * it again under new numbers within the limits of `options` (temp_folder, max_temp, memory_bytes,
 * workers). Where all files together are smaller then, with permutations and manifest, the new
 * store stands whole in FOLDER/relabelled.slc: *apart, for slc_relabel_put. Otherwise nothing is
 * there but the store as it was. Fills in report->relabel, and report->summary where the new store
 * is the one to keep.
 * Memory: 4 bytes per index of every mode that is renumbered, beside the second sort.
 * Errors: SLC_ERR_BUDGET naming the smallest memory that is enough; those of the builder. The
 * folder then holds what may be removed.
 */
enum slc_status slc_relabel_store(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  bool *apart,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Puts the store in FOLDER/relabelled.slc, or what of it has not been moved yet, in the place of
 * that in `folder`. Errors: SLC_ERR_IO; it can be asked for again after one.
 */
enum slc_status slc_relabel_put(const struct slc_files *files,
                                const char *folder,
                                struct slc_error *err) SLC_NODISCARD;

#endif
