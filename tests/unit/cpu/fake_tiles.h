/* Tensors in memory as a substitute for a store: random coordinates, served as tiles in chunks. */
#ifndef SLC_TEST_FAKE_TILES_H
#define SLC_TEST_FAKE_TILES_H

#include "base/block.h"
#include "cpu/reference/reference.h"

#include <stdbool.h>
#include <stdint.h>

/* Start of a tile in a sorted tensor. */
struct fake_cut {
    uint64_t begin;
    uint64_t partition;
    bool continued;
};

struct fake_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
    uint32_t tile_nnz;  /* nonzeros per tile */
    uint32_t chunk_nnz; /* nonzeros served at a time */
    bool in_runs;       /* tiles are also served as fiber runs of mode `run_mode` */
    unsigned run_mode;
    /* The tiles of a sorted tensor, and the end of the last one. NULL: not sorted, tiles have
     * equal size. */
    struct fake_cut *cuts;
    uint64_t tiles, partitions;
    uint64_t fail_tile; /* the second chunk of this tile is damaged; UINT64_MAX: none */
};

/* Random coordinates (with repeats) and values: integers -3 .. 3, or reals in [-1, 1) that are
 * exactly floats. About half of the nonzeros repeat the output row of the previous one. */
void fake_tensor_random(struct fake_tensor *tensor,
                        unsigned order,
                        const uint64_t *dims,
                        uint64_t nnz,
                        bool integers,
                        uint64_t stream);
/* Also serves the tensor in runs of `mode`: each nonzero gets the coordinates of the previous one
 * in all other modes, except for one in `mean`. */
void fake_tensor_runs(struct fake_tensor *tensor, unsigned mode, unsigned mean, uint64_t stream);
/* Sorts the tensor by `mode` into partitions of whole rows with up to `nnz` nonzeros; larger rows
 * are split into several partitions. Call it after tile_nnz was set. */
void fake_tensor_partition(struct fake_tensor *tensor, unsigned mode, uint64_t nnz);
void fake_tensor_free(struct fake_tensor *tensor);

void fake_tensor_view(const struct fake_tensor *tensor, struct slc_coo_view *view);

uint64_t fake_tensor_tiles(const struct fake_tensor *tensor);

/* The tile of a worker, with the arrays to which its chunks are decoded. */
struct fake_tile {
    struct slc_tile_view view;
    const struct fake_tensor *tensor;
    uint64_t next;
    uint64_t end;
    uint64_t chunks;
    uint32_t *offset[SLC_MAX_ORDER];
    uint32_t *begin;
    void *values;
};

void fake_tile_create(struct fake_tile *tile,
                      const struct fake_tensor *tensor,
                      enum slc_value_type type);
void fake_tile_open(struct fake_tile *tile, uint64_t ordinal);
void fake_tile_destroy(struct fake_tile *tile);

#endif
