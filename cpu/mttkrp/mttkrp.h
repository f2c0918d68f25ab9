/* State of a running MTTKRP, shared by the files of the CPU backend.
 *   mttkrp_cost.c    strategy from the shape of a job
 *   mttkrp_plan.c    scratch from the shape of a job
 *   mttkrp_check.c   validation of jobs and tiles
 *   mttkrp.c         begin, tile, end of a job
 *   mttkrp_state.c   partial sums of a job, to be saved and resumed
 *   mttkrp_fibers.c  tiles in runs of fibers
 *   private.c        copies of the output per worker
 *   split_rows.c     rows shared by several partitions of a sorted layout
 *   partial.c        tile-local sums: a dense window of rows, or the tile sorted by output row
 *   commit.c         adding tile-local sums to the output, under locks or in tile order
 *   mttkrp_trial.h   two strategies timed against each other in the first pass
 * cpu/replica/ computes from copies in memory instead of a stream of tiles; cpu/backend.c has the
 * table of base/backend.h. */
#ifndef SLC_CPU_MTTKRP_H
#define SLC_CPU_MTTKRP_H

#include "base/backend.h"
#include "base/memory/memory.h"
#include "cpu/kernel/group_kernels.h"
#include "cpu/kernel/kernels.h"
#include "cpu/mttkrp/mttkrp_trial.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_replica; /* cpu/replica/replica.h */

enum {
    SLC_LOCK_STRIPES = 256,
    /* Number of stripes of output rows with SLC_CONFLICT_ORDERED: tiles add to each stripe one
     * after another. */
    SLC_ORDER_STRIPES = 64
};

/* Bytes of output rows that a tile sums before the rows are committed, so that they fit in an L2
 * cache. Twice this size was not faster. Half this size was slower (6.8 ns instead of 4.6 ns per
 * nonzero, fb15k-237), because more tiles exceeded the window and were sorted. */
#define SLC_WINDOW_BYTES (UINT64_C(2) << 20)

/* Sizes and offsets of one worker's scratch in bytes; offsets are page-aligned. */
struct slc_mttkrp_layout {
    uint64_t window_rows;  /* number of rows of the window, at least 1 */
    uint32_t tile_nnz_max; /* maximum number of nonzeros for staging and sorting */
    uint64_t window_at;    /* tile-local sums, window_rows rows */
    uint64_t rows_at;      /* output row of each window row, u32 */
    uint64_t staged_at;    /* offsets, tile_nnz_max u32 per mode */
    uint64_t values_at;    /* tile_nnz_max values */
    uint64_t sort_at;      /* two arrays of u64, tile_nnz_max each */
    /* one chunk in sorted order: offsets of each mode (u32), rows (u32), values */
    uint64_t gather_at;
    uint64_t private_at;   /* a copy of the output's sums */
    uint64_t pieces_at;    /* one byte per piece of the copy */
    uint64_t piece_rows;   /* number of rows of a piece, at least 1 */
    unsigned first_copy;   /* workers with lower numbers add directly to the output */
    uint64_t worker_bytes; /* total bytes per worker */
    /* bytes of the f64 sums of an f32 output, which all workers share and which precede the
     * workers' areas; 0 if sums are added directly to the output */
    uint64_t wide_bytes;
    /* With ROWS: positions of two arrays. For each partition, the first has the row that the
     * partition continues, the second the sums of this row. All workers share the arrays, which
     * follow the wide sums. */
    uint64_t split_rows_at, split_sums_at;
    uint64_t shared_bytes; /* bytes of all areas before the workers' areas */
};

/* State of one worker, padded against false sharing. */
struct slc_mttkrp_worker {
    /* with PRIVATE: the map of the pieces of the worker's copy is initialized */
    _Alignas(64) bool touched;
    uint64_t copied_bytes; /* with PRIVATE: bytes of the pieces of the copy that have sums */
    bool holds_stripe;     /* with ORDERED: only this worker may add to stripe number `stripe` */
    unsigned stripe;
};

struct slc_cpu_backend {
    struct slc_backend backend; /* first member, because the engine has a pointer to it */
    struct slc_mttkrp_job job;
    bool running;
    enum slc_conflict conflict;
    const struct slc_kernel_set *kernels;
    enum slc_value_type type;
    uint64_t stride;     /* bytes from one row to the next of all matrices */
    uint64_t sum_stride; /* bytes from one row to the next of sums, which are f64 */
    unsigned char *sums; /* destination of sums: an f64 output, or the f64 copy of an f32 output */
    bool prefetch;
    struct slc_mttkrp_layout layout;
    struct slc_buffer own;     /* memory of this struct */
    struct slc_buffer scratch; /* kept from job to job while it is large enough */
    struct slc_mttkrp_worker workers[SLC_MAX_THREADS];
    struct slc_trial trial;
    struct slc_replica *replica; /* replicas of the tensor; stored in `own` */
    /* A tensor of order 1 has no factors; this row of ones (zeros in the padding) replaces them. */
    _Alignas(64) unsigned char ones[SLC_MAX_RANK * 8];

    /* Used with LOCKED. */
    uint64_t lock_rows; /* consecutive rows per lock */
    pthread_mutex_t locks[SLC_LOCK_STRIPES];

    /* Used with ORDERED. passed[s] is the number of tiles that have passed stripe s; it never
     * increases from one stripe to the next. */
    uint64_t order_rows;
    uint64_t passed[SLC_ORDER_STRIPES];
    unsigned waiters;
    bool aborted;
    pthread_mutex_t order_mutex;
    pthread_cond_t order_changed;
};

/* Sums that one tile adds to some output rows, in ascending order. */
struct slc_partial {
    uint64_t corner;      /* output row of offset 0 */
    const uint32_t *rows; /* offset of each row, or NULL if offsets are 0, 1, 2, .. */
    uint64_t count;
    const unsigned char *sums; /* `count` rows of f64, one every `sum_stride` bytes */
};

/* Checks a job. Errors: SLC_ERR_USAGE; the message states the mismatch. */
enum slc_status slc_mttkrp_check_job(const struct slc_mttkrp_job *job,
                                     struct slc_error *err) SLC_NODISCARD;
/* Checks that the matrices of a job have all rows that a tile refers to. */
enum slc_status slc_mttkrp_check_reach(const struct slc_mttkrp_job *job,
                                       const struct slc_tile_view *tile,
                                       struct slc_error *err) SLC_NODISCARD;

/* Chooses the strategy of a job for elements of `type`, and a second strategy for which a trial may
 * be worthwhile. */
void slc_mttkrp_choose(const struct slc_mttkrp_job *job,
                       enum slc_value_type type,
                       uint64_t output_rows,
                       struct slc_conflict_choice *choice);

/* Returns true if a tile of `tile_nnz` nonzeros that spans `rows` rows is summed in a window
 * without sorting. Zeroing and adding a row without nonzeros costs about as much as sorting two
 * nonzeros, so a window is worthwhile if the tile has at least two nonzeros per row on average. */
static inline bool slc_mttkrp_dense(uint64_t rows, uint64_t tile_nnz, uint64_t window_rows)
{
    return rows <= window_rows && rows <= (tile_nnz / 2 > 1 ? tile_nnz / 2 : 1);
}

/* Return the bytes from one row to the next of matrices, and of sums. */
uint64_t slc_mttkrp_stride(const struct slc_mttkrp_job *job, enum slc_value_type type);
uint64_t slc_mttkrp_sum_stride(const struct slc_mttkrp_job *job, enum slc_value_type type);
/* Return the bytes of scratch of all workers (UINT64_MAX on overflow), and the page size for this
 * scratch. */
uint64_t slc_mttkrp_total_bytes(const struct slc_mttkrp_layout *layout,
                                const struct slc_mttkrp_job *job);
enum slc_pages slc_mttkrp_pages(uint64_t bytes);
/* Implements scratch_bytes of the backend table. If job->output is NULL, returns the larger of the
 * sizes for f32 and f64. */
uint64_t slc_mttkrp_scratch_bytes(const struct slc_mttkrp_job *job, uint64_t output_rows);

/* Computes the layout of one worker's scratch. */
void slc_mttkrp_layout_init(struct slc_mttkrp_layout *layout,
                            const struct slc_mttkrp_job *job,
                            enum slc_value_type type,
                            enum slc_conflict conflict,
                            uint64_t output_rows);

static inline unsigned char *
slc_mttkrp_scratch(const struct slc_cpu_backend *cpu, unsigned worker, uint64_t at)
{
    return (unsigned char *)cpu->scratch.data + cpu->layout.shared_bytes +
           worker * cpu->layout.worker_bytes + at;
}

/* Run the kernels over all panels of columns. slc_mttkrp_accumulate also sets span->merge_runs. */
void slc_mttkrp_accumulate_as(const struct slc_cpu_backend *cpu,
                              const struct slc_mttkrp_span *span);
void slc_mttkrp_accumulate(const struct slc_cpu_backend *cpu, struct slc_mttkrp_span *span);

/* Runs the kernels for runs of fibers over all panels of columns. slc_mttkrp_long_runs returns true
 * if several partial sums are worthwhile at the mean length of runs, nnz / runs. */
void slc_mttkrp_accumulate_fibers(const struct slc_cpu_backend *cpu,
                                  const struct slc_fiber_span *span);
bool slc_mttkrp_long_runs(uint32_t nnz, uint32_t runs);
/* Runs the kernels for groups over all panels of columns. */
void slc_mttkrp_accumulate_groups(const struct slc_cpu_backend *cpu,
                                  const struct slc_group_span *span);

/* A range of columns of a matrix, in bytes of factor rows. The range in rows of sums follows from
 * sum_stride. */
struct slc_columns {
    uint64_t begin, bytes;
};

/* slc_all_columns returns all columns. slc_worker_columns returns a worker's columns with COLUMNS,
 * which are whole cache lines and may be empty. */
static inline struct slc_columns slc_all_columns(const struct slc_cpu_backend *cpu)
{
    return (struct slc_columns){0, cpu->stride};
}
struct slc_columns slc_worker_columns(const struct slc_cpu_backend *cpu, unsigned worker);

/* Returns the address of the sums of `columns` in the row of sums at `row`. */
static inline unsigned char *
slc_columns_of(const struct slc_cpu_backend *cpu, struct slc_columns columns, unsigned char *row)
{
    return row + columns.begin * (cpu->sum_stride / cpu->stride);
}

/* Sets the span's members that are constant for a tile. `output` is the output row of the tile's
 * corner. */
void slc_mttkrp_span_init(const struct slc_cpu_backend *cpu,
                          const struct slc_tile_view *tile,
                          unsigned char *output,
                          struct slc_mttkrp_span *span);

/* Adds chunks of a tile in runs of fibers, up to the end of the tile or to the first chunk whose
 * runs are too short to be worthwhile. The caller adds the other chunks. Needs tile->next_fibers
 * and an order of at least 2. */
enum slc_status slc_mttkrp_add_fibers(const struct slc_cpu_backend *cpu,
                                      struct slc_tile_view *tile,
                                      unsigned char *output,
                                      struct slc_columns columns,
                                      struct slc_error *err) SLC_NODISCARD;

/* Adds a whole tile directly to the output, but only in `columns`. `output` is the row of the
 * tile's corner. */
enum slc_status slc_mttkrp_add_tile(const struct slc_cpu_backend *cpu,
                                    struct slc_tile_view *tile,
                                    unsigned char *output,
                                    struct slc_columns columns,
                                    struct slc_error *err) SLC_NODISCARD;

/* Used with PRIVATE. slc_private_sums initializes the rows that the tile spans and returns row 0 of
 * the worker's sums. slc_private_finish adds up all copies and rounds the wide sums to an f32
 * output. */
unsigned char *
slc_private_sums(struct slc_cpu_backend *cpu, unsigned worker, const struct slc_tile_view *tile);
enum slc_status slc_private_finish(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;
/* Adds up the copies between two tiles; workers then continue with empty copies. */
enum slc_status slc_private_gather(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;
/* Rounds rows [begin, end) of the wide sums to the f32 output. */
void slc_private_round(const struct slc_cpu_backend *cpu, uint64_t begin, uint64_t end);

/* Used with ROWS. slc_split_rows_begin marks all partitions as not started, before any tile.
 * slc_split_rows_sums returns the sums for the row of a tile's corner. slc_split_rows_finish adds
 * the sums of split rows to the output in the order of their partitions. */
void slc_split_rows_begin(struct slc_cpu_backend *cpu);
unsigned char *slc_split_rows_sums(struct slc_cpu_backend *cpu, const struct slc_tile_view *tile);
void slc_split_rows_finish(struct slc_cpu_backend *cpu);
/* slc_split_rows_state adds the memory of all split rows to a state. slc_split_rows_check checks
 * that the restored contents of this memory are valid. */
void slc_split_rows_state(struct slc_cpu_backend *cpu, struct slc_mttkrp_state *state);
enum slc_status slc_split_rows_check(const struct slc_cpu_backend *cpu,
                                     struct slc_error *err) SLC_NODISCARD;
/* Implement the operations of the backend table on the sums of split rows. */
bool slc_split_rows_take(struct slc_backend *backend,
                         uint64_t partition,
                         uint64_t *row,
                         double *sums);
void slc_split_rows_add(struct slc_backend *backend, uint64_t row, const double *sums);

/* Sums a tile's products per output row, and commits the sums (LOCKED and ORDERED). */
enum slc_status slc_mttkrp_partial_tile(struct slc_cpu_backend *cpu,
                                        unsigned worker,
                                        struct slc_tile_view *tile,
                                        struct slc_error *err) SLC_NODISCARD;

/* Adds rows of a tile to the output. The calls for a tile must be in ascending order of rows. */
enum slc_status slc_mttkrp_commit(struct slc_cpu_backend *cpu,
                                  unsigned worker,
                                  uint64_t ordinal,
                                  const struct slc_partial *partial,
                                  struct slc_error *err) SLC_NODISCARD;

/* Declares that tile `ordinal` has no more rows. Has no effect with LOCKED. */
enum slc_status slc_mttkrp_commit_end(struct slc_cpu_backend *cpu,
                                      unsigned worker,
                                      uint64_t ordinal,
                                      struct slc_error *err) SLC_NODISCARD;

/* Sets the job, which was checked before; the scratch is reserved separately. */
void slc_mttkrp_set_job(struct slc_cpu_backend *cpu, const struct slc_mttkrp_job *job);
/* Grows cpu->scratch to at least `bytes` bytes; its contents are lost. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_mttkrp_reserve(struct slc_cpu_backend *cpu,
                                   uint64_t bytes,
                                   struct slc_error *err) SLC_NODISCARD;

/* Operations of the backend table, documented in base/backend.h. */
enum slc_status slc_mttkrp_begin(struct slc_backend *backend,
                                 const struct slc_mttkrp_job *job,
                                 struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_mttkrp_tile(struct slc_backend *backend,
                                unsigned worker,
                                struct slc_tile_view *tile,
                                struct slc_error *err) SLC_NODISCARD;
void slc_mttkrp_rows(struct slc_backend *backend, uint64_t begin, uint64_t end);
enum slc_status slc_mttkrp_state(struct slc_backend *backend,
                                 struct slc_mttkrp_state *state,
                                 struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_mttkrp_resume(struct slc_backend *backend, struct slc_error *err) SLC_NODISCARD;
void slc_mttkrp_abort(struct slc_backend *backend);
enum slc_status slc_mttkrp_end(struct slc_backend *backend, struct slc_error *err) SLC_NODISCARD;

#endif
