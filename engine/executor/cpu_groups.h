/*
 * A decomposition by several groups of CPU workers that act as devices (AMPED): each group has a
 * copy of the factors in memory of its own and its own threads, computes the MTTKRP from the blocks
 * it owns, solves for the rows of the factor it owns, and sends them round a ring
 * (engine/executor/exchange.h), so that all copies are equal again. The first group works on the
 * host's factors and output.
 *
 * One stream serves all groups: its ring of slots, its reader and its cache are what the machine's
 * memory and drive allow, however many groups there are. Its workers belong to groups, and take
 * tiles of their group's blocks alone. A group is a backend (base/backend.h).
 *
 * Order: with SLC_SPLIT_PARTITIONS a row of an MTTKRP has, at its owner, the bits of an MTTKRP by
 * one group, and an update gives the same bits for any number of groups and threads: those of
 * slc_dense_update but for sums->inner, which is added up by partitions, singular V, and ranks
 * beyond 64.
 */
#ifndef SLC_ENGINE_CPU_GROUPS_H
#define SLC_ENGINE_CPU_GROUPS_H

#include "engine/executor/executor.h"

/* What groups take beside factors and outputs, for plans; UINT64_MAX on overflow. */
uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts,
                                     const struct slc_plan *plan);

/* One group's copy of a factor. Borrowed; for tests. Needs: an executor of groups. */
const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_executor *executor, unsigned group, unsigned mode);

#endif
