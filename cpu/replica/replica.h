/* Copies (replicas) of a tensor in memory, one per mode, in which every output row has one owner.
 *   replica.c         collects decoded tiles, builds copies, owns their memory
 *   replica_split.c   one mode: ranges of rows and their workers; groups nonzeros by range
 *   replica_form.c    one mode: chooses the modes that vary within its runs, by a cost model
 *   replica_trial.c   one mode: times forms by computing from some of its pieces
 *   replica_order.c   one mode: the order of nonzeros within a piece
 *   replica_chunk.c   one mode: writes pieces as chunks
 *   replica_mttkrp.c  the MTTKRP
 * The output rows are divided into ranges with about equally many nonzeros. One worker computes a
 * range and writes its rows once, without locks. Ranges with too many nonzeros (small modes, heavy
 * rows) are divided into several items with separate windows; the worker that finishes last adds up
 * the windows. Within a range nonzeros are sorted in pieces that fit the L2 cache. A copy has one
 * of several forms, which replica_form.c chooses: plain, or with runs of nonzeros that agree in
 * some modes while the other modes vary. If one mode varies, runs are fibers (struct
 * slc_fiber_span). If two or more modes vary, the output's mode is not one of them; a run is summed
 * in registers and multiplied at its end by the rows that the run shares (struct slc_group_span).
 * Runs of equal length are consecutive, so that the branch at the end of a run is predicted.
 * Sources: owned row ranges are the partitions of output rows of [Wijeratne2025] section 3.2.1;
 * runs are the leaves of SPLATT's trees ([Smith2015] section III). */
#ifndef SLC_CPU_REPLICA_H
#define SLC_CPU_REPLICA_H

#include "base/backend.h"
#include "base/memory/memory.h"

#include <stdatomic.h>
#include <stdint.h>

struct slc_cpu_backend;

enum {
    /* number of nonzeros that are sorted together; 1.3 MiB with keys and 4 modes */
    SLC_REPLICA_PIECE_NNZ = 32768,
    /* nonzeros per kernel call; runs of a chunk are sorted by length */
    SLC_REPLICA_CHUNK_NNZ = 4096,
    /* maximum number of rows of a range; 1 MiB of sums at R = 16 */
    SLC_REPLICA_ROWS = 8192,
    /* maximum number of buckets of rows; a range consists of whole buckets */
    SLC_REPLICA_BUCKETS = 1 << 14,
    /* target number of ranges per worker, so large that no worker waits long for the last range */
    SLC_REPLICA_RANGES_PER_WORKER = 16,
    SLC_REPLICA_SHARES_PER_WORKER = 4 /* a range has at most this number of items per worker */
};

/* Form of a copy without runs; any other form is the set of modes that vary within a run. */
#define SLC_REPLICA_PLAIN UINT32_C(0)

/* Header of a chunk, which is followed by the values. With runs, three parts follow the values: the
 * offsets of the varying modes, one per nonzero; the first nonzero of each run, and the number of
 * nonzeros; the offsets of the shared modes, one per run. Without runs, the offsets of all modes
 * follow, one per nonzero. Output rows are relative to the range's first row, other offsets are
 * absolute. The chunks of a piece are contiguous; each starts on a cache line. */
struct slc_replica_chunk {
    uint32_t nnz;
    uint32_t runs;  /* 0 if there are no runs */
    uint64_t bytes; /* bytes from this chunk to the next */
};

struct slc_replica_piece {
    const unsigned char *chunks;
    uint32_t chunk_count;
    /* Used while a copy is built: number and first index of the piece's records among the records
     * of the mode, and the first row of the piece's range. */
    uint32_t nnz;
    uint64_t first_nnz;
    uint64_t row_begin;
};

struct slc_replica_range {
    uint64_t row_begin, row_end;
    uint64_t nnz;
    /* used while a copy is built: index of the first record among the mode's records */
    uint64_t first_nnz;
    uint64_t first_piece, piece_count;
    uint32_t items; /* number of items; a single item writes directly to the output */
    /* used if items > 1: position of the range's windows in the scratch, in rows */
    uint64_t window_rows;
    atomic_uint_fast32_t left; /* unfinished items in the current MTTKRP */
};

/* A unit of work of a worker. */
struct slc_replica_item {
    uint32_t range;
    uint32_t share; /* number of the item within its range, 0 .. items - 1 */
    uint64_t first_piece, piece_count;
};

/* One mode's copy. */
struct slc_replica_mode {
    /* bit m is set if mode m varies within a run; SLC_REPLICA_PLAIN if there are no runs */
    uint32_t varying;
    unsigned tried; /* number of forms that were timed before this form was chosen */
    uint64_t range_count, item_count, piece_count;
    struct slc_replica_range *ranges;
    struct slc_replica_item *items;
    struct slc_replica_piece *pieces;
    uint64_t window_rows; /* total rows of the windows of ranges with several items */
    uint64_t rows_max;    /* largest number of rows of a range */
    struct slc_buffer chunks;
};

struct slc_replica {
    struct slc_tensor_shape shape;
    enum slc_value_type type;
    unsigned workers;
    uint32_t record_bytes;     /* bytes of a record, which is a nonzero: u32 coordinates, value */
    struct slc_buffer records; /* records in key order */
    struct slc_buffer sorted;  /* records grouped by range */
    struct slc_buffer scratch; /* scratch of the workers, for sorting */
    atomic_uint_fast64_t loaded;
    bool begun; /* true while tiles may be added */
    bool ready; /* true once copies are available */
    struct slc_replica_mode modes[SLC_MAX_ORDER];
};

/* Implement the operations replica_* of base/backend.h, which documents them. */
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
/* `tried_by` is a backend with a job whose factors are used to time forms, or NULL. */
enum slc_status slc_replica_end(struct slc_replica *replica,
                                struct slc_cpu_backend *tried_by,
                                const struct slc_stop *stop,
                                struct slc_error *err) SLC_NODISCARD;
void slc_replica_drop(struct slc_replica *replica);

/* Returns the bytes of scratch of an MTTKRP from a copy: windows for rows that several workers
 * compute. */
uint64_t slc_replica_scratch_bytes(const struct slc_cpu_backend *cpu);

/* Adds pieces of a copy of mode cpu->job.mode to sums, which begin with the first row of the
 * pieces' range. The sums are f64, also for f32 jobs. */
void slc_replica_add_pieces(const struct slc_cpu_backend *cpu,
                            const struct slc_replica_mode *copy,
                            uint64_t first_piece,
                            uint64_t piece_count,
                            unsigned char *output);

/* Computes the MTTKRP of cpu->job from the copy of its mode. Errors: those of slc_team_run. */
enum slc_status slc_replica_mttkrp(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;

/* Operations of the backend table, documented in base/backend.h. */
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

/* Returns true if a mode is so small that all its rows form one range. The items of this range keep
 * the order of the stream, and therefore the locality of neighbours in modes whose rows exceed the
 * L2 cache. Each item has a window of all rows; zeroing and adding a row of a window costs as much
 * as about twelve nonzeros. Measured times of an MTTKRP for a mode of 2,720 rows: 32 ms with a
 * single range and 39 ms with several ranges if the other modes have 200,000 rows; 17 ms with a
 * single range and 13 ms with several ranges if they have 1,000 rows. */
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

/* Returns true if mode `mode` has an offset per nonzero in a chunk with runs. */
static inline bool slc_replica_varies(uint32_t varying, unsigned mode)
{
    return (varying >> mode & 1) != 0;
}

/* Returns the bytes of scratch of one worker for sorting pieces. */
uint64_t slc_replica_sort_bytes(void);
/* Returns an upper limit for the bytes of a mode's chunks, or UINT64_MAX on overflow. */
uint64_t slc_replica_chunks_bytes_max(unsigned order, enum slc_value_type type, uint64_t nnz);

#endif
