/* The output of `sluice --version`: build configuration, features and library versions, as defined
 * by tools/meson.build. JSON and text are printed from the same record, so they agree. */
#ifndef SLC_TOOLS_VERSION_INFO_H
#define SLC_TOOLS_VERSION_INFO_H

#include <jansson.h>

/* Returns the record, whose "schema" is "sluice-version-1". A CUDA build queries the devices, which
 * loads the driver. The caller releases the record. json_out_complete reports missing memory. */
json_t *version_info_json(void);

/* Prints the record on standard output as text. */
void version_info_print(const json_t *features);

#endif
