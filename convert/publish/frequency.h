/* Computes the labels of a relabelled mode: numbers by descending frequency. */
#ifndef SLC_CONVERT_FREQUENCY_H
#define SLC_CONVERT_FREQUENCY_H

#include "base/error/error.h"
#include "storage/manifest/labels.h"

#include <stdbool.h>

/*
 * On entry, label[i] is the number of nonzeros with index i, capped at UINT32_MAX. On return,
 * label[i] is the rank of i by descending count; equal counts are ranked by index. *identity is
 * true if every index keeps its number. Cost: two passes over the labels. Memory:
 * slc_frequency_memory_bytes. Errors: SLC_ERR_MEMORY; the labels are then still counts.
 */
enum slc_status slc_frequency_labels(struct slc_labels *labels,
                                     bool *identity,
                                     struct slc_error *err) SLC_NODISCARD;

/* Memory of slc_frequency_labels for a tensor with `nnz` nonzeros. */
uint64_t slc_frequency_memory_bytes(uint64_t nnz);

#endif
