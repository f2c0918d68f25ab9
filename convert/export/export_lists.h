/*
 * `sluice export` to the binary forms of list_form.h. Tiles are decoded by all threads; in the
 * order of the file each learns how many nonzeros come before it, and then its part of every list
 * is written to its place, whatever the others do. Forms whose rows have to ascend (.npz of
 * pydata/sparse) take as many scans as it takes to sort all nonzeros in the memory there is
 * (row_order.h).
 */
#ifndef SLC_CONVERT_EXPORT_LISTS_H
#define SLC_CONVERT_EXPORT_LISTS_H

#include "convert/export/export.h"
#include "convert/export/list_form.h"

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
