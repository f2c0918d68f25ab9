/*
 * sluice bench cpd: where the time of a CP-ALS iteration goes.
 *
 * The decomposition is the one of `sluice cpd`, stopped by nothing but the number of iterations.
 * After each, the clocks of the stream (summed over its threads) and of the solver (of the calling
 * thread) are read; what they gained since the iteration before is split into phases that add up to
 * the iteration:
 *
 *   read wait  threads without data              } each divided by
 *   decode     checksums, unpacking              } the number of threads
 *   multiply   kernels, adding to the output     }
 *   uneven     passes' wall time beyond these: taking turns, the tail of a pass, starting threads
 *   outputs    outside passes: zeroing outputs, adding up private copies
 *   update     dense algebra of the rows: Gram matrix, solving, norms, inner product, in one sweep
 *   fit        from R x R matrices
 *   other      what is left
 *
 * An MTTKRP from copies per mode makes no pass: all of its time is multiplying. Making the copies
 * lies between two iterations and belongs to none: it has a row of its own, without a share.
 *
 * The dense share is that of update and fit. The ceilings are those of cpd_ceilings.h; phases that
 * are losses, or too short to have one, have none.
 */
#include "bench.h"
#include "cpd_ceilings.h"
#include "record.h"
#include "run.h"
#include "table.h"
#include "tools/session.h"

#include "engine/solve/cp_als.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct arguments {
    struct session_options session;
    uint64_t rank;
    struct bench_options bench;
};

static const struct option options[] = {{.name = "rank",
                                         .letter = 'r',
                                         .required = true,
                                         .kind = OPTION_U64,
                                         .value = "R",
                                         .minimum = 1,
                                         .maximum = SLC_MAX_RANK,
                                         .help = "number of components",
                                         .offset = offsetof(struct arguments, rank)},
                                        SESSION_OPTION_ROWS(arguments),
                                        SESSION_OPTION_ROW_IO_LIMIT(arguments),
                                        SESSION_OPTION_ROW_COPIES(arguments),
                                        BENCH_OPTION_ROWS(arguments, "5"),
                                        {.name = NULL}};

static const struct bench_column phase_columns[] = {{"phase", "phase", 0, 0},
                                                    {"median_ms", "ms", 1, 3},
                                                    {"share", "%", 100, 1},
                                                    {"ceiling_ms", "ceiling ms", 1, 3},
                                                    {NULL, NULL, 0, 0}};

enum phase {
    PHASE_WAIT,
    PHASE_DECODE,
    PHASE_MULTIPLY,
    PHASE_UNEVEN,
    PHASE_OUTPUTS,
    PHASE_UPDATE,
    PHASE_FIT,
    PHASE_OTHER,
    PHASES
};

static const char *const phase_names[PHASES] = {"read wait", "decode", "multiply", "uneven",
                                                "outputs",   "update", "fit",      "other"};

/* What the callback of the decomposition gathers. */
struct cpd_bench {
    const struct arguments *args;
    struct slc_session session;
    struct slc_cp_result result;
    struct slc_stream_stats stats;   /* at the end of the iteration before */
    struct slc_cp_times times;       /* the same of the solver */
    uint64_t bytes_read;             /* in the iterations that count */
    bool from_copies;                /* what MTTKRPs are computed from by now */
    unsigned iterations_from_copies; /* of those that count */
    struct slc_error copies_fault;   /* why there are none where there should be */
    struct bench_samples iteration;
    struct bench_samples phases[PHASES];
};

/* Splits `mttkrp` seconds of MTTKRPs that were streamed. */
static void split_streamed(const struct cpd_bench *bench,
                           const struct slc_stream_stats *stats,
                           double mttkrp,
                           double phases[PHASES])
{
    const double threads = bench->session.plan.threads;
    const double pass = stats->pass_seconds - bench->stats.pass_seconds;

    phases[PHASE_WAIT] = (stats->wait_seconds - bench->stats.wait_seconds) / threads;
    phases[PHASE_DECODE] = (stats->decode_seconds - bench->stats.decode_seconds) / threads;
    phases[PHASE_MULTIPLY] = (stats->compute_seconds - bench->stats.compute_seconds) / threads;
    phases[PHASE_UNEVEN] =
        pass - phases[PHASE_WAIT] - phases[PHASE_DECODE] - phases[PHASE_MULTIPLY];
    phases[PHASE_OUTPUTS] = mttkrp - pass;
}

/*
 * Whether an iteration counts. Not the one after copies were given up: what the stream did for them
 * cannot be told from what it did in the iteration.
 */
static bool counts(const struct cpd_bench *bench, const struct slc_cp_iteration *iteration)
{
    return iteration->iteration > bench->args->bench.warm_up && iteration->copies_fault == NULL;
}

/* Splits the iteration that has just ended. */
static void take_iteration(void *context, const struct slc_cp_iteration *iteration)
{
    struct cpd_bench *bench = context;
    const struct slc_cp_times *now = &bench->result.times;
    const double mttkrp = now->mttkrp - bench->times.mttkrp;
    struct slc_stream_stats stats;
    double phases[PHASES] = {0};

    slc_stream_stats(bench->session.stream, &stats);
    bench->from_copies = bench->from_copies || iteration->first_of_copies;
    if (iteration->copies_fault != NULL) {
        bench->copies_fault = *iteration->copies_fault;
    }
    if (bench->from_copies) {
        phases[PHASE_MULTIPLY] = mttkrp;
    } else {
        split_streamed(bench, &stats, mttkrp, phases);
    }
    phases[PHASE_UPDATE] = now->solve - bench->times.solve;
    phases[PHASE_FIT] = now->fit - bench->times.fit;
    phases[PHASE_OTHER] = iteration->seconds - mttkrp - phases[PHASE_UPDATE] - phases[PHASE_FIT];
    if (counts(bench, iteration)) {
        bench_samples_add(&bench->iteration, iteration->seconds);
        for (unsigned p = 0; p < PHASES; p++) {
            bench_samples_add(&bench->phases[p], phases[p]);
        }
        bench->bytes_read += iteration->bytes_read;
        bench->iterations_from_copies += bench->from_copies;
    }
    bench->stats = stats;
    bench->times = *now;
}

static double sum_of(const struct bench_samples *samples)
{
    double sum = 0;

    for (unsigned i = 0; i < samples->count; i++) {
        sum += samples->seconds[i];
    }
    return sum;
}

/* Those of an iteration as the ones that count are on average. */
static enum slc_status measure_ceilings(const struct cpd_bench *bench,
                                        struct bench_cpd_ceilings *ceilings,
                                        struct slc_error *err)
{
    const double count = bench->iteration.count;
    const double streamed = (count - bench->iterations_from_copies) / count;

    return bench_cpd_ceilings_measure(&bench->session,
                                      streamed * bench->session.store.manifest.order,
                                      (double)bench->bytes_read / count, ceilings, err);
}

/* The ceiling of a phase in seconds; NAN where there is none. */
static double ceiling_of(const struct bench_cpd_ceilings *ceilings, enum phase phase)
{
    switch (phase) {
    case PHASE_WAIT:
        return ceilings->read;
    case PHASE_DECODE:
        return ceilings->decode;
    case PHASE_MULTIPLY:
        return ceilings->multiply;
    case PHASE_UPDATE:
        return ceilings->update;
    default:
        return NAN;
    }
}

/* What making the copies took, and how many MTTKRPs were computed from them. */
static void record_copies(const struct cpd_bench *bench,
                          const struct bench_cpd_ceilings *ceilings,
                          json_t *phases,
                          json_t *record)
{
    const unsigned order = bench->session.store.manifest.order;

    if (bench->from_copies) {
        const double seconds = bench->result.times.copies;
        const struct bench_times times = {
            .samples = 1, .min = seconds, .median = seconds, .max = seconds};
        json_t *row = json_object();

        (void)json_array_append_new(phases, row);
        bench_set_text(row, "phase", "copies");
        bench_times_to_json(row, &times);
        bench_set(row, "share", json_null());
        bench_set_real(row, "ceiling_ms", ceilings->pass * 1e3);
    }
    if (bench->copies_fault.status != SLC_OK) {
        bench_set_text(record, "copies_fault", bench->copies_fault.message);
    }
    bench_set_count(record, "copies_bytes",
                    bench->from_copies ? bench->session.plan.copies_bytes : 0);
    bench_set_count(record, "mttkrps", (uint64_t)bench->iteration.count * order);
    bench_set_count(record, "mttkrps_from_copies", (uint64_t)bench->iterations_from_copies * order);
}

static enum slc_status
record_figures(struct cpd_bench *bench, json_t *record, struct slc_error *err)
{
    const struct slc_manifest *manifest = &bench->session.store.manifest;
    const struct bench_times iteration = bench_samples_summary(&bench->iteration);
    const double total = sum_of(&bench->iteration);
    double rows = 0, dense = 0;
    json_t *phases = json_array();
    struct bench_cpd_ceilings ceilings = {0};
    const enum slc_status status = measure_ceilings(bench, &ceilings, err);

    for (unsigned n = 0; n < manifest->order; n++) {
        rows += (double)manifest->dims[n];
    }
    bench_set(record, "rows", phases);
    for (unsigned p = 0; p < PHASES; p++) {
        const struct bench_times times = bench_samples_summary(&bench->phases[p]);
        const double share = sum_of(&bench->phases[p]) / total;
        json_t *row = json_object();

        dense += p == PHASE_UPDATE || p == PHASE_FIT ? share : 0;
        (void)json_array_append_new(phases, row);
        bench_set_text(row, "phase", phase_names[p]);
        bench_times_to_json(row, &times);
        bench_set_real(row, "share", share);
        bench_set_real(row, "ceiling_ms", ceiling_of(&ceilings, (enum phase)p) * 1e3);
    }
    record_copies(bench, &ceilings, phases, record);
    bench_set_count(record, "rank", bench->args->rank);
    bench_set_count(record, "threads", bench->session.plan.threads);
    bench_set_real(record, "iteration_median_ms", iteration.median * 1e3);
    bench_set_real(record, "iteration_min_ms", iteration.min * 1e3);
    bench_set_real(record, "iteration_max_ms", iteration.max * 1e3);
    bench_set_real(record, "dense_share", dense);
    bench_set_real(record, "nnz_per_row", (double)manifest->nnz / rows);
    bench_set_real(record, "read_bytes_per_iteration",
                   (double)bench->bytes_read / bench->iteration.count);
    return status;
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct cpd_bench *bench = state;
    const struct arguments *args = bench->args;
    struct slc_session *session = &bench->session;
    const struct slc_cp_als_options cp = {.rank = (uint32_t)args->rank,
                                          .iterations =
                                              (unsigned)(args->bench.warm_up + args->bench.repeats),
                                          .deterministic = args->session.deterministic,
                                          .iteration = take_iteration,
                                          .context = bench};
    enum slc_status status = session_open(session, path, args->session.memory, err);

    if (status == SLC_OK) {
        bench_set_tensor(record, &session->store);
        status = session_plan(session, &args->session, SLC_OP_CPD, 0, (uint32_t)args->rank, err);
    }
    if (status == SLC_OK) {
        status = slc_session_start(session, err);
    }
    if (status == SLC_OK) {
        status = slc_cp_als(&session->store, session->stream, session->backend, &session->plan, &cp,
                            &bench->result, err);
    }
    return status == SLC_OK ? record_figures(bench, record, err) : status;
}

static void print_tables(const json_t *record)
{
    bench_table_print(json_object_get(record, "rows"), phase_columns);
    printf("\n  iteration %.3f ms, dense share %.1f %%, %.1f nonzeros per row\n",
           json_number_value(json_object_get(record, "iteration_median_ms")),
           json_number_value(json_object_get(record, "dense_share")) * 100,
           json_number_value(json_object_get(record, "nnz_per_row")));
    printf("  %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " MTTKRPs from copies per mode\n",
           json_integer_value(json_object_get(record, "mttkrps_from_copies")),
           json_integer_value(json_object_get(record, "mttkrps")));
    if (json_object_get(record, "copies_fault") != NULL) {
        printf("  copies were given up: %s\n",
               json_string_value(json_object_get(record, "copies_fault")));
    }
}

static void close_all(void *state)
{
    struct cpd_bench *bench = state;

    slc_cp_result_destroy(&bench->result);
    session_close(&bench->session);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rank = 0};
    struct cpd_bench bench = {.args = &args, .session = {.stream = NULL}};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, measure, print_tables, close_all});
}

const struct command bench_cpd = {
    .name = "bench cpd",
    .summary = "where the time of a CP-ALS iteration goes",
    .example = "sluice bench cpd flights-4d.slc --rank 16",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "--repeat counts iterations, --warm-up those before: the first fills the cache. Dense is\n"
        "update and fit together. Copies are made before an iteration and count in none. "
        "Ceilings:\n"
        "plain reads of what an iteration reads; decoding alone (of one pass for copies); a gather "
        "of\n"
        "GENTEN's model bytes; a copy of all outputs to the factors.",
    .run = run,
};
