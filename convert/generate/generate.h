/* Implements `sluice generate`: makes random sparse tensors of any size in bounded memory. The
 * tensor does not depend on the number of threads, because random numbers are counter-based. */
#ifndef SLC_CONVERT_GENERATE_H
#define SLC_CONVERT_GENERATE_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

/* Distribution of the nonzeros. */
enum slc_distribution {
    SLC_DIST_UNIFORM,       /* distinct coordinates, uniformly distributed: exactly nnz nonzeros */
    SLC_DIST_ZIPF,          /* per mode, P(i) ~ 1 / (i + 1)^s: small indices are frequent */
    SLC_DIST_ZIPF_SHUFFLED, /* SLC_DIST_ZIPF with permuted indices */
    /* Best and worst case for the reuse of factor rows. Best: the nonzeros fill a box at the
     * origin, which touches the fewest rows possible for nnz nonzeros. Worst: no two nonzeros share
     * an index in any mode, so no row is touched twice and every fiber has one nonzero. */
    SLC_DIST_BEST,
    SLC_DIST_WORST, /* every mode size must be at least nnz */
    /* Best cases of [XPLAT] section 5. Fibers or slices of one mode with a nonzero in every cell,
     * at distinct random places. If the nonzeros do not fill them, all have the same number of
     * nonzeros or differ by one. */
    SLC_DIST_DENSE_FIBERS, /* for TTM */
    SLC_DIST_DENSE_SLICES, /* for MTTKRP */
    /* fiber_count fibers of one mode at distinct random places; their numbers of nonzeros are the
     * same or differ by one, and the indices of the nonzeros in the mode are random */
    SLC_DIST_FIBERS
};

struct slc_generate_options {
    const struct slc_files *files;
    const char *output; /* store if the name ends with .slc, else .tns text; "-": standard output */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz; /* number of entries; Zipf may repeat coordinates, which a store combines */
    enum slc_distribution distribution;
    double zipf_exponent;
    /* Mode of the distribution (modes start at 1): mode of the TTM of SLC_DIST_BEST, where 0 means
     * best for MTTKRPs; mode of fibers or slices. */
    unsigned mode;
    uint64_t fiber_count; /* number of fibers of SLC_DIST_FIBERS, at most nnz */
    uint32_t rank; /* above 0: values of a model of this rank; 0: integers 1 to 9 from a hash */
    /* standard deviation of the noise, relative to the root mean square of the model's values */
    double noise;
    uint64_t seed;
    enum slc_codec codec; /* the members from `codec` to `block_bytes` apply only to stores */
    enum slc_relabel relabel;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and about to be renamed to its final name. From then
     * on, a cleanup must not remove the files of the store. NULL: no callback. */
    void (*publishing)(void);
};

struct slc_generate_report {
    uint64_t entries;
    bool store;          /* the output is a store, not text */
    uint64_t text_bytes; /* size of the text, for text output */
    /* True if a reader of the text cannot find the mode sizes: the last slices of a mode are
     * empty. */
    bool dims_lost;
    struct slc_builder_report build; /* report of the builder, if the output is a store */
};

/* Estimated cost of slc_generate, measured on the first entries. */
struct slc_generate_forecast {
    bool store;
    unsigned workers;
    uint64_t fixed_bytes;               /* memory of process, factors and columns of entries */
    uint64_t text_memory_bytes;         /* memory of buffers, for text output */
    uint64_t push_bytes, sort_bytes;    /* memory of the builder, if the output is a store */
    uint64_t spill_bytes, output_bytes; /* bytes on disk */
    double draw_seconds; /* wall-clock time to make the entries and to format text output */
    /* wall-clock times of the phases of the builder, if the output is a store */
    double scatter_seconds, sort_seconds, encode_seconds;
};
/* Estimates the cost of slc_generate. Errors: those that slc_generate reports before it writes. */
enum slc_status slc_generate_forecast(const struct slc_generate_options *options,
                                      struct slc_generate_forecast *forecast,
                                      struct slc_error *err) SLC_NODISCARD;

/* Makes the tensor. Errors: SLC_ERR_USAGE, for example if nnz exceeds the product of mode sizes;
 * errors of the builder and of file operations. */
enum slc_status slc_generate(const struct slc_generate_options *options,
                             struct slc_generate_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
