/* State that the source files of row passes share. row_table.c divides modes into positions,
 * row_solve.c computes a row, row_buffer.c holds the decoded nonzeros of a worker, row_gather.c
 * gathers rows of a layout that is not sorted by their mode, and row_pass.c makes the passes.
 * Private to engine/stream. */
#ifndef SLC_ENGINE_ROW_PASS_IMPL_H
#define SLC_ENGINE_ROW_PASS_IMPL_H

#include "base/thread/turns.h"
#include "engine/stream/rows/row_pass.h"

#include <pthread.h>
#include <stdatomic.h>

/* Kernels may read this many bytes after the end of an array. */
#define SLC_ROW_SLACK_BYTES UINT64_C(64)

/* Decoded nonzeros. coords[m] of the mode that is updated may be NULL. */
struct row_arrays {
    uint32_t *coords[SLC_MAX_ORDER];
    double *values;
    const uint32_t *order; /* place of each nonzero in the arrays; NULL: nonzero i is at i */
};

/* A row that is being solved, and the result of the current traversal. */
struct row_job {
    struct slc_row row;
    /* If all nonzeros are in memory, their arrays and the number of the first; otherwise NULL. */
    const struct row_arrays *arrays;
    uint64_t begin;
    bool single;    /* the row has one segment */
    bool measuring; /* true: the traversal computes measures; false: sums */
    double *sums;   /* sum over the segments so far */
    double measures[SLC_ROW_MEASURES];
    uint64_t segments; /* number of segments so far */
    uint64_t visits;   /* traversals so far, including those for measures */
};

/* Traverses all nonzeros of the row: computes its segments and adds them to the job in order. */
typedef enum slc_status row_traverse_fn(struct slc_row_passes *passes,
                                        unsigned worker,
                                        struct row_job *job,
                                        void *how,
                                        struct slc_error *err);

/* Products of the other factors' rows for the nonzeros begin .. end - 1 of `arrays`. */
struct row_products {
    const struct row_arrays *arrays; /* NULL: none */
    uint64_t begin, end;
    const double *values;
    double *products;                /* (end - begin) x width */
    uint32_t *window[SLC_MAX_ORDER]; /* memory for coordinates that are brought into order */
    double *window_values;
};

/* Buffers and state of one worker. Arrays begin at multiples of 64 bytes. */
struct row_worker {
    /* The nonzeros of some tiles in key order, with their rows. */
    struct row_arrays arrays;
    uint32_t nnz;
    /* Memory for orders of the nonzeros, or for the ends of tiles. */
    uint32_t *order[2];
    uint32_t *spare[SLC_MAX_ORDER]; /* arrays of coordinates, not yet assigned to modes */
    /* Products of the nonzeros that the worker computes next, or of the first nonzeros of a long
     * row, and of one piece of the others. */
    struct row_products ahead, piece;
    /* End of the nonzeros that the worker computes next, so that their products may be kept. */
    uint64_t ahead_end;
    double *sums;  /* sums of a segment */
    double *total; /* sums of a row */
    double *x, *memory;
    uint64_t rows, traversals, most;
    struct row_filter *filter; /* filter of the range that the worker computes */
    uint64_t padding[8];       /* keeps two workers on different cache lines */
};

/* How a range of rows is computed. */
struct row_streaming {
    bool single;  /* all nonzeros are in one row; a segment is a tile */
    bool used;    /* all workers compute it together, with a pass over its blocks per traversal */
    bool reads;   /* a pass over its blocks reads the drive, because some blocks are not cached */
    uint64_t nnz; /* nonzeros of the row */
};

/* Table of the rows of one mode. */
struct row_table {
    const struct slc_reader *reader;
    unsigned layout;
    uint64_t rows;
    uint64_t count; /* number of positions */
    bool sorted;    /* the layout is sorted by the mode and has nonzeros */
    /* sorted: the ranges, how each is computed, and the measures of its rows */
    struct slc_row_ranges ranges;
    struct row_streaming *streamed;
    double (*measures)[SLC_ROW_MEASURES];
    /* not sorted: nonzeros per row, the number of the memory for gathered nonzeros, whether this
     * memory keeps all nonzeros between updates, and whether it has them */
    uint64_t *counts;
    unsigned area;
    bool keeps, kept;
};

/* Nonzeros of an interval of rows, sorted by row and key. */
struct row_gathering {
    struct slc_buffer buffer;    /* one or several areas of memory for `capacity` nonzeros each */
    struct row_arrays arrays;    /* in the area of the current mode */
    uint64_t capacity;           /* nonzeros that fit */
    uint64_t first_row, end_row; /* the interval */
    uint64_t *cursors;           /* per row of the interval: number of its next nonzero */
    uint64_t skip;               /* nonzeros with numbers skip .. skip + capacity - 1 are stored */
    /* Blocks that may have nonzeros of the interval, and the number of tiles before each block. */
    uint64_t *blocks, *tiles_before;
    uint64_t block_count;
    uint64_t first_tile; /* number of tiles before the first block of the current pass */
    /* A row that does not fit is gathered in batches of `capacity` nonzeros. Per batch: the
     * position in `blocks` of the block with its first nonzero, and the nonzeros of the row before
     * this block. Batches below batch_count are known. */
    uint64_t *batch_block, *batch_nnz;
    uint64_t batch_count, batch_most;
    uint64_t batch;     /* the batch that is gathered */
    uint64_t block_nnz; /* nonzeros of the row before the current block */
};

struct slc_row_passes {
    struct slc_stream *stream;
    unsigned order, workers;
    uint32_t rank, width, piece_nnz, added_nnz, buffer_nnz, product_nnz, segment_nnz;
    uint64_t sum_count, memory_count;
    struct row_table tables[SLC_MAX_ORDER];
    struct slc_buffer buffer; /* buffers of the workers */
    struct row_worker *worker;
    struct row_gathering gather;
    struct slc_turns turns;

    /* The current update. */
    struct slc_row_pass *pass;
    struct row_table *table;
    unsigned mode;
    uint64_t bytes_read;       /* bytes that finished passes of the update have read */
    bool repeating;            /* passes read blocks of a row again */
    uint64_t progress_ns;      /* time of the last report */
    atomic_uint_fast64_t done; /* completed positions */
    struct row_job *shared;    /* the row that all workers compute */
    uint64_t first_tile;       /* streamed row: ordinal of its first tile */
};

/* row_table.c */
enum slc_status slc_row_table_make(struct slc_row_passes *passes,
                                   const struct slc_plan *plan,
                                   unsigned mode,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_row_table_destroy(struct row_table *table);
/* Returns the padded bytes of the blocks first .. first + count - 1. */
uint64_t slc_row_blocks_bytes(const struct slc_reader *reader, uint64_t first, uint64_t count);
/* Returns the end, at most `most`, of the interval of rows that begins at `first` and whose
 * nonzeros can be gathered at once; at least first + 1. */
uint64_t slc_row_interval_end(const struct slc_row_passes *passes,
                              const struct row_table *table,
                              uint64_t first,
                              uint64_t most);
/* Returns true if a block may have nonzeros of the rows first .. end - 1 of a mode. */
bool slc_row_block_meets(const struct slc_block_entry *entry,
                         unsigned mode,
                         uint64_t first,
                         uint64_t end);
/* Counts the nonzeros of the rows of all modes without a sorted layout, in one pass and, if passes
 * drop nonzeros, of streamed rows. */
enum slc_status slc_row_tables_count(struct slc_row_passes *passes,
                                     const volatile int *stop,
                                     struct slc_error *err) SLC_NODISCARD;

/* row_buffer.c. slc_row_sizes sets the members of `passes` that are copied or computed from the
 * plan of a tensor of order passes->order. slc_row_worker_place returns the bytes of the buffers of
 * one worker and, if `worker` is not NULL, places them from `at` on. slc_row_worker_begin prepares
 * the buffers for an update of the current mode. */
void slc_row_sizes(const struct slc_plan *plan, struct slc_row_passes *passes);
uint64_t
slc_row_worker_place(const struct slc_row_passes *passes, struct row_worker *worker, char *at);
void slc_row_worker_begin(const struct slc_row_passes *passes, struct row_worker *worker);
void slc_row_worker_clear(struct row_worker *worker);
/* Discards the first `count` nonzeros of the buffer. */
void slc_row_worker_drop(const struct slc_row_passes *passes,
                         struct row_worker *worker,
                         uint32_t count);
/* Appends the nonzeros of a tile in the rows first .. end - 1 to the worker's buffer. Errors: those
 * of decoding; SLC_ERR_DAMAGED if there are more nonzeros than fit, and more than were counted. */
enum slc_status slc_row_append(const struct slc_row_passes *passes,
                               struct row_worker *worker,
                               struct slc_tile_view *tile,
                               uint64_t first,
                               uint64_t end,
                               struct slc_error *err);
/* Orders the nonzeros of the buffer, all in the rows first .. end - 1, by row and key. */
void slc_row_sort(const struct slc_row_passes *passes,
                  struct row_worker *worker,
                  uint64_t first,
                  uint64_t end);

/* row_solve.c. slc_row_solve updates or measures a row of `nnz` nonzeros, and adds its measures to
 * `measures`. Errors: those of `traverse`; SLC_ERR_NUMERIC; SLC_ERR_INTERRUPTED. */
enum slc_status slc_row_solve(struct slc_row_passes *passes,
                              unsigned worker,
                              struct row_job *job,
                              row_traverse_fn *traverse,
                              void *how,
                              double measures[SLC_ROW_MEASURES],
                              struct slc_error *err) SLC_NODISCARD;
/* Adds the sums of nonzeros begin .. end - 1, a segment of the row, to the job. */
void slc_row_segment(struct slc_row_passes *passes,
                     unsigned worker,
                     struct row_job *job,
                     const struct row_arrays *arrays,
                     uint64_t begin,
                     uint64_t end);
/* Does the same as slc_row_segment for a row that all workers compute, but adds the segment only
 * when the segments before `number` have been added. Returns false if the traversal was aborted. */
bool slc_row_shared_segment(struct slc_row_passes *passes,
                            unsigned worker,
                            const struct row_arrays *arrays,
                            uint64_t begin,
                            uint64_t end,
                            uint64_t number);
/* Fails with SLC_ERR_INTERRUPTED if a stop is requested. */
enum slc_status slc_row_check_stop(const struct slc_row_passes *passes, struct slc_error *err);

/* row_range.c. slc_row_range computes the rows of a range; `context` is the struct slc_row_passes.
 * slc_row_range_tile is the consumer of its tiles. */
enum slc_status slc_row_range_tile(void *context,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err);
enum slc_status
slc_row_range(void *context, unsigned worker, uint64_t range, struct slc_error *err);

/* row_gather.c. slc_row_gather_part computes the rows first .. end - 1. */
enum slc_status slc_row_gather_open(struct slc_row_passes *passes,
                                    const struct slc_plan *plan,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_row_gather_close(struct slc_row_passes *passes);
enum slc_status slc_row_gather_part(struct slc_row_passes *passes,
                                    uint64_t first,
                                    uint64_t end,
                                    struct slc_error *err) SLC_NODISCARD;

/* row_pass.c. slc_row_turns_reset and slc_row_stream, which makes a pass over the layout of the
 * current mode, begin the turns at 0. slc_row_progress reports progress if a report is due; it is a
 * callback slc_pass.progress, but uses only the argument bytes_read. */
void slc_row_turns_reset(struct slc_row_passes *passes);
enum slc_status slc_row_stream(struct slc_row_passes *passes,
                               struct slc_pass *pass,
                               struct slc_error *err) SLC_NODISCARD;
void slc_row_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes_read);

#endif
