/* What options say of a store that is written: sluice_output_options in internal terms. */
#ifndef SLC_API_OUTPUT_H
#define SLC_API_OUTPUT_H

#include "api/call.h"
#include "convert/build/builder.h"
#include "convert/build/sort/transform.h"
#include "sluice/convert.h"

/* Errors: SLC_ERR_USAGE for values that are in no enumeration, and for a mode or bits of fibers
 * that are out of range. */
enum slc_status api_check_output(const struct sluice_output_options *output,
                                 struct slc_error *err) SLC_NODISCARD;

/* The fibers that are kept together, of checked options. */
struct slc_fiber_run api_fiber_run(const struct sluice_output_options *output);

/* Sets what internal options of any kind say of a store that is written, of checked options. */
#define API_SET_OUTPUT(to, output)                                                                 \
    do {                                                                                           \
        (to)->codec = (output)->codec == SLUICE_CODEC_DEFAULT ? SLC_CODEC_PACKED                   \
                                                              : (enum slc_codec)(output)->codec;   \
        (to)->relabel = (output)->relabel == SLUICE_RELABEL_FREQUENCY ? SLC_RELABEL_FREQUENCY      \
                                                                      : SLC_RELABEL_NONE;          \
        (to)->fibers = (enum slc_fibers)(output)->fibers;                                          \
        (to)->run = api_fiber_run(output);                                                         \
        (to)->block_bytes = (output)->block_bytes;                                                 \
        (to)->temp_folder = (output)->temp_folder;                                                 \
        (to)->max_temp = (output)->max_temp_bytes;                                                 \
        (to)->overwrite = (output)->overwrite != 0;                                                \
    } while (0)

/* The set of modes that a builder has relabelled. */
uint32_t api_relabelled_modes(const struct slc_relabel_report *relabel, unsigned order);

/* Adds the steps of text like "abs,log1p"; NULL: none. Errors: SLC_ERR_USAGE. */
enum slc_status api_parse_transforms(const char *text,
                                     struct slc_transforms *transforms,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
