/*
 * Baselines: MTTKRP over a list of coordinates in memory, with GenTen's algorithms.
 *
 * GenTen is [Phipps2019]. The three kernels are the three steps of its MTTKRP
 * (sections 4 to 6): a portable loop, the same with its arrays in registers, and permuted
 * traversal, named `orig-kokkos`, `atomic` and `perm` in the authors' program. They are
 * reimplemented here, with its parallel structure on a CPU, for comparison with the kernels of
 * sluice (`sluice bench mttkrp --kernel`). No command computes with them, no plan counts them, and
 * they are not a strategy of a backend.
 *
 *   genten-a  SLC_COO_EACH      each nonzero alone: the product of its rows is formed in an array
 *                               in memory, 32 columns at a time, and each element is added to the
 *                               output atomically.
 *   genten-b  SLC_COO_TILES     tiles of 128 nonzeros; over a tile one panel of columns after the
 *                               other, with the product in registers. Every nonzero still adds all
 *                               its elements atomically.
 *   genten-c  SLC_COO_PERMUTED  the list keeps its order and is traversed through a permutation per
 *                               mode that sorts it by that mode's coordinate. Nonzeros of one row
 *                               are then neighbours: within a tile of 128 they are added up in
 *                               registers and written once, atomically only for the tile's first
 *                               and last row, which other tiles may share.
 *
 * GenTen's tile of 128 and its block of up to 32 columns (A) are kept. The panels of B and C fill
 * the vector registers, while GenTen uses up to 128 columns. Coordinates have 32 bits instead of
 * its 64, which favours all three.
 *
 * As in GenTen the coordinates of a nonzero are adjacent, so a visit through a permutation costs
 * one line of memory for them and one for the value. Memory: 4 N + v bytes per nonzero for values
 * of v bytes, and 4 for each permutation.
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
    struct slc_buffer coords;                /* u32: of nonzero i in mode m at i * order + m */
    struct slc_buffer values;                /* of `type` */
    struct slc_buffer orders[SLC_MAX_ORDER]; /* u32: nonzeros by coordinate in the mode, or empty */
    _Atomic uint64_t loaded;                 /* nonzeros added by tiles */
};

/*
 * Mapped bytes of a list, with `permuted` also of a permutation per mode and the scratch of making
 * one; UINT64_MAX on overflow.
 */
uint64_t slc_coo_bytes(const struct slc_tensor_shape *shape,
                       enum slc_value_type type,
                       bool permuted,
                       unsigned workers);

/*
 * Allocates the list of a tensor; slc_coo_add_tile then fills it. Needs: all-zero. Owns:
 * slc_coo_destroy, also after an error. Errors: SLC_ERR_UNSUPPORTED for a mode size above 2^32 or
 * 2^32 nonzeros and more, because coordinates and positions have 32 bits; SLC_ERR_USAGE for a shape
 * without modes; SLC_ERR_MEMORY.
 */
enum slc_status slc_coo_create(struct slc_coo *coo,
                               const struct slc_tensor_shape *shape,
                               enum slc_value_type type,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Decodes a tile to its position. Threads: any number at once, each tile once. Errors: those of
 * decoding; SLC_ERR_DAMAGED if the tile has another number of nonzeros than it declares;
 * SLC_ERR_USAGE for a tile of another tensor.
 */
enum slc_status slc_coo_add_tile(struct slc_coo *coo,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Makes the permutation of a mode: nonzeros sorted by their coordinate in `mode`, equal ones in the
 * list's order, so that neighbours in the list stay close. A stable radix sort by `workers`
 * threads, 11 bits per sweep. Replaces an earlier permutation. Errors: SLC_ERR_USAGE for a missing
 * mode or before all tiles were added; SLC_ERR_MEMORY, SLC_ERR_SYSTEM; the mode then has none.
 */
enum slc_status slc_coo_permute(struct slc_coo *coo,
                                unsigned mode,
                                unsigned workers,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * The MTTKRP of `job` (base/backend.h) by job->workers threads; ignores its strategy.
 * Order: sums in no fixed order, products in the factors' type. SLC_COO_EACH and SLC_COO_TILES sum
 * f32 outputs in f32, because they add directly to the output; SLC_COO_PERMUTED sums a tile in f64.
 * Errors: SLC_ERR_USAGE if job and tensor do not match, before all tiles were added, and without
 * the permutation that SLC_COO_PERMUTED needs; SLC_ERR_MEMORY, SLC_ERR_SYSTEM. The output is
 * undefined after an error of the last two.
 */
enum slc_status slc_coo_mttkrp(const struct slc_coo *coo,
                               enum slc_coo_kernel kernel,
                               const struct slc_mttkrp_job *job,
                               struct slc_error *err) SLC_NODISCARD;

void slc_coo_destroy(struct slc_coo *coo);

/* Whether all tiles were added; SLC_ERR_USAGE names the number of nonzeros. */
enum slc_status slc_coo_check_complete(const struct slc_coo *coo,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
