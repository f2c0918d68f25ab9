/* The factors of a finished run in another form (report/export_run.h), as the command does it. */
#ifndef SLC_TOOLS_EXPORT_RUN_H
#define SLC_TOOLS_EXPORT_RUN_H

#include "base/error/error.h"
#include "storage/model/model.h"
#include "tools/forecast/forecast.h"

#include <stdbool.h>
#include <stdint.h>

struct export_run_options {
    const char *run;    /* folder with mode-1.npy, .. */
    const char *output; /* as slc_model_write takes it */
    enum slc_model_form form;
    uint64_t memory_bytes;
    bool overwrite;
    bool quiet;
    struct forecast_options forecast; /* with dry_run nothing is written, and what it takes told */
};

/*
 * Streams the factors from their files into the form. A signal leaves no unfinished file. Errors:
 * those of slc_export_run; SLC_ERR_BUDGET of a dry run also where the disk has no room.
 */
enum slc_status export_run(const struct export_run_options *options,
                           struct slc_error *err) SLC_NODISCARD;

#endif
