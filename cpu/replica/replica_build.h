/*
 * Building copies; private to cpu/replica/. replica_split.c cuts a mode into pieces, replica_form.c
 * decides what they are to look like, replica_order.c sorts one into a slc_replica_order, and
 * replica_chunk.c writes its chunks.
 */
#ifndef SLC_CPU_REPLICA_BUILD_H
#define SLC_CPU_REPLICA_BUILD_H

#include "cpu/replica/replica.h"

#include <string.h>

struct slc_cpu_backend;

/* One piece in so many, at most, is computed from to try forms. */
enum { SLC_REPLICA_TRIED_SHARE = 4 };

/* Part of a run, or all of it, within a chunk. */
struct slc_replica_run {
    uint32_t first; /* in the order of the piece */
    uint32_t nnz;
};

/* One worker's. */
struct slc_replica_scratch {
    uint64_t *keys[2];               /* SLC_REPLICA_PIECE_NNZ each */
    uint32_t *run_begin;             /* SLC_REPLICA_PIECE_NNZ + 1 */
    struct slc_replica_run *runs[2]; /* SLC_REPLICA_CHUNK_NNZ each */
};
struct slc_replica_scratch slc_replica_scratch_of(const struct slc_replica *replica,
                                                  unsigned worker);

/* A piece in its order; arrays belong to the scratch. */
struct slc_replica_order {
    const unsigned char *records; /* of the piece, unsorted */
    const uint64_t *keys;         /* in order; the low 16 bits say which record */
    uint32_t nnz;
    uint32_t run_count; /* 0: none */
    const uint32_t *run_begin;
};

static inline uint32_t slc_replica_coordinate(const unsigned char *record, unsigned mode)
{
    uint32_t value;

    memcpy(&value, record + mode * sizeof value, sizeof value);
    return value;
}

/*
 * Brings the records of one mode together by range, in replica->sorted, and makes ranges, items and
 * pieces (without chunks). Errors: SLC_ERR_MEMORY, those of starting threads.
 */
enum slc_status
slc_replica_split(struct slc_replica *replica, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* Pieces of a mode that stand for all: `count` of them, evenly spread. */
struct slc_replica_sample {
    uint64_t count;
    uint64_t all;
};

static inline uint64_t slc_replica_sampled(const struct slc_replica_sample *sample, uint64_t s)
{
    return s * sample->all / sample->count;
}

/* A form that may serve a mode. */
struct slc_replica_candidate {
    uint32_t varying;
    uint64_t runs; /* of the sample */
    double cost;   /* by the model, of a nonzero; after a trial, of the sample */
};

/*
 * Decides the form of a mode's copy, where `tried_by` is not NULL by computing with its job from
 * those that look best. Errors: SLC_ERR_MEMORY, those of starting threads.
 */
enum slc_status slc_replica_choose_form(struct slc_replica *replica,
                                        unsigned mode,
                                        struct slc_cpu_backend *tried_by,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Computes from a sample of cpu->replica's mode in each of `count` >= 1 forms, with the factors and
 * rank of cpu->job, and brings the fastest to the front. Writes to the memory of the mode's chunks.
 * Errors: SLC_ERR_MEMORY, those of starting threads.
 */
enum slc_status slc_replica_try(struct slc_cpu_backend *cpu,
                                unsigned mode,
                                const struct slc_replica_sample *sample,
                                struct slc_replica_candidate *candidates,
                                unsigned count,
                                struct slc_error *err) SLC_NODISCARD;

/* The mode whose rows come in order where `varying` vary. */
unsigned slc_replica_first_mode(const struct slc_replica *replica, unsigned mode, uint32_t varying);

/* Sorts a piece of a mode's copy for runs in which `varying` vary. */
void slc_replica_sort(const struct slc_replica *replica,
                      unsigned mode,
                      uint32_t varying,
                      const struct slc_replica_piece *piece,
                      const struct slc_replica_scratch *scratch,
                      struct slc_replica_order *order);

/*
 * Sorts copy->pieces, of a mode, in the form of the copy and writes their chunks. Errors: those of
 * starting threads.
 */
enum slc_status slc_replica_write_chunks(struct slc_replica *replica,
                                         unsigned mode,
                                         struct slc_replica_mode *copy,
                                         struct slc_error *err) SLC_NODISCARD;

#endif
