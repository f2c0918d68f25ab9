/* Builds additional layouts of a store that is complete but not yet renamed to its final name. */
#ifndef SLC_CONVERT_BUILD_LAYOUTS_H
#define SLC_CONVERT_BUILD_LAYOUTS_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

/* Builds each layout of options->layouts that the store at `folder` lacks, and lists it in the
 * report. The caller has locked the store. A layout that does not fit in memory is skipped and
 * logged. Errors: those of slc_relayout_open and slc_relayout_add; after an error, the store is
 * valid and has the layouts that its manifest lists. */
enum slc_status slc_build_layouts(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
