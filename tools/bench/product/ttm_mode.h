/*
 * A mode of a store whose nonzeros lie in memory, encoded, fiber by fiber, to be multiplied by
 * matrices again and again: what `sluice ttm` does without the drive. Rows are formed as there, in
 * room for a tile where memory allows, and then given up.
 */
#ifndef SLC_TOOLS_BENCH_TTM_MODE_H
#define SLC_TOOLS_BENCH_TTM_MODE_H

#include "cpu/fiber/ttm.h"
#include "engine/stream/stream.h"
#include "tools/report/fiber_order.h"

#include <stdint.h>

struct ttm_mode_options {
    unsigned mode; /* from 0 */
    unsigned threads;
    enum slc_value_type precision;
    uint64_t memory_bytes;
    const char *temp_dir; /* for a store that is sorted for the mode; NULL: as bench_temp_folder */
};

struct ttm_mode {
    struct ttm_mode_options options;
    char *folder;
    struct slc_fiber_order order;
    /* Of one matrix. */
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_matrix matrix;
    struct slc_ttm_job job;
    struct slc_ttm_output outputs[SLC_MAX_THREADS];
    uint64_t counts[SLC_MAX_THREADS]; /* of the fibers in the last pass */
    uint64_t fibers; /* that tiles have nonzeros of; one over a border counts twice */
};

/* Opens the layout, or sorts one. Owns: ttm_mode_close, also after an error. */
enum slc_status ttm_mode_open(struct ttm_mode *mode,
                              const struct slc_store *store,
                              const struct ttm_mode_options *options,
                              struct slc_error *err) SLC_NODISCARD;
void ttm_mode_close(struct ttm_mode *mode);

/*
 * Reads all blocks into memory and makes a matrix of `cols` columns. Owns: ttm_mode_stop, also
 * after an error. Errors: SLC_ERR_BUDGET where not all blocks can be kept.
 */
enum slc_status
ttm_mode_start(struct ttm_mode *mode, uint32_t cols, struct slc_error *err) SLC_NODISCARD;
void ttm_mode_stop(struct ttm_mode *mode);

/* One product; mode->fibers counts its fibers. */
enum slc_status
ttm_mode_run(struct ttm_mode *mode, enum slc_ttm_form form, struct slc_error *err) SLC_NODISCARD;

#endif
