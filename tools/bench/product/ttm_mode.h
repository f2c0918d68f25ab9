/* Multiplies a mode of a store repeatedly by matrices: `sluice ttm` without the drive. The encoded
 * nonzeros are in memory, fiber by fiber. The rows of the result are computed in a buffer and then
 * discarded. The buffer has space for the rows of a tile if memory allows. */
#ifndef SLC_TOOLS_BENCH_TTM_MODE_H
#define SLC_TOOLS_BENCH_TTM_MODE_H

#include "cpu/fiber/ttm.h"
#include "engine/stream/stream.h"
#include "tools/report/fiber_order.h"

#include <stdint.h>

struct ttm_mode_options {
    unsigned mode; /* starts at 0 */
    unsigned threads;
    enum slc_value_type precision;
    uint64_t memory_bytes;
    /* parent folder of the temporary store; NULL means $TMPDIR or /tmp */
    const char *temp_dir;
};

struct ttm_mode {
    struct ttm_mode_options options;
    char *folder;
    struct slc_fiber_order order;
    /* state for products by one matrix */
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_matrix matrix;
    struct slc_ttm_job job;
    struct slc_ttm_output outputs[SLC_MAX_THREADS];
    uint64_t counts[SLC_MAX_THREADS]; /* fibers per thread in the last product */
    /* nonempty fibers, counted per tile: a fiber in two tiles counts twice */
    uint64_t fibers;
};

/* Opens the layout that keeps the fibers of the mode whole. If there is none, sorts the store into
 * a temporary store. The caller must call ttm_mode_close, also after an error. */
enum slc_status ttm_mode_open(struct ttm_mode *mode,
                              const struct slc_store *store,
                              const struct ttm_mode_options *options,
                              struct slc_error *err) SLC_NODISCARD;
void ttm_mode_close(struct ttm_mode *mode);

/* Reads all blocks into memory and creates a matrix of `cols` columns. The caller must call
 * ttm_mode_stop, also after an error. Errors: SLC_ERR_BUDGET if some blocks cannot be kept. */
enum slc_status
ttm_mode_start(struct ttm_mode *mode, uint32_t cols, struct slc_error *err) SLC_NODISCARD;
void ttm_mode_stop(struct ttm_mode *mode);

/* Multiplies by the matrix once, discards the result, and sets mode->fibers. */
enum slc_status
ttm_mode_run(struct ttm_mode *mode, enum slc_ttm_form form, struct slc_error *err) SLC_NODISCARD;

#endif
