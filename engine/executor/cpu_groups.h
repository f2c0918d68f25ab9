/*
 * A decomposition by several groups of CPU workers that act as devices ([Wijeratne2025]). Each
 * group has its own threads and, in its own memory, a copy of the factors. It computes the MTTKRP
 * of the blocks it owns, solves the rows of the factor it owns, and exchanges them in a ring
 * (engine/executor/exchange.h) so that all copies are equal again. The first group uses the host's
 * factors and output.
 *
 * One stream serves all groups: its slots, reader and cache are limited by the machine's memory and
 * drive, not by the number of groups. Each of its workers belongs to a group and computes only
 * tiles of that group's blocks. A group is a backend (base/backend.h).
 *
 * Order: with SLC_SPLIT_PARTITIONS a row of an MTTKRP has, at its owner, the bits of an MTTKRP by
 * one group, and an update has the same bits for any number of groups and threads: those of
 * slc_dense_update except for sums->inner, which is added by partitions, singular V, and ranks
 * above 64.
 */
#ifndef SLC_ENGINE_CPU_GROUPS_H
#define SLC_ENGINE_CPU_GROUPS_H

#include "engine/executor/executor.h"

/* Bytes of groups in addition to factors and outputs, for plans; UINT64_MAX on overflow. */
uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts,
                                     const struct slc_plan *plan);

/* One group's copy of a factor. Borrowed; for tests. Needs: an executor of groups. */
const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_executor *executor, unsigned group, unsigned mode);

#endif
