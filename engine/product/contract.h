/* Implements `sluice ttv`: multiplies a tensor with vectors in one or more modes. The result is a
 * store with the other modes:
 *
 *     Y = X x_n v,   y(f) = sum of x * v(i_n) over the nonzeros x of mode-n fiber f
 *
 * ([Kolda2009] section 2.5: the contracted product with a vector; SpTV). Memory is bounded for any
 * tensor size, because tiles of the store are contracted as they are read. If the order of the
 * store keeps fibers of the contracted mode together, sums arrive in the order of the result and
 * are written directly. Otherwise the builder sorts the sums, and adds sums with equal coordinates
 * in the order of the store. The result is the same in both cases: it depends only on the input
 * store, not on threads or memory. */
#ifndef SLC_ENGINE_CONTRACT_H
#define SLC_ENGINE_CONTRACT_H

#include "base/block.h"
#include "base/error/error.h"
#include "convert/build/builder.h"
#include "engine/product/tile_products.h"
#include "engine/stream/tile_stream.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_CONTRACT_RESULTS_MAX = 64 };

/* A further result of the same pass: the product with another vector of the same mode. */
struct slc_contract_more {
    const char *path;     /* as for the first vector */
    const double *values; /* as for the first vector */
    const char *output;   /* path of the result; no two results have the same path */
    /* Set by slc_contract, as in struct slc_contract_report. */
    uint64_t zero_sums;
    struct slc_builder_report build;
};

struct slc_contract_options {
    const struct slc_files *files;
    const char *store;
    const char *output; /* path of the result; NULL if and only if every mode has a vector */
    /* Number of vectors. 0: the tensor is only written to a new store, with the indices of the
     * input. */
    unsigned vector_count;
    struct {
        unsigned mode;        /* 0-based, no mode twice */
        const char *path;     /* .npy file with dims[mode] finite numbers; NULL: use `values` */
        const double *values; /* dims[mode] numbers by index of the input; borrowed */
    } vectors[SLC_MAX_ORDER];
    /* Further results, at most SLC_CONTRACT_RESULTS_MAX - 1. If there are any, there is exactly one
     * vector above, and the result is a store. */
    unsigned more_count;
    struct slc_contract_more *more;
    struct slc_tile_stream *stream; /* reads the tiles; NULL: the file is scanned */
    /* Computes one part of the result, whose nonzeros slc_join (engine/product/join/join.h) adds to
     * those of the other parts. Needs a stream, and no device. The default is the whole result. */
    struct slc_part_choice part;
    /* Device that multiplies some or all tiles; NULL: workers multiply all tiles. */
    const struct slc_tile_products *products;
    enum slc_codec codec;
    enum slc_relabel relabel;
    /* States which fibers the order of the result's nonzeros keeps together. With SLC_FIBERS_AUTO,
     * sums that arrive in the order of the result keep this order; otherwise the builder chooses an
     * order from the nonzeros. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    bool sort;  /* true: sort even sums that arrive in the order of the result */
    bool names; /* true: copy the names of the kept modes and of their indices */
    uint64_t block_bytes;
    uint64_t memory_bytes; /* memory budget; 0 means 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    bool dry_run; /* true: only plan; read no vector and write nothing */
    /* A stop request ends the contraction with SLC_ERR_INTERRUPTED; may be NULL. */
    const struct slc_stop *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and before it is renamed; may be NULL. After this
     * call the caller must not remove unfinished files. */
    void (*publishing)(void);
};

struct slc_contract_report {
    unsigned order; /* order of the result */
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;                  /* nonzeros of the contracted store */
    enum slc_layout_kind layout;   /* layout that was read */
    unsigned layout_mode;          /* mode of the layout, for fiber-n */
    uint64_t layout_fibers;        /* non-empty fibers of fiber-n; otherwise 0 */
    double layout_fibers_possible; /* number of fibers that the mode sizes allow */
    uint64_t layout_blocks;
    uint64_t layout_bytes; /* bytes of the layout's file */
    /* With options.part: the blocks of the part, and the bytes that are read: these blocks (with
     * short vectors twice, except blocks that stay in memory), and blocks that are read once more
     * as a sample before sums are sorted. */
    uint64_t part_blocks, part_bytes, sample_bytes;
    /* For the mode of each vector, the smallest and the largest index that a nonzero has, as
     * indices of the store. */
    struct {
        uint64_t first, last;
        /* Elements of the vector in memory: the used indices if the vector is short (operand.h);
         * before a run, an upper bound. */
        uint64_t held;
        bool relabelled; /* the mode is relabelled, so indices of the input differ */
    } used[SLC_MAX_ORDER];
    uint64_t sums_most;     /* upper bound of the result's nonzeros, from the layout */
    uint64_t least_bytes;   /* smallest sufficient budget, possibly with fewer threads */
    uint64_t process_bytes; /* part of least_bytes for the resident program and libraries */
    unsigned threads;       /* workers that multiplied tiles on the CPU at the same time */
    unsigned workers;       /* all workers, including workers that waited for the device */
    double scan_seconds;    /* time from the first block to the last sum */
    uint64_t zero_sums;     /* sums that are zero and therefore omitted */
    double scalar;          /* result of order 0 */
    bool ordered;           /* sums were written without sorting */
    struct slc_builder_report build; /* result of order 1 or more */
};

/* Contracts the store. Errors: SLC_ERR_USAGE if a mode is repeated or does not exist, if the result
 * is a number although there is an output path, if the result is a store and there is no output
 * path, or if there is no such part, or a part of a number. SLC_ERR_UNSUPPORTED for a part on a
 * device. SLC_ERR_INPUT, with file and position, if a vector has the wrong length, NaN or infinity,
 * or if a sum is beyond the range of f64. SLC_ERR_BUDGET, with the smallest sufficient budget.
 * Errors of reading the store and of the builder. After an error nothing is left on disk,
 * except results that are complete if there are several. */
enum slc_status slc_contract(const struct slc_contract_options *options,
                             struct slc_contract_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
