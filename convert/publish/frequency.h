/* Computes the labels (new numbers of the indices) of a mode by descending frequency. */
#ifndef SLC_CONVERT_FREQUENCY_H
#define SLC_CONVERT_FREQUENCY_H

#include "base/error/error.h"
#include "storage/manifest/labels.h"

#include <stdbool.h>

/* On entry, label[i] is the number of nonzeros with index i, capped at UINT32_MAX. On return,
 * label[i] is the position of i in the order of descending counts; equal counts are ordered by
 * index. *identity is true if every index keeps its number. Cost: reads the labels twice. Memory:
 * slc_frequency_memory_bytes. Errors: SLC_ERR_MEMORY; the labels are then still counts. */
enum slc_status slc_frequency_labels(struct slc_labels *labels,
                                     bool *identity,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes that slc_frequency_labels needs for a tensor with `nnz` nonzeros. */
uint64_t slc_frequency_memory_bytes(uint64_t nnz);

#endif
