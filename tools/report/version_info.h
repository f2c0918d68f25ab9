/*
 * What `sluice --version` tells: how this sluice was built, what it can do, and the libraries under
 * it, by what tools/meson.build defines. One record, printed as JSON or in words, so that the two
 * cannot disagree.
 */
#ifndef SLC_TOOLS_VERSION_INFO_H
#define SLC_TOOLS_VERSION_INFO_H

#include <jansson.h>

/*
 * The record, "schema" "sluice-version-1". Asks CUDA for devices where it is built with it, which
 * loads the driver. Owns: the caller releases it; what is missing for want of memory
 * json_out_complete tells.
 */
json_t *version_info_json(void);

/* Prints it on standard output, in lines. */
void version_info_print(const json_t *features);

#endif
