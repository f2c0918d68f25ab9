/* Writes a semi-sparse result as two .npy files in a folder. The files are written while the result
 * is computed, and may be larger than memory (storage/file/output_ring.h):
 *
 *  - coords.npy: int64, fibers x (N - 1). The 0-based indices of each fiber in all other modes, in
 *    the order of the modes.
 *  - rows.npy: f64 or f32, fibers x R. One dense row per fiber, in the order of coords.npy.
 *
 * The number of fibers need not be known before slc_npy_pair_finish. slc_npy_pair_publish replaces
 * an earlier result; until then the earlier result remains.
 *
 * The calls are, in this order: slc_npy_pair_create; slc_npy_pair_write_coords and
 * slc_npy_pair_write_rows, by any threads; slc_npy_pair_finish; slc_npy_pair_publish;
 * slc_npy_pair_destroy. */
#ifndef SLC_ENGINE_NPY_PAIR_H
#define SLC_ENGINE_NPY_PAIR_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/output_ring.h"

#include <stdint.h>

#define SLC_PAIR_COORDS "coords.npy"
#define SLC_PAIR_ROWS   "rows.npy"

struct slc_npy_pair_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *folder;            /* created if it is missing */
    unsigned modes;                /* columns of the coordinates: N - 1 */
    uint32_t cols;                 /* columns of the rows: R */
    enum slc_value_type type;      /* type of the rows */
    uint32_t buffer_bytes;         /* bytes of one buffer */
    uint32_t coord_buffers;
    uint32_t row_buffers;
};

struct slc_npy_pair;

/* Creates the folder, if it is missing, and the unfinished files. Ownership: release with
 * slc_npy_pair_destroy. Errors: those of creating the folder and the rings. */
enum slc_status slc_npy_pair_create(const struct slc_npy_pair_options *options,
                                    struct slc_npy_pair **pair,
                                    struct slc_error *err) SLC_NODISCARD;

/* Write coordinates (`modes` per fiber, contiguous) or rows (`cols` numbers of the pair's type) of
 * `count` fibers, starting with fiber number `first`, like slc_output_ring_fill_rows. Every fiber
 * must be written once. If the ring is full, the functions wait until earlier fibers are
 * written. */
enum slc_status slc_npy_pair_write_coords(struct slc_npy_pair *pair,
                                          uint64_t first,
                                          uint64_t count,
                                          const int64_t *coords,
                                          struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_npy_pair_write_rows(struct slc_npy_pair *pair,
                                        uint64_t first,
                                        uint64_t count,
                                        const void *rows,
                                        uint64_t stride_bytes,
                                        struct slc_error *err) SLC_NODISCARD;

/* Wakes waiting threads, and makes all later calls fail. Threads: any. */
void slc_npy_pair_abort(struct slc_npy_pair *pair);

/* Writes the headers and syncs both files under temporary names. Needs: all `fibers` fibers are
 * written. */
enum slc_status slc_npy_pair_finish(struct slc_npy_pair *pair,
                                    uint64_t fibers,
                                    struct slc_error *err) SLC_NODISCARD;

/* Replaces earlier files with the finished files, and syncs the folder. After an error the earlier
 * files are restored. */
enum slc_status slc_npy_pair_publish(struct slc_npy_pair *pair,
                                     struct slc_error *err) SLC_NODISCARD;

/* Sets *stats to the sums of the statistics of both files. */
void slc_npy_pair_stats(struct slc_npy_pair *pair, struct slc_output_ring_stats *stats);

/* Removes files that are not published, and the folder if slc_npy_pair_create created it. Accepts
 * NULL. */
void slc_npy_pair_destroy(struct slc_npy_pair *pair);

#endif
