/*
 * State of a running MTTKRP; shared by the files that make up the CPU backend.
 *
 *   mttkrp_cost.c    strategy from the shape of a job
 *   mttkrp_plan.c    scratch from the shape of a job
 *   mttkrp_check.c   what a job and its tiles have to be
 *   mttkrp.c         begin, tile, end of a job
 *   mttkrp_state.c   what a job has summed up, to be kept and gone on with
 *   mttkrp_fibers.c  tiles that come in runs of fibers
 *   private.c        copies of the output per worker
 *   split_rows.c     rows that several partitions of a sorted layout share
 *   partial.c        tile-local sums: a dense window of rows, or the tile sorted by output row
 *   commit.c         adding tile-local sums to the output, under locks or in tile order
 *   mttkrp_trial.h   two strategies that take turns on the first tiles
 *
 * cpu/replica/ computes from copies in memory in place of a stream of tiles; cpu/backend.c has the
 * table of base/backend.h.
 */
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
    /* Stripes of output rows that tiles pass one behind the other under SLC_CONFLICT_ORDERED. */
    SLC_ORDER_STRIPES = 64
};

/*
 * Output rows of a tile summed before they are committed: a second-level cache. Twice as much
 * gained nothing, half of it sorted tiles that now are dense (6.8 against 4.6 ns a nonzero,
 * fb15k-237).
 */
#define SLC_WINDOW_BYTES (UINT64_C(2) << 20)

/* Byte sizes and places of one worker's scratch; offsets are multiples of the page. */
struct slc_mttkrp_layout {
    uint64_t window_rows;  /* rows of the window; at least 1 */
    uint32_t tile_nnz_max; /* nonzeros that staging and sorting have room for */
    uint64_t window_at;    /* tile-local sums: window_rows rows */
    uint64_t rows_at;      /* u32 per window row: which row it is */
    uint64_t staged_at;    /* u32 offsets, tile_nnz_max per mode */
    uint64_t values_at;    /* tile_nnz_max values */
    uint64_t sort_at;      /* two arrays of u64, tile_nnz_max each */
    uint64_t gather_at;    /* one chunk in sorted order: u32 per mode and for rows, values */
    uint64_t private_at;   /* a copy of the output's sums */
    uint64_t pieces_at;    /* a byte per piece of the copy */
    uint64_t piece_rows;   /* of a copy; at least 1 */
    unsigned first_copy;   /* workers before this one add to the output itself */
    uint64_t worker_bytes; /* all of it */
    uint64_t wide_bytes;   /* f32 only: the output's sums in f64, shared, before the workers' areas;
                              0 where sums are added to the output as they come */
    /* ROWS: shared, behind the wide sums. Per partition the row it continues, and its sums. */
    uint64_t split_rows_at, split_sums_at;
    uint64_t shared_bytes; /* all that lies before the workers' areas */
};

/* Per worker, padded against false sharing. */
struct slc_mttkrp_worker {
    _Alignas(64) bool touched; /* PRIVATE: the map of its copy's pieces is set up */
    uint64_t copied_bytes;     /* PRIVATE: of the pieces that hold sums */
    bool holds_stripe;         /* ORDERED: may add to `stripe` */
    unsigned stripe;
};

struct slc_cpu_backend {
    struct slc_backend backend; /* first: the engine's handle */
    struct slc_mttkrp_job job;
    bool running;
    enum slc_conflict conflict;
    const struct slc_kernel_set *kernels;
    enum slc_value_type type;
    uint64_t stride;     /* bytes from row to row of all matrices */
    uint64_t sum_stride; /* the same of sums, which are f64 */
    unsigned char *sums; /* where sums end up: the output, or the wide copy of an f32 output */
    bool prefetch;
    struct slc_mttkrp_layout layout;
    struct slc_buffer own;     /* holds this struct */
    struct slc_buffer scratch; /* kept from job to job while large enough */
    struct slc_mttkrp_worker workers[SLC_MAX_THREADS];
    struct slc_trial trial;
    struct slc_replica *replica; /* copies of the tensor; lies in `own` */
    /* Order 1 has no factors; this row of ones (zeros in the padding) stands in for one. */
    _Alignas(64) unsigned char ones[SLC_MAX_RANK * 8];

    /* LOCKED */
    uint64_t lock_rows; /* consecutive rows under one lock */
    pthread_mutex_t locks[SLC_LOCK_STRIPES];

    /* ORDERED: tiles that have passed each stripe; falls from stripe to stripe, never below 0. */
    uint64_t order_rows;
    uint64_t passed[SLC_ORDER_STRIPES];
    unsigned waiters;
    bool aborted;
    pthread_mutex_t order_mutex;
    pthread_cond_t order_changed;
};

/* Sums of some output rows, in ascending order, that one tile adds. */
struct slc_partial {
    uint64_t corner;      /* output row of offset 0 */
    const uint32_t *rows; /* offset of each row, or NULL when they are 0, 1, 2 .. */
    uint64_t count;
    const unsigned char *sums; /* count rows of f64, `sum_stride` bytes apart */
};

/* SLC_ERR_USAGE, saying what does not fit. */
enum slc_status slc_mttkrp_check_job(const struct slc_mttkrp_job *job,
                                     struct slc_error *err) SLC_NODISCARD;
/* Of a tile alone: whether the matrices of a job have the rows that it reaches. */
enum slc_status slc_mttkrp_check_reach(const struct slc_mttkrp_job *job,
                                       const struct slc_tile_view *tile,
                                       struct slc_error *err) SLC_NODISCARD;

/* The strategy of a job on elements of `type`, and what it may be worth trying against it. */
void slc_mttkrp_choose(const struct slc_mttkrp_job *job,
                       enum slc_value_type type,
                       uint64_t output_rows,
                       struct slc_conflict_choice *choice);

/*
 * Whether a tile of `tile_nnz` nonzeros that spans `rows` rows is summed in a window as it comes.
 * Zeroing and adding a row that has no nonzero costs about as much as sorting two nonzeros, so that
 * pays where at least every second row is touched on average.
 */
static inline bool slc_mttkrp_dense(uint64_t rows, uint64_t tile_nnz, uint64_t window_rows)
{
    return rows <= window_rows && rows <= (tile_nnz / 2 > 1 ? tile_nnz / 2 : 1);
}

/* Bytes from row to row of matrices, and of sums. */
uint64_t slc_mttkrp_stride(const struct slc_mttkrp_job *job, enum slc_value_type type);
uint64_t slc_mttkrp_sum_stride(const struct slc_mttkrp_job *job, enum slc_value_type type);
/* Scratch of all workers; UINT64_MAX where that cannot be counted. And the pages it lies in. */
uint64_t slc_mttkrp_total_bytes(const struct slc_mttkrp_layout *layout,
                                const struct slc_mttkrp_job *job);
enum slc_pages slc_mttkrp_pages(uint64_t bytes);
/* For the backend table. Without job->output, enough for either type. */
uint64_t slc_mttkrp_scratch_bytes(const struct slc_mttkrp_job *job, uint64_t output_rows);

/* Room for the scratch of one worker. */
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

/* Runs the kernels over all panels of columns; the second decides span->merge_runs itself. */
void slc_mttkrp_accumulate_as(const struct slc_cpu_backend *cpu,
                              const struct slc_mttkrp_span *span);
void slc_mttkrp_accumulate(const struct slc_cpu_backend *cpu, struct slc_mttkrp_span *span);

/* The same for runs, and whether runs of this mean length are worth several sums side by side. */
void slc_mttkrp_accumulate_fibers(const struct slc_cpu_backend *cpu,
                                  const struct slc_fiber_span *span);
bool slc_mttkrp_long_runs(uint32_t nnz, uint32_t runs);
/* The same for groups. */
void slc_mttkrp_accumulate_groups(const struct slc_cpu_backend *cpu,
                                  const struct slc_group_span *span);

/* Columns of a matrix, in bytes of factor rows. Those of sums follow from sum_stride. */
struct slc_columns {
    uint64_t begin, bytes;
};

/* All columns; and the share of a worker under COLUMNS, in whole cache lines: maybe none. */
static inline struct slc_columns slc_all_columns(const struct slc_cpu_backend *cpu)
{
    return (struct slc_columns){0, cpu->stride};
}
struct slc_columns slc_worker_columns(const struct slc_cpu_backend *cpu, unsigned worker);

/* Where the sums of `columns` begin in a row of sums that begins at `row`. */
static inline unsigned char *
slc_columns_of(const struct slc_cpu_backend *cpu, struct slc_columns columns, unsigned char *row)
{
    return row + columns.begin * (cpu->sum_stride / cpu->stride);
}

/* Fills in what is the same for all chunks of a tile. `output` is the row of the tile's corner. */
void slc_mttkrp_span_init(const struct slc_cpu_backend *cpu,
                          const struct slc_tile_view *tile,
                          unsigned char *output,
                          struct slc_mttkrp_span *span);

/*
 * Adds chunks of a tile in runs of fibers, up to its end or the first chunk whose runs are too
 * short to pay; the rest is left to the caller. Needs tile->next_fibers and an order of 2 or more.
 */
enum slc_status slc_mttkrp_add_fibers(const struct slc_cpu_backend *cpu,
                                      struct slc_tile_view *tile,
                                      unsigned char *output,
                                      struct slc_columns columns,
                                      struct slc_error *err) SLC_NODISCARD;

/* Adds some columns of a whole tile straight to `output`, the row of the tile's corner. */
enum slc_status slc_mttkrp_add_tile(const struct slc_cpu_backend *cpu,
                                    struct slc_tile_view *tile,
                                    unsigned char *output,
                                    struct slc_columns columns,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * PRIVATE: row 0 of the sums that the worker adds a tile to, with the rows that the tile reaches
 * set up. And adding all copies up: also the rounding of a wide copy to the f32 output.
 */
unsigned char *
slc_private_sums(struct slc_cpu_backend *cpu, unsigned worker, const struct slc_tile_view *tile);
enum slc_status slc_private_finish(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;
/* The same between two tiles: whoever adds another one begins with an empty copy. */
enum slc_status slc_private_gather(struct slc_cpu_backend *cpu,
                                   struct slc_error *err) SLC_NODISCARD;
/* The rounding alone, of rows [begin, end). */
void slc_private_round(const struct slc_cpu_backend *cpu, uint64_t begin, uint64_t end);

/*
 * ROWS: before any tile; the sums of the row of a tile's corner; and adding the sums of split
 * rows up, in the order of their partitions.
 */
void slc_split_rows_begin(struct slc_cpu_backend *cpu);
unsigned char *slc_split_rows_sums(struct slc_cpu_backend *cpu, const struct slc_tile_view *tile);
void slc_split_rows_finish(struct slc_cpu_backend *cpu);
/* Adds the memory that holds all of them to a state; and looks whether what it holds may be. */
void slc_split_rows_state(struct slc_cpu_backend *cpu, struct slc_mttkrp_state *state);
enum slc_status slc_split_rows_check(const struct slc_cpu_backend *cpu,
                                     struct slc_error *err) SLC_NODISCARD;
/* The operations of the table on such sums. */
bool slc_split_rows_take(struct slc_backend *backend,
                         uint64_t partition,
                         uint64_t *row,
                         double *sums);
void slc_split_rows_add(struct slc_backend *backend, uint64_t row, const double *sums);

/* Sums a tile up row by row and commits the sums (LOCKED and ORDERED). */
enum slc_status slc_mttkrp_partial_tile(struct slc_cpu_backend *cpu,
                                        unsigned worker,
                                        struct slc_tile_view *tile,
                                        struct slc_error *err) SLC_NODISCARD;

/* Adds rows of a tile to the output; a tile's calls come in ascending row order. */
enum slc_status slc_mttkrp_commit(struct slc_cpu_backend *cpu,
                                  unsigned worker,
                                  uint64_t ordinal,
                                  const struct slc_partial *partial,
                                  struct slc_error *err) SLC_NODISCARD;

/* Says that tile `ordinal` has no more rows (ORDERED; nothing to do for LOCKED). */
enum slc_status slc_mttkrp_commit_end(struct slc_cpu_backend *cpu,
                                      unsigned worker,
                                      uint64_t ordinal,
                                      struct slc_error *err) SLC_NODISCARD;

/* Takes over a job that has been checked; its scratch follows. */
void slc_mttkrp_set_job(struct slc_cpu_backend *cpu, const struct slc_mttkrp_job *job);
/* Has cpu->scratch hold `bytes` bytes or more; what it held is lost. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_mttkrp_reserve(struct slc_cpu_backend *cpu,
                                   uint64_t bytes,
                                   struct slc_error *err) SLC_NODISCARD;

/* The operations of the table, by whose names base/backend.h describes them. */
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
