/* Functions that build copies, private to cpu/replica/. replica_split.c divides a mode into pieces,
 * replica_form.c chooses the form of the mode's copy, replica_order.c sorts a piece into a
 * slc_replica_order, and replica_chunk.c writes its chunks. */
#ifndef SLC_CPU_REPLICA_BUILD_H
#define SLC_CPU_REPLICA_BUILD_H

#include "cpu/replica/replica.h"

#include <string.h>

struct slc_cpu_backend;

/* Reciprocal of the largest fraction of pieces that are used to time forms. */
enum { SLC_REPLICA_TRIED_SHARE = 4 };

/* A run, or the part of a run that is in a chunk. */
struct slc_replica_run {
    uint32_t first; /* index of the first nonzero in the order of the piece */
    uint32_t nnz;
};

/* Scratch of a worker for building copies. */
struct slc_replica_scratch {
    uint64_t *keys[2];               /* SLC_REPLICA_PIECE_NNZ elements each */
    uint32_t *run_begin;             /* SLC_REPLICA_PIECE_NNZ + 1 elements */
    struct slc_replica_run *runs[2]; /* SLC_REPLICA_CHUNK_NNZ elements each */
};
struct slc_replica_scratch slc_replica_scratch_of(const struct slc_replica *replica,
                                                  unsigned worker);

/* A sorted piece; the arrays are in the scratch. */
struct slc_replica_order {
    const unsigned char *records; /* records of the piece, unsorted */
    /* keys in sorted order; the low 16 bits are the index of the record */
    const uint64_t *keys;
    uint32_t nnz;
    uint32_t run_count; /* 0 if there are no runs */
    const uint32_t *run_begin;
};

static inline uint32_t slc_replica_coordinate(const unsigned char *record, unsigned mode)
{
    uint32_t value;

    memcpy(&value, record + mode * sizeof value, sizeof value);
    return value;
}

/* Groups the records of one mode by range in replica->sorted, and creates ranges, items and pieces
 * (without chunks). Errors: SLC_ERR_MEMORY, those of slc_team_run. */
enum slc_status
slc_replica_split(struct slc_replica *replica, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* A sample of `count` evenly spaced pieces of a mode. */
struct slc_replica_sample {
    uint64_t count;
    uint64_t all;
};

static inline uint64_t slc_replica_sampled(const struct slc_replica_sample *sample, uint64_t s)
{
    return s * sample->all / sample->count;
}

/* A candidate form of a mode's copy. */
struct slc_replica_candidate {
    uint32_t varying;
    uint64_t runs; /* number of runs in the sample */
    /* predicted cost per nonzero or, after a trial, the measured cost of the sample */
    double cost;
};

/* Chooses the form of a mode's copy. If `tried_by` is not NULL, this backend's job is used to time
 * the forms with the lowest predicted costs. Errors: SLC_ERR_MEMORY, those of slc_team_run. */
enum slc_status slc_replica_choose_form(struct slc_replica *replica,
                                        unsigned mode,
                                        struct slc_cpu_backend *tried_by,
                                        struct slc_error *err) SLC_NODISCARD;

/* Times each of `count` >= 1 candidates on a sample of the mode of cpu->replica, with the factors
 * and rank of cpu->job, and moves the fastest candidate to the front. Overwrites the memory of the
 * mode's chunks.
 * Errors: SLC_ERR_MEMORY, those of slc_team_run. */
enum slc_status slc_replica_try(struct slc_cpu_backend *cpu,
                                unsigned mode,
                                const struct slc_replica_sample *sample,
                                struct slc_replica_candidate *candidates,
                                unsigned count,
                                struct slc_error *err) SLC_NODISCARD;

/* Returns the most significant mode of the sort keys, whose rows are accessed in order, for runs in
 * which the modes of the set `varying` vary. */
unsigned slc_replica_first_mode(const struct slc_replica *replica, unsigned mode, uint32_t varying);

/* Sorts a piece of a mode's copy into runs in which the modes of the set `varying` vary. */
void slc_replica_sort(const struct slc_replica *replica,
                      unsigned mode,
                      uint32_t varying,
                      const struct slc_replica_piece *piece,
                      const struct slc_replica_scratch *scratch,
                      struct slc_replica_order *order);

/* Sorts copy->pieces of a mode and writes their chunks. Errors: those of slc_team_run. */
enum slc_status slc_replica_write_chunks(struct slc_replica *replica,
                                         unsigned mode,
                                         struct slc_replica_mode *copy,
                                         struct slc_error *err) SLC_NODISCARD;

#endif
