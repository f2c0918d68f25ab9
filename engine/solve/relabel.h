/*
 * Row permutations of relabelled modes: factors and outputs are computed in the order of the store
 * and shown to users in the order of the input.
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
 * Permutes the rows of `matrix`, one per index of `mode`, in place, from the other order to the
 * order `to`. Does nothing for a mode that is not relabelled.
 * Memory: slc_relabel_memory_bytes and one row, released before it returns.
 * Cost: reads and writes every row once, at random.
 * Errors: SLC_ERR_DAMAGED naming the permutation's file, SLC_ERR_IO, SLC_ERR_MEMORY; the rows are
 * then unchanged.
 */
enum slc_status slc_relabel_rows(const struct slc_store *store,
                                 unsigned mode,
                                 enum slc_row_order to,
                                 struct slc_matrix *matrix,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Reads the map from store indices to input indices of every relabelled mode except `mode`:
 * index[n] points into labels[n]; elements of `index` for other modes are unchanged. Memory:
 * slc_relabel_all_bytes. Owns: labels must be all zero before; the caller destroys them, also after
 * an error. Errors: those of slc_relabel_rows.
 */
enum slc_status slc_relabel_names(const struct slc_store *store,
                                  unsigned mode,
                                  struct slc_labels labels[SLC_MAX_ORDER],
                                  const uint32_t *index[SLC_MAX_ORDER],
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes for the largest relabelled mode of this layout; 0 if no mode is relabelled. */
uint64_t slc_relabel_memory_bytes(const struct slc_layout_info *info);
/* Returns the bytes for all relabelled modes at the same time. */
uint64_t slc_relabel_all_bytes(const struct slc_layout_info *info);

#endif
