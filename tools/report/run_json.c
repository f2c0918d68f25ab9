/* See run_json.h. */
#include "tools/report/run_json.h"

#include "tools/progress/json_out.h"
#include "tools/progress/log_json.h"

#include <stdlib.h>

enum slc_status
run_json_write(const struct run_record *record, const char *path, struct slc_error *err)
{
    struct slc_run_facts facts = record->facts;
    json_t *command = json_command_line(record->argc, record->argv);
    json_t *options = options_to_json(record->command, record->values);
    char *text = NULL;
    enum slc_status status = json_out_complete(err);

    facts.command = command;
    facts.options = options;
    facts.estimate = record->estimate;
    if (status == SLC_OK) {
        status = slc_run_record_text(&facts, &text, err);
    }
    if (status == SLC_OK) {
        status = slc_run_record_write(text, path, err);
    }
    free(text);
    json_decref(command);
    json_decref(options);
    return status;
}
