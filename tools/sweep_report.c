/* See sweep_report.h. */
#include "sweep_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 40 };

static bool trilinear(const struct sweep_rank *rank)
{
    return rank->consistency >= SWEEP_CONSISTENCY_GOOD; /* not where it is NAN */
}

static bool agreed(const struct sweep_rank *rank, bool unknown)
{
    return isnan(rank->agreement) ? unknown : rank->agreement >= SWEEP_AGREEMENT_GOOD;
}

/* The largest rank that meets what is asked for; NULL: none. */
static const struct sweep_rank *largest(const struct sweep_record *record, bool by_core)
{
    const struct sweep_rank *found = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct sweep_rank *rank = &record->ranks[i];

        if (by_core ? trilinear(rank) && agreed(rank, true) : agreed(rank, false)) {
            found = rank;
        }
    }
    return found;
}

static const struct sweep_run *largest_fit(const struct sweep_record *record)
{
    const struct sweep_run *best = NULL;

    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct sweep_run *run = sweep_record_best(record, record->ranks[i].rank);

        if (run != NULL && (best == NULL || run->fit > best->fit)) {
            best = run;
        }
    }
    return best;
}

void sweep_suggest(const struct sweep_record *record, struct sweep_suggestion *suggestion)
{
    const struct sweep_rank *rank = largest(record, true);
    const struct sweep_run *best;

    memset(suggestion, 0, sizeof *suggestion);
    if (rank != NULL) {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "the largest rank with a core consistency of %.0f %% or more%s",
                       SWEEP_CONSISTENCY_GOOD,
                       isnan(rank->agreement) ? "" : " whose runs agree to 0.9 or more");
    } else if ((rank = largest(record, false)) != NULL) {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "the largest rank whose runs agree to %.1f or more; none that does has a "
                       "core consistency known to be %.0f %% or more",
                       SWEEP_AGREEMENT_GOOD, SWEEP_CONSISTENCY_GOOD);
    } else {
        (void)snprintf(suggestion->why, sizeof suggestion->why,
                       "no rank has a core consistency of %.0f %% or more, or runs that agree to "
                       "%.1f or more: the best fit is kept, which larger ranks improve in any case",
                       SWEEP_CONSISTENCY_GOOD, SWEEP_AGREEMENT_GOOD);
    }
    best = rank != NULL ? sweep_record_best(record, rank->rank) : largest_fit(record);
    suggestion->rank = rank != NULL ? rank->rank : 0;
    if (best != NULL) {
        suggestion->best_rank = best->rank;
        (void)sweep_folder_name(suggestion->folder, best->rank, best->seed);
    }
}

json_t *sweep_suggestion_json(const struct sweep_suggestion *suggestion)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "rank",
                              suggestion->rank > 0 ? json_integer(suggestion->rank) : json_null());
    (void)json_object_set_new(object, "why", json_string(suggestion->why));
    (void)json_object_set_new(object, "best", json_string(suggestion->folder));
    return object;
}

/* A number in its column, or a dash. */
static const char *cell(char *text, size_t bytes, const char *format, double value)
{
    if (isnan(value)) {
        (void)snprintf(text, bytes, "-");
    } else {
        (void)snprintf(text, bytes, format, value);
    }
    return text;
}

static void print_table(const struct sweep_record *record)
{
    printf("  %6s %5s %10s %10s %12s %18s %10s\n", "rank", "runs", "best fit", "spread",
           "best seed", "core consistency", "agreement");
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct sweep_rank *rank = &record->ranks[i];
        const struct sweep_run *best = sweep_record_best(record, rank->rank);
        char core[32], agreement[32];
        double lowest = INFINITY;
        unsigned runs = 0;

        for (unsigned k = 0; k < record->run_count; k++) {
            if (record->runs[k].rank == rank->rank) {
                lowest = fmin(lowest, record->runs[k].fit);
                runs++;
            }
        }
        if (best != NULL) {
            printf("  %6" PRIu32 " %5u %10.6f %10.1e %12" PRIu64 " %18s %10s\n", rank->rank, runs,
                   best->fit, best->fit - lowest, best->seed,
                   cell(core, sizeof core, fabs(rank->consistency) < 1e6 ? "%.1f %%" : "%.1e %%",
                        rank->consistency),
                   cell(agreement, sizeof agreement, "%.3f", rank->agreement));
        }
    }
    for (unsigned i = 0; i < record->rank_count; i++) {
        if (record->ranks[i].note[0] != '\0') {
            printf("  rank %" PRIu32 ": %s\n", record->ranks[i].rank, record->ranks[i].note);
        }
    }
}

/* A bar of `part` (0 to 1) of BAR characters; dots where the number is not known. */
static void print_bar(double part, char mark)
{
    char bar[BAR + 1];
    const double length = isnan(part) ? 0.0 : fmax(0.0, fmin(1.0, part)) * BAR + 0.5;

    memset(bar, isnan(part) ? '.' : ' ', BAR);
    memset(bar, mark, (size_t)length);
    bar[BAR] = '\0';
    printf(" |%s|", bar);
}

static void print_plot(const struct sweep_record *record)
{
    printf("\n  %6s  %-*s  %s\n", "rank", BAR + 1, "0        best fit (=)",
           "core consistency (#), "
           "0 to 100 %");
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct sweep_rank *rank = &record->ranks[i];
        const struct sweep_run *best = sweep_record_best(record, rank->rank);

        printf("  %6" PRIu32 " ", rank->rank);
        print_bar(best != NULL ? best->fit : NAN, '=');
        print_bar(rank->consistency / 100.0, '#');
        printf("\n");
    }
}

void sweep_report(const struct sweep_record *record,
                  const struct sweep_suggestion *suggestion,
                  const char *folder)
{
    printf("\nRank sweep\n");
    print_table(record);
    print_plot(record);
    printf("\n");
    if (suggestion->rank > 0) {
        printf("Suggested rank: %" PRIu32 ", %s\n", suggestion->rank, suggestion->why);
    } else {
        printf("Suggested rank: none; %s\n", suggestion->why);
    }
    printf("Results\n  %-12s %s/%s/mode-K.npy, lambda.npy, run.json\n  %-12s %s/sweep.json\n\n",
           "best run", folder, suggestion->folder, "record", folder);
    (void)fflush(stdout);
}
