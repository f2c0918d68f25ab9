/* Numbers by descending frequency, the labels of a relabelled mode. */
#ifndef SLC_CONVERT_FREQUENCY_H
#define SLC_CONVERT_FREQUENCY_H

#include "base/error/error.h"
#include "storage/manifest/labels.h"

#include <stdbool.h>

/*
 * On entry label[i] is the number of nonzeros of index i, capped at UINT32_MAX; on return it is the
 * rank of i among all indices by descending count, equal counts by index. *identity: every index
 * keeps its number. Cost: two passes over the labels. Memory: slc_frequency_memory_bytes. Errors:
 * SLC_ERR_MEMORY; the labels are then still counts.
 */
enum slc_status slc_frequency_labels(struct slc_labels *labels,
                                     bool *identity,
                                     struct slc_error *err) SLC_NODISCARD;

/* For a tensor of `nnz` nonzeros. */
uint64_t slc_frequency_memory_bytes(uint64_t nnz);

#endif
