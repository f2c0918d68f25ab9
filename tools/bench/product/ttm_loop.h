/*
 * The plain way: TTM by a loop over a list of coordinates in the order of fibers, every row of the
 * result in memory. The baseline of `bench ttm`.
 */
#ifndef SLC_TOOLS_BENCH_TTM_LOOP_H
#define SLC_TOOLS_BENCH_TTM_LOOP_H

#include "tools/bench/product/ttm_mode.h"

struct ttm_loop {
    unsigned threads;
    uint64_t nnz, tiles, fibers;
    uint32_t cols;
    const struct slc_matrix *matrix;
    struct slc_buffer list; /* of nonzeros: values, indices, rows counted from those of the tile */
    struct slc_buffer base; /* per tile and one more: its first row */
    struct slc_buffer rows; /* fibers x cols */
};

/*
 * Lists the nonzeros of a mode that has been started, in f64, where list and rows take no more than
 * `room` bytes; else, and where tiles or the mode do not suit it, *fits is false. Owns:
 * ttm_loop_destroy, which takes an all-zero struct.
 */
enum slc_status ttm_loop_create(struct ttm_loop *loop,
                                struct ttm_mode *mode,
                                uint64_t room,
                                bool *fits,
                                struct slc_error *err) SLC_NODISCARD;
void ttm_loop_destroy(struct ttm_loop *loop);

/* One product. */
enum slc_status ttm_loop_run(struct ttm_loop *loop, struct slc_error *err) SLC_NODISCARD;

#endif
