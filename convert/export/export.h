/* Implements `sluice export`: writes the nonzeros of a store as FROSTT text, in the order of the
 * layout. Values are written with the fewest digits from which the same bits can be read. */
#ifndef SLC_CONVERT_EXPORT_H
#define SLC_CONVERT_EXPORT_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "convert/export/list_form.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_export_options {
    const struct slc_files *files;
    const char *store;
    const char *output;  /* "-" for standard output */
    unsigned index_base; /* smallest index in the text: 0 or 1 */
    /* Starts the text with a header that states the index base, the mode sizes and the number of
     * nonzeros: the header of extended FROSTT for base 1, or of GenTen for base 0. */
    bool header;
    uint64_t memory_bytes;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called with the number of nonzeros written and the total number. NULL: no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_export_report {
    uint64_t nnz; /* number of rows written */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    /* True if a reader cannot find the index base in the text: it is 0, but no index is 0. */
    bool base_lost;
    /* True if a reader cannot find the mode sizes: the last slices of a mode are empty. */
    bool dims_lost;
};

/* Writes the text. Errors: those of the store, such as SLC_ERR_DAMAGED, and of writing. */
enum slc_status slc_export_tns(const struct slc_export_options *options,
                               struct slc_export_report *report,
                               struct slc_error *err) SLC_NODISCARD;

/* Estimated cost of an export. */
struct slc_export_forecast {
    uint64_t memory_bytes; /* peak memory */
    uint64_t fixed_bytes;  /* part of memory_bytes that does not depend on the number of threads */
    unsigned workers;
    uint64_t scans; /* number of reads of the whole store */
    /* True if the nonzeros do not fit in memory and are sorted and written in several parts. */
    bool in_parts;
    uint64_t read_bytes, nnz;
    double output_bytes; /* estimated in a trial, like the seconds below; 0: no trial */
    double decode_seconds, format_seconds;
};

/* Estimates the cost of slc_export_tns. `seconds`: time of a trial; 0: no trial. Errors: those that
 * slc_export_tns reports before it writes. */
enum slc_status slc_export_forecast(const struct slc_export_options *options,
                                    double seconds,
                                    struct slc_export_forecast *forecast,
                                    struct slc_error *err) SLC_NODISCARD;

/* The next functions export to the binary forms of list_form.h. All threads decode tiles. In file
 * order, each thread receives the number of nonzeros before its tile. It then writes the tile's
 * part of every list at the matching offset, independently of other threads. Forms in which
 * nonzeros must ascend in row-major order (.npz of pydata/sparse) are written in parts that fit in
 * memory, with one scan per part (row_order.h). */

/* Like slc_export_tns, but writes a binary form. options->index_base is ignored, and
 * options->output must be a file. Errors: SLC_ERR_UNSUPPORTED if the form cannot hold the tensor;
 * those of slc_export_tns. */
enum slc_status slc_export_lists(const struct slc_export_options *options,
                                 enum slc_list_form form,
                                 uint64_t *nnz,
                                 struct slc_error *err) SLC_NODISCARD;

/* Estimates the cost of slc_export_lists; the size of the file is exact. `seconds`: time of a
 * trial; 0: no trial. Errors: those that slc_export_lists reports before it writes. */
enum slc_status slc_export_lists_forecast(const struct slc_export_options *options,
                                          enum slc_list_form form,
                                          double seconds,
                                          struct slc_export_forecast *forecast,
                                          struct slc_error *err) SLC_NODISCARD;

#endif
