/* See reshape_options.h. */
#include "reshape_options.h"

#include "console.h"
#include "format.h"
#include "progress.h"
#include "unfinished.h"

#include <stdio.h>

const char *const reshape_codec_choices[] = {"keep", "packed", "lz4", "blco", NULL};
const char *const reshape_relabel_choices[] = {"keep", "none", "frequency", NULL};

enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < given->count && status == SLC_OK; i++) {
        status = slc_transforms_add(transforms, given->text[i], err);
    }
    return status;
}

static enum slc_status fill_options(const struct build_options *build,
                                    const struct option_strings *transforms,
                                    struct slc_reshape_options *out,
                                    struct slc_error *err)
{
    enum slc_status status = reshape_transforms(transforms, &out->transforms, err);

    /* Zero: as the store that is reshaped has it. */
    if (status == SLC_OK && build->codec != reshape_codec_choices[0] &&
        !slc_codec_parse(build->codec, &out->codec)) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "--codec %s is not known to this library", build->codec);
    }
    out->keep_numbering = build->relabel == reshape_relabel_choices[0];
    out->relabel =
        build->relabel == reshape_relabel_choices[2] ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    out->block_bytes = build->block_bytes;
    out->memory_bytes = build->memory;
    out->temp_folder = build->temp_dir;
    out->max_temp = build->max_temp;
    out->threads = build_threads(build);
    out->overwrite = build->force;
    out->progress = progress_phase;
    out->publishing = unfinished_publishing;
    return status == SLC_OK ? build_fibers(build, &out->fibers, &out->run, err) : status;
}

int reshape_run(const struct build_options *build,
                const struct option_strings *transforms,
                struct slc_reshape_options *reshape)
{
    struct slc_reshape_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    if (build_start(build, reshape->output, &err) != SLC_OK ||
        fill_options(build, transforms, reshape, &err) != SLC_OK ||
        slc_reshape(reshape, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_settle();
    if (build->quiet) {
        return 0;
    }
    printf("Wrote %s from %s\n", reshape->output, reshape->store);
    printf("  %-12s %s\n", "dims", format_dims(dims, report.order, report.dims));
    printf("  %-12s %s of %s\n", "nonzeros", format_count(&a, report.build.summary.nnz),
           format_count(&b, report.nnz));
    build_report(&report.build, report.order, report.dims);
    build_report_memory(build->memory);
    return 0;
}
