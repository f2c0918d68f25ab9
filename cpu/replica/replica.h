/*
 * Copies of a tensor in memory, one per mode, in which every row of the output has one owner.
 *
 *   replica.c         takes in decoded tiles, builds copies, owns their memory
 *   replica_split.c   one mode: ranges of rows and who computes them; nonzeros brought together
 *   replica_form.c    one mode: which modes vary within its runs, by a cost model
 *   replica_trial.c   one mode: and by computing from some of its pieces
 *   replica_order.c   one mode: the order of nonzeros within a piece
 *   replica_chunk.c   one mode: pieces written as chunks
 *   replica_mttkrp.c  the MTTKRP
 *
 * The rows of the output are cut into ranges of about equally many nonzeros; a range is computed by
 * one worker and its rows are written once, without locks or copies. Ranges with too many nonzeros
 * (short modes, heavy rows) are cut into several items with windows of their own, which the last
 * one to finish adds up. Within a range nonzeros are sorted in pieces that fit the second-level
 * cache, in one of several forms (replica_form.c chooses): plain, or in runs that agree in some
 * modes while the others vary. Along one mode runs are fibers (struct slc_fiber_span); where two or
 * more vary, the output's is among those that agree, and a run is summed in registers and
 * multiplied by the rows that it shares at its end (struct slc_group_span). Runs of equal length
 * stand together, so that the loop over a run ends where the processor expects it.
 *
 * Sources: owned row ranges are AMPED's partitions of output rows (section 3.2.1); runs are the
 * leaves of SPLATT's trees (Smith et al., IPDPS 2015, section III).
 */
#ifndef SLC_CPU_REPLICA_H
#define SLC_CPU_REPLICA_H

#include "base/backend.h"
#include "base/memory/memory.h"

#include <stdatomic.h>
#include <stdint.h>

struct slc_cpu_backend;

enum {
    SLC_REPLICA_PIECE_NNZ = 32768, /* sorted together: 1.3 MiB with keys and 4 modes */
    SLC_REPLICA_CHUNK_NNZ = 4096,  /* per kernel call; within one, runs are ordered by length */
    SLC_REPLICA_ROWS = 8192,       /* of a range at most: 1 MiB of sums at R = 16 */
    SLC_REPLICA_BUCKETS = 1 << 14, /* of rows, at which ranges are cut */
    SLC_REPLICA_RANGES_PER_WORKER = 16, /* so that the last one does not keep all waiting */
    SLC_REPLICA_SHARES_PER_WORKER = 4   /* items that a range may be cut into, each with a window */
};

/* The form of a copy without runs; that of all others is the set of modes that vary within one. */
#define SLC_REPLICA_PLAIN UINT32_C(0)

/*
 * A chunk: this header, then the values, and with runs the offsets of the modes that vary, one per
 * nonzero, the first nonzero of each run and the count, then the offsets of the modes that a run
 * shares; without runs the offsets of all modes, one per nonzero. Output rows count from the
 * range's first row, others from 0. Chunks of a piece follow one another, each on a cache line of
 * its own.
 */
struct slc_replica_chunk {
    uint32_t nnz;
    uint32_t runs;  /* 0: without */
    uint64_t bytes; /* to the next chunk */
};

struct slc_replica_piece {
    const unsigned char *chunks;
    uint32_t chunk_count;
    /* While building: its records of the mode, and the first row of its range. */
    uint32_t nnz;
    uint64_t first_nnz;
    uint64_t row_begin;
};

struct slc_replica_range {
    uint64_t row_begin, row_end;
    uint64_t nnz;
    uint64_t first_nnz; /* while building: of the mode's records */
    uint64_t first_piece, piece_count;
    uint32_t items;            /* 1: written straight to the output */
    uint64_t window_rows;      /* first row of its windows in the scratch, items > 1 */
    atomic_uint_fast32_t left; /* items to be finished in this MTTKRP */
};

/* What a worker takes at a time. */
struct slc_replica_item {
    uint32_t range;
    uint32_t share; /* 0 .. items - 1 of the range */
    uint64_t first_piece, piece_count;
};

/* One mode's copy. */
struct slc_replica_mode {
    uint32_t varying; /* bit m: mode m varies within a run; SLC_REPLICA_PLAIN: there are none */
    unsigned tried;   /* forms computed from before this one was chosen */
    uint64_t range_count, item_count, piece_count;
    struct slc_replica_range *ranges;
    struct slc_replica_item *items;
    struct slc_replica_piece *pieces;
    uint64_t window_rows; /* of all windows of ranges with several items */
    uint64_t rows_max;    /* of one range */
    struct slc_buffer chunks;
};

struct slc_replica {
    struct slc_tensor_shape shape;
    enum slc_value_type type;
    unsigned workers;
    uint32_t record_bytes;     /* a nonzero while building: u32 coordinates, value */
    struct slc_buffer records; /* in key order */
    struct slc_buffer sorted;  /* by range */
    struct slc_buffer scratch; /* of the workers, for sorting */
    atomic_uint_fast64_t loaded;
    bool begun; /* tiles may come */
    bool ready; /* copies are held */
    struct slc_replica_mode modes[SLC_MAX_ORDER];
};

/* Behind the operations replica_* of base/backend.h, which say what they do. */
uint64_t slc_replica_bytes(const struct slc_tensor_shape *shape,
                           uint32_t rank,
                           enum slc_value_type type,
                           unsigned workers);
enum slc_status slc_replica_begin(struct slc_replica *replica,
                                  const struct slc_tensor_shape *shape,
                                  enum slc_value_type type,
                                  unsigned workers,
                                  struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_replica_add_tile(struct slc_replica *replica,
                                     struct slc_tile_view *tile,
                                     struct slc_error *err) SLC_NODISCARD;
/* `tried_by` may be NULL; else its job says the factors by which forms are tried. */
enum slc_status slc_replica_end(struct slc_replica *replica,
                                struct slc_cpu_backend *tried_by,
                                const struct slc_stop *stop,
                                struct slc_error *err) SLC_NODISCARD;
void slc_replica_drop(struct slc_replica *replica);

/* Scratch of an MTTKRP from copies: windows of the rows that several workers compute. */
uint64_t slc_replica_scratch_bytes(const struct slc_cpu_backend *cpu);

/*
 * Adds pieces of a copy of mode cpu->job.mode to sums that begin with the first row of their range;
 * those of an f32 job are f64 all the same.
 */
void slc_replica_add_pieces(const struct slc_cpu_backend *cpu,
                            const struct slc_replica_mode *copy,
                            uint64_t first_piece,
                            uint64_t piece_count,
                            unsigned char *output);

/* The MTTKRP of cpu->job from its copy. Errors: those of starting threads. */
enum slc_status slc_replica_mttkrp(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;

/* The operations of the table, by whose names base/backend.h describes them. */
enum slc_status slc_backend_replica_begin(struct slc_backend *backend,
                                          const struct slc_tensor_shape *shape,
                                          enum slc_value_type type,
                                          unsigned workers,
                                          struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_backend_replica_tile(struct slc_backend *backend,
                                         unsigned worker,
                                         struct slc_tile_view *tile,
                                         struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_backend_replica_end(struct slc_backend *backend,
                                        const struct slc_matrix *factors,
                                        const struct slc_stop *stop,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_backend_replica_drop(struct slc_backend *backend);
bool slc_backend_replica_form(const struct slc_backend *backend,
                              unsigned mode,
                              struct slc_replica_form *form);
enum slc_status slc_backend_mttkrp_replica(struct slc_backend *backend,
                                           const struct slc_mttkrp_job *job,
                                           struct slc_error *err) SLC_NODISCARD;

/*
 * Whether a mode is so short that all its rows are one range, whose items keep the order of the
 * stream, and with it what neighbours share in modes whose rows exceed the second-level cache. Each
 * item then has a window of all rows: zeroing and adding up one row of one takes as long as some
 * twelve nonzeros. Measured: 32 against 39 ms where others have 200,000 rows (dictionary, mode of
 * 2,720), but 17 against 13 where they have 1,000.
 */
static inline bool
slc_replica_is_short(const struct slc_tensor_shape *shape, unsigned mode, unsigned workers)
{
    const uint64_t windows = (uint64_t)workers * SLC_REPLICA_SHARES_PER_WORKER;
    uint64_t rows_most = 256;

    for (unsigned m = 0; m < shape->order; m++) {
        if (m != mode && shape->dims[m] > SLC_REPLICA_ROWS) {
            rows_most = SLC_REPLICA_ROWS;
        }
    }
    return shape->dims[mode] <= rows_most && shape->dims[mode] * windows <= shape->nnz / 256;
}

/* Whether mode `mode` has an offset per nonzero in a chunk with runs. */
static inline bool slc_replica_varies(uint32_t varying, unsigned mode)
{
    return (varying >> mode & 1) != 0;
}

/* Scratch of one worker while pieces are sorted. */
uint64_t slc_replica_sort_bytes(void);
/* What the chunks of a mode may take; UINT64_MAX where that cannot be counted. */
uint64_t slc_replica_chunks_bytes_max(unsigned order, enum slc_value_type type, uint64_t nnz);

#endif
