/* See info_checkpoint.h. */
#include "tools/report/info_checkpoint.h"

#include "report/saved_run.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_text(const struct slc_saved_run *run)
{
    const struct slc_checkpoint_reader *reader = run->reader;
    const struct slc_cp_saved *saved = &run->saved;
    const struct slc_checkpoint_info *info = slc_checkpoint_reader_info(reader);
    struct format_text bytes;
    struct format_text seconds;
    char written[32];

    printf("%s\n", slc_checkpoint_reader_path(reader));
    printf("  %-18s %" PRIu64 ", whole, %s in %u sections, of %s\n", "generation", info->generation,
           format_data(&bytes, (double)info->file_bytes), info->section_count,
           slc_saved_run_written(saved->written, written, sizeof written));
    printf("  %-18s iteration %u, mode %u%s\n", "goes on with", saved->iterations + 1,
           saved->mode_order[saved->place] + 1,
           saved->pending != SLC_MAX_ORDER ? ", whose MTTKRP it has" : "");
    if (saved->part.position != 0) {
        printf("  %-18s behind %" PRIu64 " %s of a pass for %s\n", "", saved->part.position,
               saved->part.fused ? "ranges of rows" : "blocks",
               saved->part.fused ? "it and the next mode" : "it");
    }
    printf("  %-18s %.8f after %u iteration%s\n", "fit", saved->fit, saved->iterations,
           saved->iterations == 1 ? "" : "s");
    printf("  %-18s %s so far, resumed %u time%s; %" PRIu64 " checkpoint%s in %.3fs\n", "time",
           format_seconds(&seconds, saved->times.total), saved->checkpoints.resumes,
           saved->checkpoints.resumes == 1 ? "" : "s", saved->checkpoints.count,
           saved->checkpoints.count == 1 ? "" : "s", saved->checkpoints.seconds);
    for (const char *line = run->identity; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *equals = memchr(line, '=', length);
        const int name = equals != NULL ? (int)(equals - line) : 0;

        if (equals != NULL) {
            printf("  %-18.*s %.*s\n", name, line, (int)length - name - 1, equals + 1);
        }
        line += length + (line[length] == '\n');
    }
}

int info_checkpoint(const char *path, bool json)
{
    struct slc_saved_run run;
    struct slc_error err = SLC_ERROR_INIT;
    json_t *object = NULL;
    enum slc_status status = slc_saved_run_open(path, false, &run, &err);

    if (status != SLC_OK) {
        return console_error(&err);
    }
    if (json) {
        status = slc_saved_run_json(&run, &object, &err);
        if (status == SLC_OK) {
            status = json_out_print(object, &err);
        }
    } else {
        print_text(&run);
    }
    slc_saved_run_close(&run);
    return status == SLC_OK ? 0 : console_error(&err);
}
