/*
 * The record of `bench roofline` as a picture: both axes logarithmic, a line per roof with its
 * name, a marker per kernel, mode, rank and tensor, and a legend. The file stands for itself, names
 * nothing outside of it, and follows the viewer's choice of light or dark.
 */
#ifndef SLC_TOOLS_BENCH_ROOFLINE_SVG_H
#define SLC_TOOLS_BENCH_ROOFLINE_SVG_H

#include "base/error/error.h"

#include <jansson.h>

/* Whether `path` can be written, so that a benchmark does not end in vain. Errors: SLC_ERR_IO. */
enum slc_status roofline_svg_try(const char *path, struct slc_error *err) SLC_NODISCARD;

/* Draws the record and puts the file in its place. Errors: SLC_ERR_MEMORY, SLC_ERR_IO, .. */
enum slc_status
roofline_svg_write(const json_t *record, const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
