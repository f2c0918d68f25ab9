/* The runs of a sweep, made of the options of the command; see cpd_sweep.h. */
#include "base/clock.h"
#include "console.h"
#include "cpd_run.h"
#include "format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the runs of a sweep have in common. */
struct sweep_runs {
    const struct cpd *cpd;
    const struct operands *operands;
};

static int run_of_sweep(void *context, struct cpd_sweep_run *run)
{
    const struct sweep_runs *runs = context;
    struct cpd cpd = {.args = runs->cpd->args,
                      .command = runs->cpd->command,
                      .argc = runs->cpd->argc,
                      .argv = runs->cpd->argv,
                      .session = {.stream = NULL},
                      .log = runs->cpd->log,
                      .start_ns = slc_clock_ns(),
                      .write_seconds = -1,
                      .sweep = run};

    cpd.args.ranks = (struct option_counts){1, {run->record.rank}};
    cpd.args.rank = run->record.rank;
    cpd.args.runs = 1;
    cpd.args.seed = run->record.seed;
    cpd.args.folder = run->folder;
    cpd.args.max_seconds = run->max_seconds;
    cpd.args.quiet = !runs->cpd->args.verbose;
    return cpd_run_one(&cpd, runs->operands);
}

static void put(json_t *identity, const char *name, const char *format, ...) SLC_PRINTF(3, 4);
static void put(json_t *identity, const char *name, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)json_object_set_new(identity, name, json_string(text));
}

/* What decides the results of all runs beside rank and seed; the rest is with their checkpoints. */
static json_t *sweep_identity(const struct cpd *cpd)
{
    const struct arguments *args = &cpd->args;
    const struct slc_manifest *manifest = &cpd->session.store.manifest;
    char dims[FORMAT_DIMS_BYTES];
    json_t *identity = json_object();

    put(identity, "tensor content", "%016" PRIx64, manifest->content_sum);
    put(identity, "tensor dims", "%s", format_dims(dims, manifest->order, manifest->dims));
    put(identity, "tensor nonzeros", "%" PRIu64, manifest->nnz);
    put(identity, "iterations", "%" PRIu64, args->iterations);
    put(identity, "tolerance", "%.17g", args->tolerance);
    put(identity, "regularization", "%.17g", args->regularization);
    put(identity, "precision", "%s", args->session.precision);
    put(identity, "deterministic", "%s", args->session.deterministic ? "yes" : "no");
    put(identity, "held out", "%.17g, seed %" PRIu64, args->session.holdout, args->holdout_seed);
    return identity;
}

/* Plans for the largest rank: what does not fit is told before the first run. */
static enum slc_status
prepare_sweep(void *context, uint32_t rank, json_t **identity, struct slc_error *err)
{
    const struct sweep_runs *runs = context;
    struct cpd cpd = {.args = runs->cpd->args, .session = {.stream = NULL}};
    enum slc_status status =
        session_open(&cpd.session, runs->operands->text[0], cpd.args.session.memory, err);

    if (status == SLC_OK) {
        status = session_plan(&cpd.session, &cpd.args.session, SLC_OP_CPD, 0, rank, err);
    }
    if (status == SLC_OK && !cpd.args.quiet) {
        report_tensor(&cpd.session.store);
        report_plan(&cpd.session.plan, cpd.session.store.manifest.order);
    }
    *identity = status == SLC_OK ? sweep_identity(&cpd) : NULL;
    session_close(&cpd.session);
    return status;
}

/* Refuses what a sweep has no place for. */
static enum slc_status check_sweep(const struct arguments *args, struct slc_error *err)
{
    const char *without = args->stem != NULL      ? "--stem"
                          : args->ktensor != NULL ? "--ktensor"
                          : args->nowrite         ? "--nowrite"
                                                  : NULL;

    if (without != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%s does not go with several ranks or runs, whose results are folders: "
                        "leave it out",
                        without);
    }
    if (strcmp(args->checkpoint, "auto") != 0 && strcmp(args->checkpoint, "none") != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--checkpoint %s: each run of a sweep has a checkpoint of its own, in its "
                        "folder: auto or none",
                        args->checkpoint);
    }
    if (strcmp(args->init, "random") != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--init %s: the runs of a sweep differ by their random starts: leave it "
                        "out",
                        args->init);
    }
    if (args->seed > (uint64_t)INT64_MAX - args->runs) {
        return slc_fail(err, SLC_ERR_USAGE, "--seed %" PRIu64 ": the last seed is too large",
                        args->seed);
    }
    for (unsigned i = 0; i < args->ranks.count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (args->ranks.number[i] == args->ranks.number[j]) {
                return slc_fail(err, SLC_ERR_USAGE, "--rank names %" PRIu64 " twice",
                                args->ranks.number[i]);
            }
        }
    }
    return SLC_OK;
}

int cpd_run_sweep(const struct cpd *cpd, const struct operands *operands)
{
    const struct arguments *args = &cpd->args;
    struct sweep_runs runs = {cpd, operands};
    const struct cpd_sweep_options sweep = {.store = operands->text[0],
                                            .output = args->folder,
                                            .ranks = args->ranks,
                                            .runs = args->runs,
                                            .seed = args->seed,
                                            .keep_all = strcmp(args->keep, "all") == 0,
                                            .consistency = args->consistency,
                                            .restart = args->restart,
                                            .quiet = args->quiet,
                                            .max_seconds = args->max_seconds,
                                            .memory_bytes = args->session.memory,
                                            .threads = (unsigned)args->session.threads,
                                            .log = cpd->log,
                                            .prepare = prepare_sweep,
                                            .run = run_of_sweep,
                                            .context = &runs};
    struct slc_error err = SLC_ERROR_INIT;

    return check_sweep(args, &err) == SLC_OK ? cpd_sweep(&sweep) : console_error(&err);
}
