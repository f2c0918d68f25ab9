/* Runs a decomposition on several groups of CPU workers that act as devices ([Wijeratne2025]). Each
 * group has its own threads. The first group uses the caller's factors and output, and every other
 * group has copies of the factors and an output in its own memory. A group computes the MTTKRP of
 * the blocks that it owns, and solves the factor rows that it owns. The groups then exchange the
 * solved rows in a ring (engine/executor/exchange.h), after which the factors of all groups are
 * equal again.
 *
 * One stream serves all groups: its slots, reader and cache are limited by the machine's memory and
 * drive, not by the number of groups. Each worker of the stream belongs to a group and computes
 * only tiles of that group's blocks. A group is a backend (base/backend.h).
 *
 * Order: with SLC_SPLIT_PARTITIONS, the owner of an output row computes the same bits as an MTTKRP
 * by one group, and an update has the same bits for any number of groups and threads. An update
 * also has the same bits as slc_dense_update, with three exceptions: sums->inner, which is added by
 * partitions; a singular V; and ranks above 64. */
#ifndef SLC_ENGINE_CPU_GROUPS_H
#define SLC_ENGINE_CPU_GROUPS_H

#include "engine/executor/executor.h"

/* Returns the bytes that groups need in addition to the factors and outputs; UINT64_MAX on
 * overflow. */
uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts,
                                     const struct slc_plan *plan);

/* Returns one group's copy of a factor; only for tests. Borrowed. Needs: `executor` runs groups. */
const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_executor *executor, unsigned group, unsigned mode);

#endif
