/*
 * `sluice ttv`: a tensor times a vector in one mode or more, as a store of the modes that are left:
 *
 *     Y = X x_n v,   y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * (KB section 2.5: the contracted product with a vector; SpTV). Bounded memory whatever the sizes:
 * tiles of the store are contracted as they are read. Where its order keeps the fibers of the
 * contracted mode together, sums come in the order of the result and are written as they come;
 * elsewhere they are sorted and added up by the builder, as duplicates, in the order of the store.
 * Both give the same store, which depends on the one that is read alone, not on threads or memory.
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
    const char *output;    /* OUT.slc; NULL where every mode has a vector, and only then */
    unsigned vector_count; /* 0: the store itself, in the numbering of the input, sorted anew */
    struct {
        unsigned mode;        /* 0-based, each at most once */
        const char *path;     /* .npy of dims[mode] finite numbers; NULL: .. */
        const double *values; /* .. as many, borrowed, in the numbering of the input */
    } vectors[SLC_MAX_ORDER];
    struct slc_tile_stream *stream; /* of the tiles; NULL: a plain scan of the file */
    /* Of tiles that workers need not multiply by themselves; NULL: they do so with all. */
    const struct slc_tile_products *products;
    enum slc_codec codec;
    enum slc_relabel relabel;
    /* AUTO: sums that come in order stay in that order; others in the one the nonzeros suggest. */
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    bool sort;  /* sums that come in order, too */
    bool names; /* of modes and indices that are left go along */
    uint64_t block_bytes;
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    bool dry_run;                /* only plans: reads no vector and writes nothing */
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and is about to get its name; NULL: nobody is. What
     * is unfinished is not to be removed from then on. */
    void (*publishing)(void);
};

struct slc_contract_report {
    unsigned order; /* of the result */
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;                  /* of the store that was contracted */
    enum slc_layout_kind layout;   /* that was read .. */
    unsigned layout_mode;          /* .. and its mode, where that is fiber-n */
    uint64_t layout_fibers;        /* that are not empty, of fiber-n; elsewhere 0 .. */
    double layout_fibers_possible; /* .. of so many */
    uint64_t layout_blocks;
    uint64_t layout_bytes; /* of its file */
    /* Of the mode of each vector, as the layout numbers it: no index before or after occurs. */
    struct {
        uint64_t first, last;
        bool relabelled; /* the store numbers them otherwise than its input did */
    } used[SLC_MAX_ORDER];
    uint64_t sums_most;     /* nonzeros of the result at most, as far as the layout tells */
    uint64_t least_bytes;   /* smallest budget that works, with fewer threads if need be */
    uint64_t process_bytes; /* of it the program and its libraries, as they were resident */
    unsigned threads;       /* that multiplied by themselves .. */
    unsigned workers;       /* .. of so many that took tiles */
    double scan_seconds;    /* from the first block to the last sum */
    uint64_t zero_sums;     /* runs of a fiber whose products added up to zero: not built */
    double scalar;          /* order 0 */
    bool ordered;           /* sums were written as they came */
    struct slc_builder_report build; /* order 1 or more */
};

/*
 * Errors: SLC_ERR_USAGE (a mode twice, or that the tensor has not; an output for a number, or none
 * for a store), SLC_ERR_INPUT naming file and position (a vector of another length, NaN or
 * infinity; a sum beyond f64), SLC_ERR_BUDGET naming the smallest budget, those of reading the
 * store and of the builder. Nothing is left on disk then.
 */
enum slc_status slc_contract(const struct slc_contract_options *options,
                             struct slc_contract_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
