/* See sweep_report.h. */
#include "tools/report/sweep_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 40 };

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

static void print_table(const struct slc_sweep_record *record)
{
    printf("  %6s %5s %10s %10s %12s %18s %10s\n", "rank", "runs", "best fit", "spread",
           "best seed", "core consistency", "agreement");
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_rank *rank = &record->ranks[i];
        const struct slc_sweep_run *best = slc_sweep_record_best(record, rank->rank);
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

static void print_plot(const struct slc_sweep_record *record)
{
    printf("\n  %6s  %-*s  %s\n", "rank", BAR + 1, "0        best fit (=)",
           "core consistency (#), "
           "0 to 100 %");
    for (unsigned i = 0; i < record->rank_count; i++) {
        const struct slc_sweep_rank *rank = &record->ranks[i];
        const struct slc_sweep_run *best = slc_sweep_record_best(record, rank->rank);

        printf("  %6" PRIu32 " ", rank->rank);
        print_bar(best != NULL ? best->fit : NAN, '=');
        print_bar(rank->consistency / 100.0, '#');
        printf("\n");
    }
}

void sweep_report(const struct slc_sweep_record *record,
                  const struct slc_sweep_suggestion *suggestion,
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
