/*
 * Relabelled modes: the rows of factors and outputs are moved between the order of the input, which
 * is all that users see, and the order of the store, in which everything is computed.
 */
#ifndef SLC_ENGINE_RELABEL_H
#define SLC_ENGINE_RELABEL_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum slc_row_order { SLC_ROWS_OF_STORE, SLC_ROWS_OF_INPUT };

/*
 * Moves the rows of `matrix`, one per index of `mode`, in place to the order `to` from the other
 * one. A mode that is not relabelled has one order: nothing happens.
 * Memory: slc_relabel_memory_bytes, given back before it returns, and one row.
 * Cost: every row is read and written once, at random.
 * Errors: SLC_ERR_DAMAGED naming the permutation's file, SLC_ERR_IO, SLC_ERR_MEMORY; the rows are
 * then where they were.
 */
enum slc_status slc_relabel_rows(const struct slc_store *store,
                                 unsigned mode,
                                 enum slc_row_order to,
                                 struct slc_matrix *matrix,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Reads what the indices of the store are in the input, of every relabelled mode but `mode`:
 * index[n] points into labels[n]; those of other modes stay as they are. Memory:
 * slc_relabel_all_bytes. Owns: the caller destroys the labels, all zero before, also after an
 * error. Errors: as slc_relabel_rows.
 */
enum slc_status slc_relabel_names(const struct slc_store *store,
                                  unsigned mode,
                                  struct slc_labels labels[SLC_MAX_ORDER],
                                  const uint32_t *index[SLC_MAX_ORDER],
                                  struct slc_error *err) SLC_NODISCARD;

/* For the longest relabelled mode of this layout; 0 where no mode is relabelled. */
uint64_t slc_relabel_memory_bytes(const struct slc_layout_info *info);
/* For all of them at the same time. */
uint64_t slc_relabel_all_bytes(const struct slc_layout_info *info);

#endif
