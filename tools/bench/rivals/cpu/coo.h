/*
 * Baselines: MTTKRP over a list of coordinates in memory, with GenTen's algorithms.
 *
 * GenTen is [Phipps2019]. The three kernels are the three versions of MTTKRP in sections 4 to 6: a
 * portable loop, the same loop with its arrays in registers, and permuted traversal. The authors'
 * program calls them `orig-kokkos`, `atomic` and `perm`. They are reimplemented here, with GenTen's
 * parallel structure on a CPU, for comparison with the kernels of sluice (`sluice bench mttkrp
 * --kernel`). No other command uses them, no plan counts their memory, and they are not a strategy
 * of a backend.
 *
 *   genten-a  SLC_COO_EACH      computes each nonzero alone: the product of its rows is formed in
 *                               an array in memory, 32 columns at a time, and each element is added
 *                               to the output atomically.
 *   genten-b  SLC_COO_TILES     computes tiles of 128 nonzeros, one panel of columns after the
 *                               other, with the product in registers. Every nonzero still adds all
 *                               its elements atomically.
 *   genten-c  SLC_COO_PERMUTED  traverses the list through a permutation per mode, which sorts the
 *                               nonzeros by their coordinate in that mode; the list itself keeps
 *                               its order. Nonzeros of one row are then neighbours: within a tile
 *                               of 128 they are added up in registers and written once. The
 *                               addition is atomic only for the tile's first and last row, which
 *                               other tiles may share.
 *
 * As in GenTen, a tile has 128 nonzeros, and a block of genten-a has up to 32 columns. The panels
 * of genten-b and genten-c fill the vector registers, while GenTen uses up to 128 columns.
 * Coordinates have 32 bits instead of GenTen's 64, which favours all three kernels.
 *
 * As in GenTen, the coordinates of a nonzero are adjacent, so visiting a nonzero through a
 * permutation costs one cache line for its coordinates and one for its value. Memory per nonzero: 4
 * N + v bytes with values of v bytes, and 4 bytes for each permutation.
 */
#ifndef SLC_CPU_COO_H
#define SLC_CPU_COO_H

#include "base/backend.h"

#include <stdint.h>

enum slc_coo_kernel { SLC_COO_EACH, SLC_COO_TILES, SLC_COO_PERMUTED, SLC_COO_KERNELS };

const char *slc_coo_kernel_name(enum slc_coo_kernel kernel); /* "genten-a" .. "genten-c" */

/* A tensor as a list, in the order of its layout. */
struct slc_coo {
    struct slc_tensor_shape shape;
    enum slc_value_type type;
    /* u32: coordinate of nonzero i in mode m, at i * order + m */
    struct slc_buffer coords;
    struct slc_buffer values;                /* values, of type `type` */
    struct slc_buffer orders[SLC_MAX_ORDER]; /* u32: nonzeros by coordinate in the mode, or empty */
    _Atomic uint64_t loaded;                 /* nonzeros added so far */
};

/*
 * Returns the mapped bytes of a list. With `permuted`, includes a permutation per mode and the
 * scratch to build one. UINT64_MAX on overflow.
 */
uint64_t slc_coo_bytes(const struct slc_tensor_shape *shape,
                       enum slc_value_type type,
                       bool permuted,
                       unsigned workers);

/*
 * Allocates the list of a tensor; slc_coo_add_tile then fills it. Needs: *coo is all-zero. Owns:
 * release with slc_coo_destroy, also after an error. Errors: SLC_ERR_UNSUPPORTED for a mode size
 * above 2^32 and for 2^32 nonzeros or more, because coordinates and positions have 32 bits;
 * SLC_ERR_USAGE for a shape without modes; SLC_ERR_MEMORY.
 */
enum slc_status slc_coo_create(struct slc_coo *coo,
                               const struct slc_tensor_shape *shape,
                               enum slc_value_type type,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Decodes a tile to its position in the list. Threads: any number may call it at once, once per
 * tile. Errors: those of decoding; SLC_ERR_DAMAGED if the number of nonzeros differs from the
 * tile's description; SLC_ERR_USAGE for a tile of another tensor.
 */
enum slc_status slc_coo_add_tile(struct slc_coo *coo,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Builds the permutation of a mode: nonzeros sorted by their coordinate in `mode`. Nonzeros with
 * the same coordinate keep the order of the list, so that neighbours in the list stay close.
 * `workers` threads run a stable radix sort, 11 bits per sweep. Replaces an earlier permutation.
 * Errors: SLC_ERR_USAGE for a missing mode, or before all tiles were added; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM. After an error the mode has no permutation.
 */
enum slc_status slc_coo_permute(struct slc_coo *coo,
                                unsigned mode,
                                unsigned workers,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Computes the MTTKRP of `job` (base/backend.h) with job->workers threads; ignores the strategy of
 * the job. Order: sums are in no fixed order, and products in the type of the factors. SLC_COO_EACH
 * and SLC_COO_TILES sum f32 outputs in f32, because they add directly to the output;
 * SLC_COO_PERMUTED sums a tile in f64. Errors: SLC_ERR_USAGE if job and tensor do not match, before
 * all tiles were added, and if the permutation that SLC_COO_PERMUTED needs is missing;
 * SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After the last two errors the output is undefined.
 */
enum slc_status slc_coo_mttkrp(const struct slc_coo *coo,
                               enum slc_coo_kernel kernel,
                               const struct slc_mttkrp_job *job,
                               struct slc_error *err) SLC_NODISCARD;

void slc_coo_destroy(struct slc_coo *coo);

/* Fails with SLC_ERR_USAGE, naming the number of nonzeros, unless all tiles were added. */
enum slc_status slc_coo_check_complete(const struct slc_coo *coo,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
