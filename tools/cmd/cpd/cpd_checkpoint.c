#include "tools/cmd/cpd/cpd_run.h"

#include "engine/solve/cp_checkpoint.h"
#include "report/json_plan.h"
#include "storage/checkpoint/checkpoint.h"
#include "tools/progress/console.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum slc_status cpd_checkpoint_interval(const char *text, double *seconds, struct slc_error *err)
{
    char *end;

    if (strcmp(text, "auto") == 0) {
        *seconds = -1;
        return SLC_OK;
    }
    *seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*seconds) || *seconds < 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--checkpoint-interval: '%s' is neither auto nor a number of seconds of 0 or more",
            text);
    }
    return SLC_OK;
}

enum slc_status cpd_checkpoint_open(struct cpd_checkpoint *checkpoint,
                                    const char *folder,
                                    bool own_folder,
                                    bool restart,
                                    struct slc_error *err)
{
    if (folder == NULL || folder[0] == '\0') {
        return SLC_OK;
    }
    SLC_TRY(slc_checkpoint_open(slc_files_system(), folder, restart, &checkpoint->file, err));
    checkpoint->folder = folder;
    checkpoint->own_folder = own_folder;
    const struct slc_error *fault = slc_checkpoint_fault(checkpoint->file);
    if (fault->status != SLC_OK) {
        console_note("warning: %s: %s; resuming from the previous generation", fault->file,
                     fault->message);
    }
    return SLC_OK;
}

bool cpd_checkpoint_order(const struct cpd_checkpoint *checkpoint, unsigned order, unsigned *modes)
{
    return checkpoint->file != NULL && slc_cp_saved_order(checkpoint->file, order, modes);
}

void cpd_checkpoint_close(struct cpd_checkpoint *checkpoint)
{
    slc_checkpoint_close(checkpoint->file);
    checkpoint->file = NULL;
}

enum slc_status cpd_checkpoint_remove(struct cpd_checkpoint *checkpoint, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();

    if (checkpoint->file == NULL) {
        return SLC_OK;
    }
    SLC_TRY(slc_checkpoint_remove(checkpoint->file, err));
    /* Removing the folder fails if it contains other files. */
    if (checkpoint->own_folder) {
        (void)files->remove_folder(files->self, checkpoint->folder);
    }
    return SLC_OK;
}

void cpd_checkpoint_resumed(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_resume *resume,
                            unsigned order,
                            json_t *iterations,
                            struct log_json *log,
                            bool quiet)
{
    checkpoint->seconds_before = resume->seconds;
    checkpoint->iteration = resume->iteration;
    checkpoint->mode = resume->mode;
    for (unsigned i = 0; i < resume->past_count; i++) {
        (void)json_array_append_new(iterations, slc_json_iteration(&resume->past[i], order));
    }
    log_json_resume(log, resume, checkpoint->folder);
    if (!quiet) {
        printf("  resumed at iteration %u, mode %u, after %.1fs, from %s\n", resume->iteration,
               resume->mode + 1, resume->seconds, checkpoint->folder);
        (void)fflush(stdout);
    }
}

void cpd_checkpoint_written(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_checkpointed *written,
                            struct log_json *log)
{
    checkpoint->iteration = written->iteration;
    checkpoint->mode = written->mode;
    log_json_checkpoint(log, written, checkpoint->folder);
}

void cpd_checkpoint_report(const struct cpd_checkpoint *checkpoint)
{
    if (checkpoint->iteration > 0) {
        console_note(
            "repeat the command to resume at iteration %u, mode %u, from the checkpoint in %s",
            checkpoint->iteration, checkpoint->mode + 1, checkpoint->folder);
    } else if (checkpoint->file != NULL) {
        console_note("no checkpoint was written yet: repeating the command starts over");
    }
}
