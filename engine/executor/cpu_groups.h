/*
 * A decomposition by several groups of CPU workers that act as devices (AMPED): each group has a
 * copy of the factors in memory of its own and its own threads, computes the MTTKRP from the blocks
 * it owns, solves for the rows of the factor it owns, and sends them round a ring
 * (engine/executor/exchange.h), so that all copies are equal again.
 *
 * One stream serves all groups: its ring of slots, its reader and its cache are what the machine's
 * memory and drive allow, however many groups there are. Its workers belong to groups, and take
 * tiles of their group's blocks alone. A group is a backend (base/backend.h).
 */
#ifndef SLC_ENGINE_CPU_GROUPS_H
#define SLC_ENGINE_CPU_GROUPS_H

#include "base/backend.h"
#include "cpu/dense/dense.h"
#include "engine/executor/group_division.h"
#include "engine/plan/plan.h"
#include "engine/stream/stream.h"

#include <stdint.h>

/*
 * What one member of a group has done since it was created: a group of CPU workers, or a GPU of
 * several (engine/executor/gpu_group.h). Seconds of threads are means over its threads.
 */
struct slc_member_stats {
    uint64_t nnz;           /* that it multiplied */
    uint64_t bytes;         /* of the blocks these lay in, encoded */
    double compute_seconds; /* of MTTKRPs, decoding included */
    double wait_seconds;    /* in passes: for blocks, opening them, and for other devices */
    double reduce_seconds;  /* adding up what the devices have of its rows (SLC_SPLIT_NNZ) */
    double solve_seconds;   /* for its rows */
    uint64_t copied_bytes;  /* factors that were copied to it at the start */
    double copy_seconds;
    uint64_t sent_bytes;          /* to the next device */
    double exchange_seconds;      /* in the ring, but for */
    double exchange_wait_seconds; /* waiting for a neighbour */
};

/* What groups are made of; everything is borrowed. */
struct slc_cpu_groups_setup {
    const struct slc_layouts *layouts;   /* of the stream */
    const struct slc_plan *plan;         /* made for `cpu_groups` of 1 or more */
    struct slc_backend *const *backends; /* plan->cpu_groups of them */
    struct slc_dense *dense;             /* for plan->threads; NULL where nothing is solved */
    struct slc_matrix *factors;          /* one per mode: the first group's, which works on it */
    const struct slc_buffer *output;     /* the first group's, for the longest mode */
    uint32_t rank;
};

struct slc_cpu_groups;

/*
 * Divides the layouts of the modes that are computed and takes the other groups' memory.
 * Owns: slc_cpu_groups_destroy, which takes NULL. Errors: SLC_ERR_USAGE for a plan without groups;
 * SLC_ERR_MEMORY.
 */
enum slc_status slc_cpu_groups_create(const struct slc_cpu_groups_setup *setup,
                                      struct slc_cpu_groups **groups,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_cpu_groups_destroy(struct slc_cpu_groups *groups);
/* What the above takes beside factors and outputs, for plans; UINT64_MAX on overflow. */
uint64_t slc_cpu_groups_memory_bytes(const struct slc_layouts *layouts,
                                     const struct slc_plan *plan);

/* Copies all factors of the first group to the others. Errors: those of rows_write. */
enum slc_status slc_cpu_groups_load(struct slc_cpu_groups *groups,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * The MTTKRP of `mode` over the stream, each group its share into its own output. Order: with
 * SLC_SPLIT_PARTITIONS a row has, at its owner, the bits of an MTTKRP by one group, whatever the
 * number of groups and threads. Errors: those of the stream and of any backend, which end the pass
 * for all; outputs are then undefined, factors as they were.
 */
enum slc_status slc_cpu_groups_mttkrp(struct slc_cpu_groups *groups,
                                      struct slc_stream *stream,
                                      unsigned mode,
                                      const volatile int *stop,
                                      void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                      void *progress_context,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * After it: slc_dense_update of every copy of factor `mode`, rows by their owners, and the
 * exchange. Order: with SLC_SPLIT_PARTITIONS the same bits for any number of groups and threads,
 * and those of slc_dense_update but for sums->inner, which is added up by partitions, singular V,
 * and ranks beyond 64. Errors: SLC_ERR_SYSTEM for want of threads, those of copying rows; the
 * factor is then undefined.
 */
enum slc_status slc_cpu_groups_update(struct slc_cpu_groups *groups,
                                      const struct slc_solver *solver,
                                      unsigned mode,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err) SLC_NODISCARD;

/* After slc_cpu_groups_mttkrp: every group's output has all rows. Errors as above, of the output.
 */
enum slc_status slc_cpu_groups_gather(struct slc_cpu_groups *groups,
                                      unsigned mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* slc_dense_scale of every copy of a factor. */
enum slc_status slc_cpu_groups_scale(struct slc_cpu_groups *groups,
                                     unsigned mode,
                                     const double *scale,
                                     struct slc_error *err) SLC_NODISCARD;

/* One group's copy of a factor. Borrowed; for tests. */
const struct slc_matrix *
slc_cpu_groups_factor(const struct slc_cpu_groups *groups, unsigned group, unsigned mode);

void slc_cpu_groups_stats(const struct slc_cpu_groups *groups,
                          unsigned group,
                          struct slc_member_stats *stats);

#endif
