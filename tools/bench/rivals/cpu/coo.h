/*
 * Baselines: MTTKRP over a list of coordinates in memory, as GenTen computes it.
 *
 * GENTEN is Phipps and Kolda, "Software for sparse tensor decomposition on emerging computing
 * architectures", SISC 2019 (arXiv 1809.09175). The three kernels are the three steps of its MTTKRP
 * (sections 4 to 6): a portable loop, the same with its arrays in registers, and permuted
 * traversal; the authors' program has them as `orig-kokkos`, `atomic` and `perm`. They are written
 * anew here, with its parallel structure on a CPU, and kept to be measured next to the kernels of
 * sluice (`sluice bench mttkrp --kernel`): no command computes by them, no plan counts them, and
 * they are no strategy of a backend.
 *
 *   genten-a  SLC_COO_EACH      every nonzero on its own: the product of its rows is formed in an
 *                               array in memory, 32 columns at a time, and each element is added to
 *                               the output atomically.
 *   genten-b  SLC_COO_TILES     tiles of 128 nonzeros; over a tile one panel of columns after the
 *                               other, the product in registers. Every nonzero still adds all its
 *                               elements atomically.
 *   genten-c  SLC_COO_PERMUTED  the list stays as it is and is visited through a permutation per
 *                               mode that sorts it by that mode's coordinate. Nonzeros of one row
 *                               are then neighbours: within a tile of 128 they are added up in
 *                               registers and written once, atomically only where the row is the
 *                               tile's first or last and another tile may hold more of it.
 *
 * GenTen's tile of 128 and its block of up to 32 columns (A) are kept; the panels of B and C are as
 * wide as the vector registers hold, where GenTen takes up to 128 columns. Coordinates have 32 bits
 * where it takes 64, which is in favour of all three.
 *
 * As in GenTen the coordinates of a nonzero lie side by side, so that a visit through a permutation
 * costs one line of memory for them and one for the value. Memory: 4 N + v bytes a nonzero for
 * values of v bytes, and 4 for each permutation.
 */
#ifndef SLC_CPU_COO_H
#define SLC_CPU_COO_H

#include "base/backend.h"

#include <stdint.h>

enum slc_coo_kernel { SLC_COO_EACH, SLC_COO_TILES, SLC_COO_PERMUTED, SLC_COO_KERNELS };

const char *slc_coo_kernel_name(enum slc_coo_kernel kernel); /* "genten-a" .. "genten-c" */

/* A tensor as a list, in the order of the layout it came from. */
struct slc_coo {
    struct slc_tensor_shape shape;
    enum slc_value_type type;
    struct slc_buffer coords;                /* u32: of nonzero i in mode m at i * order + m */
    struct slc_buffer values;                /* of `type` */
    struct slc_buffer orders[SLC_MAX_ORDER]; /* u32: nonzeros by coordinate in the mode, or empty */
    _Atomic uint64_t loaded;                 /* nonzeros that tiles have brought */
};

/*
 * What a list maps, and with `permuted` also a permutation per mode with what making one takes;
 * UINT64_MAX where that cannot be counted.
 */
uint64_t slc_coo_bytes(const struct slc_tensor_shape *shape,
                       enum slc_value_type type,
                       bool permuted,
                       unsigned workers);

/*
 * Makes room for a tensor, whose tiles slc_coo_add_tile then brings. Needs: all-zero. Owns:
 * slc_coo_destroy, also after an error. Errors: SLC_ERR_UNSUPPORTED for a mode longer than 2^32, or
 * as many nonzeros: coordinates and places have 32 bits; SLC_ERR_USAGE for a shape without modes;
 * SLC_ERR_MEMORY.
 */
enum slc_status slc_coo_create(struct slc_coo *coo,
                               const struct slc_tensor_shape *shape,
                               enum slc_value_type type,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Decodes a tile to its place. Threads: any number at once, each tile once. Errors: those of
 * decoding; SLC_ERR_DAMAGED where that gives another number of nonzeros than the tile declares;
 * SLC_ERR_USAGE for a tile of another tensor.
 */
enum slc_status slc_coo_add_tile(struct slc_coo *coo,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Makes the permutation of a mode: nonzeros by coordinate in `mode`, those of one coordinate in the
 * list's order, so that neighbours in the list stay near. A stable radix sort by `workers`
 * threads, 11 bits a sweep. Replaces an earlier one. Errors: SLC_ERR_USAGE for a mode the tensor
 * does not have or before all tiles came; SLC_ERR_MEMORY, SLC_ERR_SYSTEM; there is none then.
 */
enum slc_status slc_coo_permute(struct slc_coo *coo,
                                unsigned mode,
                                unsigned workers,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * The MTTKRP of `job` (base/backend.h) by job->workers threads; its strategy is not looked at.
 * Order: sums in no fixed order, products in the factors' type. f32 outputs of SLC_COO_EACH and
 * SLC_COO_TILES are summed in f32, as the output is what is added to; SLC_COO_PERMUTED sums a tile
 * in f64. Errors: SLC_ERR_USAGE where job and tensor do not fit, before all tiles came, and without
 * the permutation that SLC_COO_PERMUTED needs; SLC_ERR_MEMORY, SLC_ERR_SYSTEM. The output is
 * undefined after an error of the last two.
 */
enum slc_status slc_coo_mttkrp(const struct slc_coo *coo,
                               enum slc_coo_kernel kernel,
                               const struct slc_mttkrp_job *job,
                               struct slc_error *err) SLC_NODISCARD;

void slc_coo_destroy(struct slc_coo *coo);

/* Whether all tiles came; SLC_ERR_USAGE says how many nonzeros are missing. */
enum slc_status slc_coo_check_complete(const struct slc_coo *coo,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
