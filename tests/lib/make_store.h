/* Random tensors and stores for tests, built in the simplest way: nonzeros in memory, sorted by
 * key, split into tiles by the rules of the format, encoded and written. Independent of
 * convert/. */
#ifndef SLC_MAKE_STORE_H
#define SLC_MAKE_STORE_H

#include "base/key.h"
#include "storage/codec/codec.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum slc_made_values {
    SLC_MADE_ONES,    /* all values are 1 */
    SLC_MADE_COUNTS,  /* integers 1 to 9 */
    SLC_MADE_FLOATS,  /* normally distributed, each exactly a float */
    SLC_MADE_DOUBLES, /* normally distributed */
    /* Multiples of powers of two, so that sums of products with integers are exact. */
    SLC_MADE_FEW, /* seven values, for a dictionary */
    /* Floats and doubles of which at least half of the bytes are equal, so that LZ4 compresses
     * their planes. */
    SLC_MADE_EVEN_FLOATS,
    SLC_MADE_EVEN_DOUBLES,
    SLC_MADE_VALUES
};

/* Nonzeros in ascending key order, without duplicates. */
struct slc_made_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_key_layout keys;
    struct slc_key_layout
        content_keys;  /* keys with which the tensor was created; content sums use these keys */
    bool whole_fibers; /* true: tiles end at ends of fibers, as in layout fiber-n */
    uint32_t tile_nnz; /* maximum number of nonzeros of a tile; 0: full tiles */
    uint64_t nnz;
    uint64_t *key_lo;
    uint64_t *key_hi;
    double *values;
};

/* Draws `nnz` uniform nonzeros and drops duplicates, so there may be fewer. The same seed yields
 * the same tensor. Ends the program if memory runs out. */
void slc_made_tensor_create(struct slc_made_tensor *tensor,
                            unsigned order,
                            const uint64_t *dims,
                            uint64_t nnz,
                            enum slc_made_values values,
                            uint64_t seed);
/* The same nonzeros with keys that have the fiber run `run`, in the order of these keys; content
 * sums do not change. Ends the program if memory runs out. Ownership: release with
 * slc_made_tensor_destroy. */
void slc_made_tensor_rekey(const struct slc_made_tensor *tensor,
                           struct slc_fiber_run run,
                           struct slc_made_tensor *other);
void slc_made_tensor_destroy(struct slc_made_tensor *tensor);

/* End of the tile that starts at nonzero `begin`. */
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

/* Writes the block file `path` of layout fiber-n of `mode`; the tensor may have any keys. */
enum slc_status slc_made_fibers_write(const struct slc_made_tensor *tensor,
                                      unsigned mode,
                                      const char *path,
                                      enum slc_codec codec,
                                      uint64_t block_bytes,
                                      struct slc_writer_summary *summary,
                                      struct slc_error *err);

/* Makes folder `path` a complete store: blco.blk and the manifest. */
enum slc_status slc_made_store_write(const struct slc_made_tensor *tensor,
                                     const struct slc_files *files,
                                     const char *path,
                                     enum slc_codec codec,
                                     uint64_t block_bytes,
                                     struct slc_error *err);

/* Manifest of a store with this summary of layout blco. */
void slc_made_manifest(const struct slc_made_tensor *tensor,
                       const struct slc_writer_summary *summary,
                       enum slc_codec codec,
                       struct slc_manifest *manifest);

#endif
