/* The frame of a benchmark; see run.h. */
#include "tools/bench/measure/run.h"

#include "tools/bench/measure/record.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

int bench_run(const struct command *command, int argc, char **argv, const struct bench_steps *steps)
{
    struct operands operands;

    return bench_run_many(command, argc, argv, steps, &operands);
}

int bench_run_many(const struct command *command,
                   int argc,
                   char **argv,
                   const struct bench_steps *steps,
                   struct operands *operands)
{
    struct slc_error err = SLC_ERROR_INIT;
    json_t *record = NULL;
    enum slc_status status;
    int code = 0;

    if (!command_begin(command, argc, argv, steps->values, operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    status = bench_record_start(command, steps->values, &record, &err);
    if (status == SLC_OK) {
        status = steps->measure(steps->state, operands->count > 0 ? operands->text[0] : NULL,
                                record, &err);
    }
    if (status == SLC_OK && steps->common->json) {
        status = bench_record_print(record, &err);
    } else if (status == SLC_OK) {
        steps->print(record);
    }
    code = status == SLC_OK ? 0 : console_error(&err);
    if (steps->close != NULL) {
        steps->close(steps->state);
    }
    json_decref(record);
    return code;
}
