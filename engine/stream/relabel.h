/* Permutes rows of relabelled modes. Factors and outputs are computed with rows in the order of the
 * store, but users get them in the order of the input. */
#ifndef SLC_ENGINE_RELABEL_H
#define SLC_ENGINE_RELABEL_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum slc_row_order { SLC_ROWS_OF_STORE, SLC_ROWS_OF_INPUT };

/* Permutes the rows of `matrix` in place to the order `to`: from the order of the input to the
 * order of the store, or back. The matrix has one row per index of `mode`. Does nothing if the mode
 * is not relabelled. Memory: slc_relabel_memory_bytes plus one row during the call. Cost: reads and
 * writes every row once, in random order. Errors: SLC_ERR_DAMAGED with the permutation's file,
 * SLC_ERR_IO, SLC_ERR_MEMORY; the rows are then unchanged. */
enum slc_status slc_relabel_rows(const struct slc_store *store,
                                 unsigned mode,
                                 enum slc_row_order to,
                                 struct slc_matrix *matrix,
                                 struct slc_error *err) SLC_NODISCARD;

/* Reads the map from store indices to input indices of every relabelled mode n except `mode`, and
 * points index[n] to it. index[n] is unchanged for other modes. Memory: slc_relabel_all_bytes.
 * Ownership: labels[] must be all zero before the call; the caller destroys them, even after an
 * error. Errors: those of slc_relabel_rows. */
enum slc_status slc_relabel_names(const struct slc_store *store,
                                  unsigned mode,
                                  struct slc_labels labels[SLC_MAX_ORDER],
                                  const uint32_t *index[SLC_MAX_ORDER],
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes of the permutation of the largest relabelled mode; 0 if no mode is
 * relabelled. */
uint64_t slc_relabel_memory_bytes(const struct slc_layout_info *info);
/* Returns the bytes of the permutations of all relabelled modes together. */
uint64_t slc_relabel_all_bytes(const struct slc_layout_info *info);

#endif
