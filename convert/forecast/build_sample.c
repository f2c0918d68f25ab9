/*
 * See convert/forecast/build_sample.h. The builder counts, of all entries, different
 * coordinates and different pieces of fibers; here both are judged by those of the sample
 * (convert/forecast/species_estimate.h), mode by mode, under the numbers by which the builder knows
 * them.
 */
#include "convert/forecast/build_sample.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/sort/fiber_guess.h"
#include "convert/forecast/species_estimate.h"

#include <math.h>

enum {
    /* Parts that a sample without stretches is cut into, as in a table's (csv_sample.c). */
    PARTS = 64
};

/* Entries of the sample in rows, as the builder is handed them, from index 0. */
static uint64_t *make_rows(const struct slc_build_job *job)
{
    const struct slc_entries *sample = job->sample;
    uint64_t *rows = slc_malloc((sample->count * (size_t)sample->order + 1) * sizeof *rows);

    for (uint32_t i = 0; rows != NULL && i < sample->count; i++) {
        for (unsigned m = 0; m < sample->order; m++) {
            const uint64_t index = sample->coords[m][i];

            rows[i * (size_t)sample->order + m] = index - (index >= job->base ? job->base : 0);
        }
    }
    return rows;
}

/* Different pieces of a mode's fibers, or for mode N coordinates, of all entries. */
static enum slc_status judge_mode(const struct slc_build_job *job,
                                  const struct slc_fiber_counts *counts,
                                  const uint64_t *rows,
                                  unsigned mode,
                                  struct slc_species_estimate *estimate,
                                  struct slc_error *err)
{
    const uint32_t count = job->sample->count;
    const uint64_t stretches =
        job->stretches > 1 && job->stretches < count ? job->stretches : PARTS;
    const double times = (double)job->entries / count;
    struct slc_species species;
    uint64_t last = UINT64_MAX;
    enum slc_status status = slc_species_create(&species, err);

    if (status != SLC_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t stretch = (uint64_t)i * stretches / count;

        if (stretch != last) {
            slc_species_piece(&species, i == 0);
            last = stretch;
        }
        slc_species_add(
            &species,
            slc_mix64(slc_fiber_number(counts, rows + (size_t)i * job->sample->order, mode)), 0);
    }
    slc_species_judge(&species, times > 1 ? times : 1, estimate);
    slc_species_destroy(&species);
    return SLC_OK;
}

/* As the builder chooses (slc_fiber_counts_choose), by the numbers that are expected. */
static enum slc_status choose_fibers(const struct slc_build_job *job,
                                     struct slc_fiber_counts *counts,
                                     const uint64_t *rows,
                                     struct slc_build_sample *found,
                                     struct slc_error *err)
{
    const unsigned order = job->sample->order;
    enum slc_status status = SLC_OK;
    unsigned mode = 0;

    for (unsigned n = 0; n < order && status == SLC_OK; n++) {
        struct slc_species_estimate pieces = {.count = 0};

        status = judge_mode(job, counts, rows, n, &pieces, err);
        if (n == 0 || pieces.count < found->pieces) {
            found->pieces = fmin(pieces.count, found->nnz);
            mode = n;
        }
    }
    if (order > 1 && found->nnz >= SLC_FIBER_NNZ_MIN &&
        slc_fiber_pieces_gain((uint64_t)found->nnz, (uint64_t)found->pieces)) {
        found->run = (struct slc_fiber_run){mode, SLC_FIBER_BITS};
    }
    return status;
}

/* Whether the builder, which chooses before it knows all entries, cuts buckets for another run. */
static enum slc_status compare_guess(const struct slc_build_job *job,
                                     struct slc_fiber_counts *counts,
                                     const uint64_t *rows,
                                     struct slc_build_sample *found,
                                     struct slc_error *err)
{
    struct slc_fiber_run guess;
    const enum slc_status status = slc_fiber_guess(counts, rows, job->sample->count, job->stretches,
                                                   job->expected, &guess, err);

    if (status == SLC_OK) {
        found->regroup = guess.mode != found->run.mode || guess.bits != found->run.bits;
    }
    return status;
}

enum slc_status slc_build_sample_judge(const struct slc_build_job *job,
                                       struct slc_build_sample *found,
                                       struct slc_error *err)
{
    struct slc_fiber_counts *counts = slc_calloc(1, sizeof *counts);
    void *memory = slc_malloc(slc_fiber_counts_bytes(job->sample->order));
    uint64_t *rows = make_rows(job);
    struct slc_species_estimate estimate = {.count = 0};
    enum slc_status status = SLC_OK;

    *found = (struct slc_build_sample){.nnz = 0};
    if (counts == NULL || memory == NULL || rows == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to judge a sample");
    } else {
        slc_fiber_counts_init(counts, job->sample->order, memory);
        status = job->cells != NULL
                     ? SLC_OK
                     : judge_mode(job, counts, rows, job->sample->order, &estimate, err);
        estimate = job->cells != NULL ? *job->cells : estimate;
        found->nnz = fmin(estimate.count, (double)job->entries);
        found->nnz_most = fmin(estimate.most, (double)job->entries);
    }
    if (status == SLC_OK && job->build->fibers == SLC_FIBERS_AUTO) {
        status = choose_fibers(job, counts, rows, found, err);
        if (status == SLC_OK) {
            status = compare_guess(job, counts, rows, found, err);
        }
    } else if (status == SLC_OK && job->build->fibers == SLC_FIBERS_GIVEN) {
        found->run = job->build->run;
        status = judge_mode(job, counts, rows, found->run.mode, &estimate, err);
        found->pieces = fmin(estimate.count, found->nnz);
    }
    slc_free(rows);
    slc_free(memory);
    slc_free(counts);
    return status;
}
