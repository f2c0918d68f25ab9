/*
 * `sluice ttv`: a tensor times a vector in one or more modes; the result is a store of the
 * remaining modes:
 *
 *     Y = X x_n v,   y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * ([Kolda2009] section 2.5: the contracted product with a vector; SpTV). Memory is bounded for any
 * tensor size: tiles of the store are contracted as they are read. If the order of the store keeps
 * fibers of the contracted mode together, sums arrive in the order of the result and are written
 * directly; otherwise the builder sorts the sums and adds sums of equal coordinates as duplicates,
 * in the order of the store. Both ways produce the same store, which depends only on the input
 * store, not on threads or memory.
 */
#ifndef SLC_ENGINE_CONTRACT_H
#define SLC_ENGINE_CONTRACT_H

#include "base/block.h"
#include "base/error/error.h"
#include "convert/build/builder.h"
#include "engine/product/tile_products.h"
#include "engine/stream/tile_stream.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_contract_options {
    const struct slc_files *files;
    const char *store;
    const char *output;    /* OUT.slc; NULL if and only if every mode has a vector */
    unsigned vector_count; /* 0: rewrite the store itself, sorted in the order of the input */
    struct {
        unsigned mode;        /* 0-based, no mode twice */
        const char *path;     /* .npy file of dims[mode] finite numbers; NULL: use `values` */
        const double *values; /* dims[mode] numbers, borrowed, in the order of the input */
    } vectors[SLC_MAX_ORDER];
    struct slc_tile_stream *stream; /* reads the tiles; NULL: a plain scan of the file */
    /* Multiplies tiles instead of the workers; NULL: workers multiply all tiles. */
    const struct slc_tile_products *products;
    enum slc_codec codec;
    enum slc_relabel relabel;
    /* AUTO: sums that arrive in order keep that order; otherwise the sums get the order that the
     * nonzeros suggest. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    bool sort;  /* sort even sums that arrive in order */
    bool names; /* copy names of the kept modes and their indices */
    uint64_t block_bytes;
    uint64_t memory_bytes; /* memory budget; 0 means 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    bool dry_run; /* only plans: reads no vector and writes nothing */
    /* A stop request ends the contraction with SLC_ERR_INTERRUPTED; may be NULL. */
    const struct slc_stop *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and is about to be renamed; may be NULL. From then on
     * unfinished files must not be removed. */
    void (*publishing)(void);
};

struct slc_contract_report {
    unsigned order; /* order of the result */
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;                  /* nonzeros of the contracted store */
    enum slc_layout_kind layout;   /* layout that was read */
    unsigned layout_mode;          /* mode of the layout, for fiber-n */
    uint64_t layout_fibers;        /* non-empty fibers of fiber-n; otherwise 0 */
    double layout_fibers_possible; /* number of fibers that are possible */
    uint64_t layout_blocks;
    uint64_t layout_bytes; /* bytes of the layout's file */
    /* For the mode of each vector, in the order of the layout: all used indices are in the range
     * first .. last. */
    struct {
        uint64_t first, last;
        bool relabelled; /* the order of the store differs from the order of the input */
    } used[SLC_MAX_ORDER];
    uint64_t sums_most;     /* upper bound of the result's nonzeros, from the layout */
    uint64_t least_bytes;   /* smallest sufficient budget, possibly with fewer threads */
    uint64_t process_bytes; /* the part of least_bytes for the resident program and libraries */
    unsigned threads;       /* workers that multiplied tiles on the CPU at the same time */
    unsigned workers;       /* all workers, including those that waited for products */
    double scan_seconds;    /* time from the first block to the last sum */
    uint64_t zero_sums;     /* runs of a fiber that sum to zero and are omitted */
    double scalar;          /* result of order 0 */
    bool ordered;           /* sums were written without sorting */
    struct slc_builder_report build; /* result of order 1 or more */
};

/*
 * Errors: SLC_ERR_USAGE (a repeated or missing mode; an output path although the result is a
 * number, or no output path although it is a store), SLC_ERR_INPUT naming file and position (a
 * vector of the wrong length, NaN or infinity; a sum beyond the range of f64), SLC_ERR_BUDGET
 * naming the smallest budget, those of reading the store and of the builder. Nothing is left on
 * disk after an error.
 */
enum slc_status slc_contract(const struct slc_contract_options *options,
                             struct slc_contract_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
