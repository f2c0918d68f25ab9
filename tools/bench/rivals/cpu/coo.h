/* Baselines: MTTKRP over a list of coordinates in memory, with GenTen's algorithms.
 *
 * GenTen is [Phipps2019]. The three kernels are the versions of MTTKRP in sections 4 to 6: a
 * portable loop, the same loop with its arrays in registers, and permuted traversal. The authors'
 * program calls them `orig-kokkos`, `atomic` and `perm`. They are reimplemented here with the
 * parallel structure that GenTen has on a CPU. `sluice bench mttkrp --kernel` compares them with
 * the kernels of sluice. No other command uses them, no plan counts their memory, and no backend
 * has them as a strategy.
 *
 *   genten-a  SLC_COO_EACH      computes each nonzero alone, 32 columns at a time: forms the
 *                               product of its rows in an array in memory, and adds each element
 *                               of the array to the output atomically.
 *   genten-b  SLC_COO_TILES     computes tiles of 128 nonzeros, one panel of columns after the
 *                               other, with the product of a nonzero in registers. Each element of
 *                               a product is added to the output atomically.
 *   genten-c  SLC_COO_PERMUTED  reads the list through a permutation per mode, which sorts the
 *                               nonzeros by their coordinate in that mode; the list itself keeps
 *                               its order. So nonzeros of an output row are neighbours: within a
 *                               tile of 128, they are added up in registers and written once. The
 *                               addition is atomic only for the first and the last row of the
 *                               tile, which other tiles may share.
 *
 * As in GenTen, a tile has 128 nonzeros, and a block of genten-a has up to 32 columns. A panel of
 * genten-b and genten-c fills the vector registers; in GenTen it has up to 128 columns. Coordinates
 * have 32 bits instead of the 64 bits of GenTen, which favours all three kernels.
 *
 * As in GenTen, the coordinates of a nonzero are adjacent, so a nonzero that is read through a
 * permutation costs one cache line for its coordinates and one for its value. Memory per nonzero,
 * with N modes and values of v bytes: 4 N + v bytes, and 4 bytes for each permutation. */
#ifndef SLC_CPU_COO_H
#define SLC_CPU_COO_H

#include "base/backend.h"

#include <stdint.h>

enum slc_coo_kernel { SLC_COO_EACH, SLC_COO_TILES, SLC_COO_PERMUTED, SLC_COO_KERNELS };

const char *slc_coo_kernel_name(enum slc_coo_kernel kernel); /* returns "genten-a" to "genten-c" */

/* A tensor as a list of coordinates, in the order of its layout. */
struct slc_coo {
    struct slc_tensor_shape shape;
    enum slc_value_type type;
    /* elements of 32 bits: the coordinate of nonzero i in mode m is element i * order + m */
    struct slc_buffer coords;
    struct slc_buffer values;                /* values, of type `type` */
    struct slc_buffer orders[SLC_MAX_ORDER]; /* permutation of a mode (32 bits each), or empty */
    _Atomic uint64_t loaded;                 /* nonzeros added so far */
};

/* Returns the bytes of memory of a list, UINT64_MAX on overflow. If `permuted`, they include a
 * permutation per mode and the scratch to build a permutation. */
uint64_t slc_coo_bytes(const struct slc_tensor_shape *shape,
                       enum slc_value_type type,
                       bool permuted,
                       unsigned workers);

/* Allocates the list of a tensor, which slc_coo_add_tile fills. Needs: *coo is all-zero. The
 * caller must call slc_coo_destroy, also after an error. Errors: SLC_ERR_UNSUPPORTED for a mode
 * size above 2^32 or 2^32 nonzeros or more, because coordinates and positions have 32 bits;
 * SLC_ERR_USAGE for a shape without modes; SLC_ERR_MEMORY. */
enum slc_status slc_coo_create(struct slc_coo *coo,
                               const struct slc_tensor_shape *shape,
                               enum slc_value_type type,
                               struct slc_error *err) SLC_NODISCARD;

/* Decodes a tile to its position in the list. Call it once per tile. Threads: several threads may
 * call it at the same time. Errors: those of decoding; SLC_ERR_DAMAGED if the number of nonzeros
 * differs from tile->nnz; SLC_ERR_USAGE for a tile of another tensor. */
enum slc_status slc_coo_add_tile(struct slc_coo *coo,
                                 struct slc_tile_view *tile,
                                 struct slc_error *err) SLC_NODISCARD;

/* Does the same for a tile of a layout whose tiles may be short, such as sorted-n. `at` is the
 * number of the first nonzero of the tile. */
enum slc_status slc_coo_add_tile_at(struct slc_coo *coo,
                                    struct slc_tile_view *tile,
                                    uint64_t at,
                                    struct slc_error *err) SLC_NODISCARD;

/* Builds the permutation of a mode, which lists the nonzeros sorted by their coordinate in `mode`.
 * Nonzeros with the same coordinate keep the order of the list, so that neighbours in the list stay
 * close. `workers` threads run a stable radix sort, 11 bits per sweep. Replaces an earlier
 * permutation of the mode. Errors: SLC_ERR_USAGE for a missing mode, or before all tiles were
 * added; SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After an error the mode has no permutation. */
enum slc_status slc_coo_permute(struct slc_coo *coo,
                                unsigned mode,
                                unsigned workers,
                                struct slc_error *err) SLC_NODISCARD;

/* Computes the MTTKRP of `job` (base/backend.h) with job->workers threads; ignores the strategy of
 * the job. Order: sums have no fixed order. Products have the type of the factors. SLC_COO_EACH and
 * SLC_COO_TILES sum f32 outputs in f32, because they add directly to the output; SLC_COO_PERMUTED
 * sums the rows of a tile in f64. Errors: SLC_ERR_USAGE if job and tensor do not match, if not all
 * tiles have been added, or if SLC_COO_PERMUTED lacks its permutation; SLC_ERR_MEMORY;
 * SLC_ERR_SYSTEM. After the last two errors the output is undefined. */
enum slc_status slc_coo_mttkrp(const struct slc_coo *coo,
                               enum slc_coo_kernel kernel,
                               const struct slc_mttkrp_job *job,
                               struct slc_error *err) SLC_NODISCARD;

void slc_coo_destroy(struct slc_coo *coo);

/* Fails with SLC_ERR_USAGE unless all tiles have been added; the message states the number of
 * nonzeros. */
enum slc_status slc_coo_check_complete(const struct slc_coo *coo,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
