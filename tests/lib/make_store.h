/*
 * Random tensors and stores for tests, made by the shortest way: nonzeros in memory, sorted by key,
 * cut into tiles by the rules of the format, encoded and written. Independent of convert/.
 */
#ifndef SLC_MAKE_STORE_H
#define SLC_MAKE_STORE_H

#include "base/key.h"
#include "storage/codec/codec.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum slc_made_values {
    SLC_MADE_ONES,    /* a constant */
    SLC_MADE_COUNTS,  /* integers 1 to 9 */
    SLC_MADE_FLOATS,  /* normal, each exactly a float */
    SLC_MADE_DOUBLES, /* normal */
    /* Multiples of powers of two, so that sums of products with integers are exact: */
    SLC_MADE_FEW,          /* seven values, for a dictionary */
    SLC_MADE_EVEN_FLOATS,  /* floats and doubles of which half or more of the bytes are all the */
    SLC_MADE_EVEN_DOUBLES, /* same: LZ4 shortens their planes */
    SLC_MADE_VALUES
};

/* Nonzeros in ascending key order, without duplicates. */
struct slc_made_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_key_layout keys;
    struct slc_key_layout content_keys; /* that content sums are over: those drawn under */
    bool whole_fibers;                  /* as fiber-n has them: tiles end with fibers */
    uint32_t tile_nnz;                  /* nonzeros of a tile; 0: full tiles */
    uint64_t nnz;
    uint64_t *key_lo;
    uint64_t *key_hi;
    double *values;
};

/*
 * Draws `nnz` uniform nonzeros; duplicates are dropped, so there may be fewer. The same seed gives
 * the same tensor. Ends the program when memory does.
 */
void slc_made_tensor_create(struct slc_made_tensor *tensor,
                            unsigned order,
                            const uint64_t *dims,
                            uint64_t nnz,
                            enum slc_made_values values,
                            uint64_t seed);
/*
 * The same nonzeros under keys with the fiber run `run`, in their order; content sums stay. Ends
 * the program when memory does. Owns: slc_made_tensor_destroy.
 */
void slc_made_tensor_rekey(const struct slc_made_tensor *tensor,
                           struct slc_fiber_run run,
                           struct slc_made_tensor *other);
void slc_made_tensor_destroy(struct slc_made_tensor *tensor);

/* Where the tile that starts at nonzero `begin` ends. */
uint64_t slc_made_tile_end(const struct slc_made_tensor *tensor, uint64_t begin);

/* Encodes the nonzeros and appends their tiles. */
enum slc_status slc_made_tiles_append(const struct slc_made_tensor *tensor,
                                      enum slc_codec codec,
                                      struct slc_writer *writer,
                                      struct slc_error *err);

/* Writes the block file `path` of layout blco through `files` (NULL: slc_quick_files). */
enum slc_status slc_made_blocks_write(const struct slc_made_tensor *tensor,
                                      const struct slc_files *files,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err);

/* Writes the block file `path` of layout fiber-n of `mode`, of the tensor under any keys. */
enum slc_status slc_made_fibers_write(const struct slc_made_tensor *tensor,
                                      unsigned mode,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err);

/* Makes the folder `path` a whole store: blco.blk and the manifest. */
enum slc_status slc_made_store_write(const struct slc_made_tensor *tensor,
                                     const struct slc_files *files,
                                     const char *path,
                                     enum slc_codec codec,
                                     uint64_t block_bytes,
                                     struct slc_error *err);

/* The manifest that belongs to a summary of the layout blco. */
void slc_made_manifest(const struct slc_made_tensor *tensor,
                       const struct slc_writer_summary *summary,
                       enum slc_codec codec,
                       struct slc_manifest *manifest);

#endif
