/* run.json of `sluice cpd`: what report/run_record.h writes, of a command line. */
#ifndef SLC_TOOLS_RUN_JSON_H
#define SLC_TOOLS_RUN_JSON_H

#include "report/run_record.h"
#include "tools/options/options.h"

struct run_record {
    struct slc_run_facts facts; /* command, options and estimate come from what follows */
    const struct command *command;
    int argc;
    char **argv;
    const void *values; /* of the option table */
    json_t *estimate;   /* compared with the run, borrowed; NULL: there was none */
};

/* Writes the record to `path`, atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status run_json_write(const struct run_record *record,
                               const char *path,
                               struct slc_error *err) SLC_NODISCARD;

#endif
