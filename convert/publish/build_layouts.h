/* Further layouts of a store that is complete and has not got its name yet. */
#ifndef SLC_CONVERT_BUILD_LAYOUTS_H
#define SLC_CONVERT_BUILD_LAYOUTS_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

/*
 * Builds options->layouts in the store at `folder`, which the caller has locked, as far as it has
 * none of them, and tells of them in the report. One that does not fit into memory is left out,
 * which is logged. Errors: those of slc_relayout_open and slc_relayout_add; the store is whole
 * after one, with the layouts that its manifest lists.
 */
enum slc_status slc_build_layouts(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
