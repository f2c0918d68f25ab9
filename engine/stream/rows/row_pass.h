/* Updates the rows of a factor with a row solver that needs the nonzeros of each row
 * (SLC_ROW_NONZEROS of base/row_solver.h). All inner iterations of a row run while its nonzeros are
 * in memory, so an update of a mode reads the layout once.
 *
 * Over the layout sorted by the mode, a worker claims a range of rows (engine/stream/row_ranges.h),
 * decodes its nonzeros into a buffer, and sorts them by row. If they do not fit, it decodes them
 * again for several intervals of rows, from blocks that stay in the ring. A row that exceeds the
 * buffer is decoded in every traversal. A row that is split over several partitions, and whose
 * blocks exceed the ring, is *streamed*: every traversal reads its blocks, and all workers compute
 * its tiles.
 *
 * Over any other layout, rows are *gathered*: a pass reads the blocks that may have nonzeros in an
 * interval of rows, and sorts these nonzeros by row. An interval has as many rows as fit in the
 * planned memory. A row that does not fit is gathered in several passes per traversal.
 *
 * Bits: the sums of a row are the sums of its segments, each computed from 0, added in key order. A
 * segment is SLC_ROW_SEGMENT_NNZ consecutive nonzeros of the row or, if the row has all nonzeros of
 * a range of a sorted layout, its nonzeros in one tile. The solver adds the pieces of a segment one
 * after the other. Therefore the bits of a row depend only on the layout, not on threads, I/O
 * method, block size or budget. */
#ifndef SLC_ENGINE_ROW_PASS_H
#define SLC_ENGINE_ROW_PASS_H

#include "base/row_solver.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

enum { SLC_ROW_SEGMENT_NNZ = SLC_TILE_NNZ };

/* Tables of rows and buffers of workers, for all modes of a run. */
struct slc_row_passes;

/* Sizes of memory, for plans. slc_row_plan_workers computes segment_nnz, product_nnz, worker_bytes
 * and buffer_nnz (at least the argument) of plan->rows from the request, the number of threads and
 * the tensor. slc_row_gather_bytes returns the bytes of `nnz` gathered nonzeros, and
 * slc_row_table_bytes the bytes of the table of a mode that is read from the layout `info`, without
 * gathered nonzeros. All saturate at UINT64_MAX. */
void slc_row_plan_workers(const struct slc_layout_info *info,
                          struct slc_plan *plan,
                          uint64_t buffer_nnz);
uint64_t slc_row_gather_bytes(unsigned order, uint64_t nnz);
uint64_t slc_row_table_bytes(const struct slc_layout_info *info, unsigned mode);
/* Returns true if the nonzeros of a range of a sorted layout are in a single row. */
bool slc_row_range_single(const struct slc_reader *reader,
                          unsigned mode,
                          const struct slc_row_range *range);

/* Allocates the buffers that the plan contains (slc_plan.rows), and makes the table of every mode.
 * If modes have no sorted layout, one pass counts the nonzeros of all their rows. `stream` must
 * have been opened with `plan`; it is borrowed until slc_row_passes_close. A hold-out that drops
 * nonzeros must be set before. `stop` may be NULL. Ownership: release with slc_row_passes_close,
 * which accepts NULL. Errors: SLC_ERR_MEMORY; SLC_ERR_SYSTEM; those of slc_stream_pass. */
enum slc_status slc_row_passes_open(struct slc_stream *stream,
                                    const struct slc_plan *plan,
                                    const volatile int *stop,
                                    struct slc_row_passes **passes,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_row_passes_close(struct slc_row_passes *passes);

/* Returns the number of positions of an update of `mode`, for slc_pass_cuts: ranges of rows, or
 * rows if they are gathered. */
uint64_t slc_row_passes_count(const struct slc_row_passes *passes, unsigned mode);
/* Returns the end of a part of the update that begins at position `first` (below the count): the
 * largest end with which the part is expected to read at most `bytes`, counting cached blocks; at
 * least first + 1. The end of a part of gathered rows is the end of an interval. */
uint64_t slc_row_passes_end(const struct slc_row_passes *passes,
                            unsigned mode,
                            uint64_t first,
                            uint64_t bytes);
/* Returns the padded bytes of the blocks that the positions first .. end - 1 need, without repeated
 * traversals. */
uint64_t slc_row_passes_bytes(const struct slc_row_passes *passes,
                              unsigned mode,
                              uint64_t first,
                              uint64_t end);
/* Returns a hash of the layout and of the rows before `position`. A run may resume an update at a
 * position only if the hash is the same as in the run that was stopped. */
uint64_t slc_row_passes_hash(const struct slc_row_passes *passes, unsigned mode, uint64_t position);

/* One update of the rows of a factor. Everything is borrowed. */
struct slc_row_pass {
    const struct slc_row_solver *solver; /* input SLC_ROW_NONZEROS */
    /* about->mode is the mode that is updated. A row starts as the row of the factor times
     * about->weights, and the solution replaces the row of the factor. */
    const struct slc_row_mode *about;
    /* One per mode, dims[n] x rank. Rows of factors[about->mode] are updated in place. */
    struct slc_matrix *factors;
    bool weighted; /* the rows of the factor include about->weights already */
    bool fixed;    /* no row is updated, and the factor is not multiplied by the weights */
    /* Also computes the solver's measures, from rows that are updated and rounded to the type of
     * the factor. A streamed row needs one more traversal. */
    bool measure;
    /* Divides the update into parts; NULL: not divided. When an update is resumed, the rows of the
     * factor before cuts->first, and `measures`, must be as they were when it was stopped. */
    const struct slc_pass_cuts *cuts;
    /* If *stop is not 0, the update ends with SLC_ERR_INTERRUPTED within one tile per worker. May
     * be NULL. */
    const volatile int *stop;
    /* Called by one thread, at most ten times a second, with completed and all positions, and the
     * bytes read by this update. May be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes_read);
    void *progress_context;
    /* In and out: the measures of the rows before a position, 0 at the start. Ranges are added in
     * the order of positions, which is row order if the schedule is SLC_SCHEDULE_FILE. The callback
     * `between` of the cuts may read them. */
    double measures[SLC_ROW_MEASURES];
    /* Results of this call. */
    uint64_t rows;           /* updated rows */
    uint64_t traversals;     /* sum over rows with nonzeros, without the traversal for measures */
    uint64_t most;           /* largest number of traversals of a row */
    uint64_t streamed_rows;  /* rows whose traversals passed over their blocks again */
    uint64_t repeated_bytes; /* padded bytes of these blocks, for all traversals after the first */
};

/* Updates all rows of the mode, or computes their measures. Calls begin of the solver before the
 * first row, and end after the last, also after an error. Errors: those of the solver's begin, of
 * slc_stream_pass and of the cuts; SLC_ERR_USAGE if the shapes do not match the stream;
 * SLC_ERR_NUMERIC with the row if a solver returns a number that is not finite. After an error some
 * rows are updated and some are not. */
enum slc_status slc_row_pass_run(struct slc_row_passes *passes,
                                 struct slc_row_pass *pass,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
