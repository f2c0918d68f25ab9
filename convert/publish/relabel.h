/* Relabels modes by frequency: renumbers the indices of a mode by descending number of nonzeros.
 * Nonzeros with frequent indices are then close together in a corner of the tensor. Neighbouring
 * keys therefore differ less, and the most used rows of factors share cache lines and pages. */
#ifndef SLC_CONVERT_RELABEL_H
#define SLC_CONVERT_RELABEL_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

/* `folder` holds a finished store with the numbering of the input, which no other run uses yet.
 * Builds this store again with new numbers, within the limits of `options` (temp_folder, max_temp,
 * memory_bytes, workers). If the files of the new store, including permutations and manifest, are
 * smaller in total, sets *apart; the new store is then complete in FOLDER/relabelled.slc, and
 * slc_relabel_install must be called. Otherwise the folder holds only the original store. Fills in
 * report->relabel, and report->summary if the new store is kept. Memory: 4 bytes per index of every
 * renumbered mode, in addition to the memory of the second sort. Errors: SLC_ERR_BUDGET naming the
 * smallest sufficient memory; errors of the builder. After an error, the caller may remove the
 * contents of the folder. */
enum slc_status slc_relabel_store(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  bool *apart,
                                  struct slc_error *err) SLC_NODISCARD;

/* Replaces the store in `folder` with the store in FOLDER/relabelled.slc, by moving the files that
 * were not moved yet. Errors: SLC_ERR_IO; the call can be repeated after an error. */
enum slc_status slc_relabel_install(const struct slc_files *files,
                                    const char *folder,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
