/* Compares runs by the files in their folders. The comparison of two runs reads their factors one
 * mode at a time; the core consistency of the best run needs all its factors in memory. */
#include "sweep/sweep_compare.h"

#include "base/error/stop.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "cpu/dense/congruence.h"
#include "engine/solve/core_consistency.h"
#include "engine/stream/tile_stream.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"
#include "storage/model/npy.h"
#include "storage/model/run_folder.h"
#include "sweep/run_match.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Memory of the process that no other estimate counts, and memory per thread for packed BLAS
 * operands. */
static const uint64_t process_bytes = UINT64_C(16) << 20;
static const uint64_t thread_bytes = UINT64_C(8) << 20;

/* Maximum number of multiply-adds with --consistency auto; they take a few minutes on two cores. */
static const double core_work_most = 2e12;

enum { PATH_BYTES = 1024 + 128 };

struct comparing {
    const struct slc_sweep_comparison *options;
    const struct slc_store *store;
    uint32_t rank;
    uint32_t components; /* the rank, and biases of a completion */
    double *lambda[2];   /* weights of the best run and of another run */
    uint64_t budget_bytes;
    bool by_heldout; /* see slc_sweep_record_by_heldout */
};

static void run_folder(const struct comparing *comparing, uint64_t seed, char *path)
{
    char name[SLC_SWEEP_FOLDER_BYTES];

    (void)snprintf(path, PATH_BYTES, "%.1023s/%s", comparing->options->folder,
                   slc_sweep_folder_name(name, comparing->rank, seed));
}

static enum slc_status
read_lambda(const struct comparing *comparing, uint64_t seed, double *lambda, struct slc_error *err)
{
    char path[PATH_BYTES];
    bool found;

    run_folder(comparing, seed, path);
    enum slc_status status =
        slc_model_read_lambda(slc_files_system(), path, comparing->components, lambda, &found, err);
    if (status == SLC_OK && !found) {
        status = slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_RESTART,
                                "a run of this sweep has no lambda.npy: restart the sweep");
        slc_error_locate_file(err, path);
    }
    return status;
}

/* Reads the number of components of the best run and its weights. */
static enum slc_status read_best(struct comparing *comparing, uint64_t seed, struct slc_error *err)
{
    const uint64_t rows = comparing->store->manifest.dims[0];
    enum slc_value_type type;
    struct slc_npy_rows *first = NULL;
    uint64_t found = 0;
    char folder[PATH_BYTES];

    run_folder(comparing, seed, folder);
    char *path = slc_run_folder_factor(folder, 0);
    enum slc_status status = slc_check_memory(path != NULL, err, "for a path");
    SLC_THEN(status, slc_npy_rows_open(slc_files_system(), path, rows, 0, &first, err));
    if (status == SLC_OK) {
        slc_npy_rows_shape(first, &found, &comparing->components, &type);
        slc_npy_rows_close(first);
        comparing->lambda[0] = slc_calloc(2 * (size_t)comparing->components, sizeof(double));
        comparing->lambda[1] = comparing->lambda[0] + comparing->components;
        status = slc_check_memory(comparing->lambda[0] != NULL, err, "for the weights of two runs");
    }
    slc_free(path);
    SLC_THEN(status, read_lambda(comparing, seed, comparing->lambda[0], err));
    return status;
}

/* Computes the factor match score of two runs. */
static enum slc_status compare_runs(const struct comparing *comparing,
                                    uint64_t best,
                                    uint64_t other,
                                    double *score,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &comparing->store->manifest;
    struct slc_run_match *match = slc_malloc(sizeof *match);
    char folders[2][PATH_BYTES];
    struct slc_run_side sides[2];
    enum slc_status status = slc_check_memory(match != NULL, err, "for comparing runs");

    for (unsigned k = 0; k < 2; k++) {
        run_folder(comparing, k == 0 ? best : other, folders[k]);
        sides[k] = (struct slc_run_side){.folder = folders[k],
                                         .order = manifest->order,
                                         .dims = manifest->dims,
                                         .rank = comparing->components,
                                         .lambda = comparing->lambda[k]};
    }
    SLC_THEN(status, read_lambda(comparing, other, comparing->lambda[1], err));
    SLC_THEN(status,
             slc_run_match_find(&sides[0], &sides[1], comparing->options->stop, match, err));
    if (status == SLC_OK) {
        *score = match->score;
    }
    slc_free(match);
    return status;
}

static void add_note(struct slc_sweep_rank *result,
                     const char *what,
                     uint64_t need_bytes,
                     uint64_t budget_bytes)
{
    struct slc_error fault = SLC_ERROR_INIT;

    (void)slc_fail_budget(&fault, budget_bytes, need_bytes, "%s", what);
    (void)snprintf(result->note, sizeof result->note, "%.190s", fault.message);
}

/* Returns the bytes of memory that the comparison of two runs needs. */
static uint64_t compare_bytes(const struct comparing *comparing)
{
    const struct slc_manifest *manifest = &comparing->store->manifest;
    uint64_t largest = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        largest = slc_max_u64(
            largest, slc_matrix_footprint(SLC_F64, manifest->dims[n], comparing->components));
    }
    return slc_memory_resident() + process_bytes + 2 * slc_min_u64(largest, UINT64_MAX / 4) +
           slc_congruence_memory_bytes(comparing->components);
}

/* Computes the factor match score of each run of the rank with the best run, and the mean over the
 * runs that reached the best fit. */
static enum slc_status agreement(const struct comparing *comparing,
                                 struct slc_sweep_record *record,
                                 struct slc_sweep_rank *result,
                                 struct slc_error *err)
{
    const double best_fit = slc_sweep_record_best(record, comparing->rank)->fit;
    const uint64_t need = compare_bytes(comparing);
    double sum = 0.0;
    unsigned agreed_on = 0;

    result->agreement = NAN;
    result->compared = 0;
    result->reached = 0;
    for (unsigned i = 0; i < record->run_count; i++) {
        struct slc_sweep_run *run = &record->runs[i];
        const bool reached =
            run->rank == comparing->rank && run->fit >= best_fit - SLC_SWEEP_REACHED;

        result->reached += reached;
        if (run->rank != comparing->rank) {
            continue;
        }
        run->match = NAN;
        if (run->seed == result->best_seed) {
            run->match = 1.0;
        } else if (run->kept && need > comparing->budget_bytes) {
            add_note(result, "comparing runs", need, comparing->budget_bytes);
        } else if (run->kept) {
            SLC_TRY(compare_runs(comparing, result->best_seed, run->seed, &run->match, err));
            result->compared++;
            sum += reached ? run->match : 0.0;
            agreed_on += reached;
        }
    }
    if (agreed_on > 0) {
        result->agreement = sum / agreed_on;
    }
    return SLC_OK;
}

/* Returns the bytes of memory that the core consistency needs with `workers` workers. These include
 * the bytes for the tile stream, which are also stored in *stream_bytes. */
static uint64_t core_bytes(const struct comparing *comparing,
                           const struct slc_tile_stream *stream,
                           unsigned workers,
                           bool least,
                           uint64_t *stream_bytes)
{
    const struct slc_manifest *manifest = &comparing->store->manifest;
    uint64_t bytes = slc_memory_resident() + process_bytes + workers * thread_bytes;
    uint64_t core = slc_core_consistency_bytes(slc_reader_info(comparing->store->reader),
                                               comparing->rank, workers);

    *stream_bytes = slc_tile_stream_memory_bytes(stream, comparing->store->reader, workers, least);
    for (unsigned n = 0; n < manifest->order; n++) {
        if (!slc_add_u64(bytes, slc_matrix_footprint(SLC_F64, manifest->dims[n], comparing->rank),
                         &bytes)) {
            return UINT64_MAX;
        }
    }
    return slc_add_u64(bytes, core, &bytes) && slc_add_u64(bytes, *stream_bytes, &bytes)
               ? bytes
               : UINT64_MAX;
}

/* Chooses the largest number of workers whose memory fits the budget. Returns false and adds a note
 * if not even one worker fits. */
static bool fit_core(const struct comparing *comparing,
                     struct slc_core_options *options,
                     struct slc_sweep_rank *result)
{
    uint64_t need = UINT64_MAX;

    options->workers =
        comparing->options->threads > 0 ? comparing->options->threads : slc_team_default_workers();
    for (; options->workers > 0; options->workers--) {
        for (unsigned least = 0; least < 2; least++) {
            need = core_bytes(comparing, options->stream, options->workers, least == 1,
                              &options->stream_bytes);
            if (need <= comparing->budget_bytes) {
                return true;
            }
        }
    }
    if (need == UINT64_MAX) {
        (void)snprintf(result->note, sizeof result->note,
                       "the core tensor of rank %" PRIu32 " has %" PRIu32
                       "^%u numbers, more than any memory "
                       "can hold",
                       comparing->rank, comparing->rank, comparing->store->manifest.order);
    } else {
        add_note(result, "core consistency", need, comparing->budget_bytes);
    }
    return false;
}

/* Returns true if the core consistency is to be computed; otherwise adds a note with the reason. */
static bool should_compute_core(const struct comparing *comparing, struct slc_sweep_rank *result)
{
    const struct slc_manifest *manifest = &comparing->store->manifest;
    const double work = (double)manifest->nnz * pow(comparing->rank, manifest->order);

    if (comparing->by_heldout) {
        (void)snprintf(result->note, sizeof result->note,
                       "core consistency is defined for least squares over all cells only");
        return false;
    }
    if (comparing->options->consistency == SLC_CONSISTENCY_NEVER) {
        (void)snprintf(result->note, sizeof result->note,
                       "not computed: option consistency is set to never");
        return false;
    }
    if (comparing->options->consistency == SLC_CONSISTENCY_AUTO && work > core_work_most) {
        (void)snprintf(result->note, sizeof result->note,
                       "core consistency needs %.1e multiply-adds (nonzeros times %" PRIu32
                       "^%u): set option consistency to always to compute it",
                       work, comparing->rank, manifest->order);
        return false;
    }
    return true;
}

static enum slc_status
consistency(const struct comparing *comparing, struct slc_sweep_rank *result, struct slc_error *err)
{
    struct slc_tile_stream stream = {.stop = comparing->options->stop};
    struct slc_core_options options = {.stream = &stream};
    struct slc_matrix factors[SLC_MAX_ORDER] = {{.rows = 0}};
    struct slc_core_report report;
    struct slc_error fault = SLC_ERROR_INIT;
    uint32_t rank = comparing->rank;
    char folder[PATH_BYTES];

    result->consistency = NAN;
    if (!should_compute_core(comparing, result) || !fit_core(comparing, &options, result)) {
        return SLC_OK;
    }
    run_folder(comparing, result->best_seed, folder);
    enum slc_status status =
        slc_model_read(slc_files_system(), folder, SLC_F64, comparing->store->manifest.order,
                       comparing->store->manifest.dims, SLC_MAX_ORDER, &rank, factors, err);
    if (status == SLC_OK) {
        status = slc_core_consistency(comparing->store, &options, rank, factors,
                                      comparing->lambda[0], &report, &fault);
        if (status == SLC_OK) {
            result->consistency = report.percent;
        } else if (status == SLC_ERR_NUMERIC) {
            (void)snprintf(result->note, sizeof result->note, "%.190s", fault.message);
            status = SLC_OK;
        } else if (err != NULL && err->status == SLC_OK) {
            *err = fault;
        }
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&factors[n]);
    }
    return status;
}

enum slc_status slc_sweep_compare_rank(const struct slc_sweep_comparison *comparison,
                                       struct slc_sweep_record *record,
                                       uint32_t rank,
                                       struct slc_error *err)
{
    const uint64_t budget =
        comparison->memory_bytes != 0 ? comparison->memory_bytes : slc_memory_total() / 5 * 4;
    struct slc_sweep_rank *result = slc_sweep_record_rank(record, rank);
    struct comparing comparing = {.options = comparison,
                                  .rank = rank,
                                  .budget_bytes = budget,
                                  .by_heldout = slc_sweep_record_by_heldout(record)};
    struct slc_store store;

    if (result == NULL) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_SWEEP_FOLDER,
                              "a sweep has at most %d ranks: use another folder",
                              SLC_SWEEP_RANKS_MAX);
    }
    SLC_TRY(slc_store_open_within(comparison->files, comparison->store, budget, &store, err));
    comparing.store = &store;
    result->best_seed = slc_sweep_record_best(record, rank)->seed;
    result->note[0] = '\0';
    enum slc_status status = read_best(&comparing, result->best_seed, err);
    SLC_THEN(status, agreement(&comparing, record, result, err));
    SLC_THEN(status, consistency(&comparing, result, err));
    if (status == SLC_OK) {
        unsigned runs = 0;

        for (unsigned i = 0; i < record->run_count; i++) {
            runs += record->runs[i].rank == rank;
        }
        result->runs = runs;
        if (runs > 1 && result->reached == 1 && result->note[0] == '\0') {
            (void)snprintf(result->note, sizeof result->note, "no other run reached the best fit");
        }
    }
    slc_free(comparing.lambda[0]);
    slc_store_close(&store);
    return status;
}

static bool trilinear(const struct slc_sweep_rank *rank)
{
    return rank->consistency >= SLC_SWEEP_CONSISTENCY_GOOD; /* false for NAN */
}

/* Returns true if the runs of a rank agree. Returns the argument `unknown` if no runs were
 * compared. If only one of several runs reached the best fit, no other run confirms its
 * components. */
static bool agreed(const struct slc_sweep_rank *rank, bool unknown)
{
    if (isnan(rank->agreement)) {
        return unknown && (rank->reached != 1 || rank->runs == 1);
    }
    return rank->agreement >= SLC_SWEEP_AGREEMENT_GOOD;
}

/* Writes how many runs of a rank reached its best fit; "" for a single run. */
static const char *reached_text(const struct slc_sweep_rank *rank, char *text, size_t bytes)
{
    text[0] = '\0';
    if (rank->runs > 1 && rank->reached > 0) {
        (void)snprintf(text, bytes, " (%u of %u reached its best fit)", rank->reached, rank->runs);
    }
    return text;
}

/* Returns the largest rank whose runs agree and, if `by_core`, whose core consistency is good. NULL
 * means that there is none. */
static const struct slc_sweep_rank *largest(const struct slc_sweep_record *record, bool by_core)
{
    const struct slc_sweep_rank *found = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_rank *rank = &record->ranks[i];

        if (by_core ? trilinear(rank) && agreed(rank, true) : agreed(rank, false)) {
            found = rank;
        }
    }
    return found;
}

/* Returns `smaller`, or the largest rank after it that is suggested although its core consistency
 * is not good. */
static const struct slc_sweep_rank *explains_more(const struct slc_sweep_record *record,
                                                  const struct slc_sweep_rank *smaller)
{
    const struct slc_sweep_rank *end = record->ranks + record->rank_count, *found = smaller;
    const struct slc_sweep_run *before = slc_sweep_record_best(record, smaller->rank);

    for (const struct slc_sweep_rank *rank = smaller + 1; rank < end; rank++) {
        const struct slc_sweep_run *after = slc_sweep_record_best(record, rank->rank);

        if (before != NULL && after != NULL && agreed(rank, false) &&
            after->condition >= SLC_SWEEP_CONDITION_DEPENDENT &&
            1 - after->fit <= SLC_SWEEP_UNEXPLAINED_LESS * (1 - before->fit)) {
            found = rank;
            before = after;
        }
    }
    return found;
}

static const struct slc_sweep_run *largest_fit(const struct slc_sweep_record *record)
{
    const struct slc_sweep_run *best = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_run *run = slc_sweep_record_best(record, record->ranks[i].rank);

        if (run != NULL && (best == NULL || run->fit > best->fit)) {
            best = run;
        }
    }
    return best;
}

/* Returns the smallest rank whose best run has a mean deviance of the held-out nonzeros of at most
 * SLC_SWEEP_HELDOUT_GOOD times the lowest, and sets *lowest to the run that has the lowest. Returns
 * NULL if the best run of a rank has none. */
static const struct slc_sweep_rank *predicting(const struct slc_sweep_record *record,
                                               const struct slc_sweep_run **lowest)
{
    *lowest = NULL;
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_run *run = slc_sweep_record_best(record, record->ranks[i].rank);

        if (run == NULL || isnan(run->heldout_deviance)) {
            return NULL;
        }
        if (*lowest == NULL || run->heldout_deviance < (*lowest)->heldout_deviance) {
            *lowest = run;
        }
    }
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_run *run = slc_sweep_record_best(record, record->ranks[i].rank);

        if (run->heldout_deviance <= SLC_SWEEP_HELDOUT_GOOD * (*lowest)->heldout_deviance) {
            return &record->ranks[i];
        }
    }
    return NULL;
}

/* Suggests a rank by the error on held-out nonzeros or, without these, by the agreement of runs. */
static const struct slc_sweep_rank *
suggest_by_heldout(const struct slc_sweep_record *record, char *why, size_t bytes)
{
    const struct slc_sweep_run *lowest;
    const struct slc_sweep_rank *rank = predicting(record, &lowest);
    char reached[64];

    if (rank != NULL) {
        (void)snprintf(why, bytes,
                       "the smallest rank whose mean deviance on held-out nonzeros is at most 1 %% "
                       "above the lowest (%.6g, of rank %" PRIu32 ")",
                       lowest->heldout_deviance, lowest->rank);
    } else if ((rank = largest(record, false)) != NULL) {
        (void)snprintf(why, bytes,
                       "the largest rank whose runs agree to %.1f or more%s; hold out nonzeros to "
                       "compare ranks by their error on these",
                       SLC_SWEEP_AGREEMENT_GOOD, reached_text(rank, reached, sizeof reached));
    } else {
        (void)snprintf(why, bytes,
                       "no nonzeros were held out, and no rank has runs that agree to %.1f or "
                       "more: the best run has the best fit, which always grows with the rank",
                       SLC_SWEEP_AGREEMENT_GOOD);
    }
    return rank;
}

/* Suggests a rank by core consistency and the agreement of runs. */
static const struct slc_sweep_rank *
suggest_by_core(const struct slc_sweep_record *record, char *why, size_t bytes)
{
    const struct slc_sweep_rank *by_core = largest(record, true);
    const struct slc_sweep_rank *rank = by_core != NULL ? explains_more(record, by_core) : NULL;
    char reached[64];

    if (rank != by_core) {
        (void)snprintf(
            why, bytes,
            "the largest rank that explains much more than rank %" PRIu32
            " and whose runs agree to %.1f or more%s; a low core consistency does not "
            "count, because columns of its factors are nearly dependent (condition %.3g)",
            by_core->rank, SLC_SWEEP_AGREEMENT_GOOD, reached_text(rank, reached, sizeof reached),
            slc_sweep_record_best(record, rank->rank)->condition);
    } else if (rank != NULL) {
        (void)snprintf(why, bytes,
                       "the largest rank with a core consistency of %.0f %% or more%s%s",
                       SLC_SWEEP_CONSISTENCY_GOOD,
                       isnan(rank->agreement) ? "" : " whose runs agree to 0.9 or more",
                       reached_text(rank, reached, sizeof reached));
    } else if ((rank = largest(record, false)) != NULL) {
        (void)snprintf(why, bytes,
                       "the largest rank whose runs agree to %.1f or more%s; no such rank has a "
                       "known core consistency of %.0f %% or more",
                       SLC_SWEEP_AGREEMENT_GOOD, reached_text(rank, reached, sizeof reached),
                       SLC_SWEEP_CONSISTENCY_GOOD);
    } else {
        (void)snprintf(
            why, bytes,
            "no rank has a core consistency of %.0f %% or more, or runs that agree to "
            "%.1f or more: the best run has the best fit, which always grows with the rank",
            SLC_SWEEP_CONSISTENCY_GOOD, SLC_SWEEP_AGREEMENT_GOOD);
    }
    return rank;
}

void slc_sweep_suggest(const struct slc_sweep_record *record,
                       struct slc_sweep_suggestion *suggestion)
{
    memset(suggestion, 0, sizeof *suggestion);
    const struct slc_sweep_rank *rank =
        slc_sweep_record_by_heldout(record)
            ? suggest_by_heldout(record, suggestion->why, sizeof suggestion->why)
            : suggest_by_core(record, suggestion->why, sizeof suggestion->why);
    const struct slc_sweep_run *best =
        rank != NULL ? slc_sweep_record_best(record, rank->rank) : largest_fit(record);
    suggestion->rank = rank != NULL ? rank->rank : 0;
    if (best != NULL) {
        suggestion->best_rank = best->rank;
        (void)slc_sweep_folder_name(suggestion->folder, best->rank, best->seed);
    }
}

json_t *slc_sweep_suggestion_json(const struct slc_sweep_suggestion *suggestion)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "rank",
                              suggestion->rank > 0 ? json_integer(suggestion->rank) : json_null());
    (void)json_object_set_new(object, "why", json_string(suggestion->why));
    (void)json_object_set_new(object, "best", json_string(suggestion->folder));
    return object;
}
