/*
 * `sluice export`: a store back to FROSTT text (1-based), nonzeros in layout order. Values are
 * written with the fewest digits that read back to the same bits.
 */
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
    unsigned index_base; /* 0 or 1 */
    uint64_t memory_bytes;
    unsigned threads;
    bool overwrite;
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    /* Nonzeros written, of all; NULL: not told. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* *lines: rows written. Errors: those of the store (SLC_ERR_DAMAGED ..) and of writing. */
enum slc_status slc_export_tns(const struct slc_export_options *options,
                               uint64_t *lines,
                               struct slc_error *err) SLC_NODISCARD;

/* What an export would take. */
struct slc_export_forecast {
    uint64_t memory_bytes; /* peak */
    uint64_t fixed_bytes;  /* of it, what is not the threads' */
    unsigned workers;
    uint64_t scans; /* of the store */
    bool in_parts;  /* a part, or all of it, is written when it has been sorted */
    uint64_t read_bytes, nnz;
    double output_bytes; /* of text judged by a trial, as the following; 0: none was made */
    double decode_seconds, format_seconds;
};

/* `seconds`: of a trial; 0: none. Errors: those of slc_export_tns, of its beginning. */
enum slc_status slc_export_forecast(const struct slc_export_options *options,
                                    double seconds,
                                    struct slc_export_forecast *forecast,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * `sluice export` to the binary forms of list_form.h. Tiles are decoded by all threads; in the
 * order of the file each learns how many nonzeros come before it, and then its part of every list
 * is written to its place, whatever the others do. Forms whose rows have to ascend (.npz of
 * pydata/sparse) take as many scans as it takes to sort all nonzeros in the memory there is
 * (row_order.h).
 */

/*
 * As slc_export_tns, but that options->index_base is not looked at and `output` is a file.
 * Errors: SLC_ERR_UNSUPPORTED where the form cannot hold the tensor; those of slc_export_tns.
 */
enum slc_status slc_export_lists(const struct slc_export_options *options,
                                 enum slc_list_form form,
                                 uint64_t *nnz,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * What that would take; the size of the file is exact. `seconds`: of a trial; 0: none. Errors:
 * those of slc_export_lists, of its beginning.
 */
enum slc_status slc_export_lists_forecast(const struct slc_export_options *options,
                                          enum slc_list_form form,
                                          double seconds,
                                          struct slc_export_forecast *forecast,
                                          struct slc_error *err) SLC_NODISCARD;

#endif
