/* Options of stores that are written. */
#include "api/output.h"

#include "convert/build/sort/fibers.h"

#include <string.h>

enum slc_status api_check_output(const struct sluice_output_options *output, struct slc_error *err)
{
    const enum slc_status status =
        API_CHECK_CHOICES(err, {"codec", (int)output->codec, SLUICE_CODEC_BLCO},
                          {"relabel", (int)output->relabel, SLUICE_RELABEL_FREQUENCY},
                          {"fibers", (int)output->fibers, SLUICE_FIBERS_MODE});

    if (status == SLC_OK &&
        (output->fiber_bits > SLC_FIBER_BITS_MAX ||
         (output->fibers == SLUICE_FIBERS_MODE && output->fiber_mode >= SLC_MAX_ORDER))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "fibers of mode %u in pieces of 2^%u indices: a mode below %d and at most "
                        "%d bits are possible",
                        output->fiber_mode, output->fiber_bits, SLC_MAX_ORDER, SLC_FIBER_BITS_MAX);
    }
    return status;
}

struct slc_fiber_run api_fiber_run(const struct sluice_output_options *output)
{
    struct slc_fiber_run run = {0};

    if (output->fibers == SLUICE_FIBERS_MODE) {
        run.mode = output->fiber_mode;
        run.bits = output->fiber_bits != 0 ? output->fiber_bits : SLC_FIBER_BITS;
    }
    return run;
}

uint32_t api_relabelled_modes(const struct slc_relabel_report *relabel, unsigned order)
{
    uint32_t modes = 0;

    for (unsigned n = 0; n < order; n++) {
        modes |= relabel->verdict[n] == SLC_RELABELLED ? 1U << n : 0U;
    }
    return modes;
}

enum slc_status
api_parse_transforms(const char *text, struct slc_transforms *transforms, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (text != NULL && status == SLC_OK) {
        char step[64];
        const size_t length = strcspn(text, ",");

        if (length >= sizeof step) {
            return slc_fail(err, SLC_ERR_USAGE, "transform '%s': a step of this length is unknown",
                            text);
        }
        memcpy(step, text, length);
        step[length] = '\0';
        status = slc_transforms_add(transforms, step, err);
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return status;
}
