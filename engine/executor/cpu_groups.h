/*
 * A decomposition by several groups of CPU workers that act as devices ([Wijeratne2025]). Each
 * group has its own threads and, in its own memory, a copy of the factors. A group computes the
 * MTTKRP of the blocks it owns and solves the rows of the factor it owns. The groups then exchange
 * the solved rows in a ring (engine/executor/exchange.h), after which all copies are equal again.
 * The first group has no copies: it uses the caller's factors and output.
 *
 * One stream serves all groups: its slots, reader and cache are limited by the machine's memory and
 * drive, not by the number of groups. Each worker of the stream belongs to a group and computes
 * only tiles of that group's blocks. A group is a backend (base/backend.h).
 *
 * Order: with SLC_SPLIT_PARTITIONS, the owner of an output row computes the same bits as an MTTKRP
 * by one group. An update has the same bits for any number of groups and threads. They are the bits
 * of slc_dense_update, except for sums->inner, which is added by partitions, for singular V, and
 * for ranks above 64.
 */
#ifndef SLC_ENGINE_CPU_GROUPS_H
#define SLC_ENGINE_CPU_GROUPS_H

#include "engine/executor/executor.h"

/* Bytes of the groups in addition to the factors and outputs, for plans; UINT64_MAX on overflow. */
uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts,
                                     const struct slc_plan *plan);

/* Returns one group's copy of a factor. Borrowed; for tests. Needs: an executor of groups. */
const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_executor *executor, unsigned group, unsigned mode);

#endif
