/* Times forms of a mode's copy by computing from a sample of its pieces.
 *
 * For each form, the pieces are written to the memory of the mode's chunks. Then all workers
 * compute from the pieces at the same time, as in an MTTKRP. Each worker reads separate pieces and
 * adds to separate rows. The result is the sum of the times of each worker's fastest round: a round
 * in which a thread lost its processor for some time does not measure the form. */
#include "base/error/clock.h"
#include "base/thread/team.h"
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/replica/replica_build.h"

enum { ROUNDS = 4 };
/* A form replaces the best form so far only if the new form takes less than this fraction of the
 * time of the best form. */
#define FASTER_RATIO 0.97

/* Trial of one form. */
struct trial {
    struct slc_cpu_backend *cpu;
    struct slc_replica_mode form; /* the form as a copy that consists of the sampled pieces */
    struct slc_buffer windows;    /* rows to which each worker adds */
    uint64_t window_bytes;
    uint64_t *worker_ns; /* time of the fastest round of each worker */
};

static void compute_share(void *context, unsigned worker, unsigned workers)
{
    struct trial *trial = context;
    const uint64_t first = trial->form.piece_count * worker / workers;
    const uint64_t end = trial->form.piece_count * (worker + 1) / workers;
    unsigned char *window = (unsigned char *)trial->windows.data + worker * trial->window_bytes;

    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t start_ns = slc_clock_ns();

        slc_replica_add_pieces(trial->cpu, &trial->form, first, end - first, window);
        uint64_t ns = slc_clock_ns() - start_ns;
        if (round == 0 || ns < trial->worker_ns[worker]) {
            trial->worker_ns[worker] = ns;
        }
    }
}

static enum slc_status
try_form(struct trial *trial, struct slc_replica_candidate *candidate, struct slc_error *err)
{
    const unsigned workers = trial->cpu->replica->workers;

    trial->form.varying = candidate->varying;
    enum slc_status status =
        slc_replica_write_chunks(trial->cpu->replica, trial->cpu->job.mode, &trial->form, err);
    SLC_THEN(status, slc_team_run(workers, compute_share, trial, err));
    candidate->cost = 0;
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        candidate->cost += (double)trial->worker_ns[w];
    }
    return status;
}

static enum slc_status prepare_trial(struct trial *trial,
                                     const struct slc_replica_mode *copy,
                                     const struct slc_replica_sample *sample,
                                     struct slc_error *err)
{
    const unsigned workers = trial->cpu->replica->workers;
    const uint64_t bytes = trial->window_bytes * workers;

    trial->form.piece_count = sample->count;
    /* borrowed memory, in which the final chunks are written later */
    trial->form.chunks = copy->chunks;
    trial->form.pieces = slc_calloc(sample->count, sizeof *trial->form.pieces);
    trial->worker_ns = slc_calloc(workers, sizeof *trial->worker_ns);
    SLC_TRY(slc_check_memory(trial->form.pieces != NULL && trial->worker_ns != NULL, err,
                             "for trying mode %u's copy on %llu pieces", trial->cpu->job.mode + 1,
                             (unsigned long long)sample->count));
    for (uint64_t s = 0; s < sample->count; s++) {
        trial->form.pieces[s] = copy->pieces[slc_replica_sampled(sample, s)];
    }
    return slc_buffer_create(&trial->windows, bytes, slc_mttkrp_pages(bytes), err);
}

enum slc_status slc_replica_try(struct slc_cpu_backend *cpu,
                                unsigned mode,
                                const struct slc_replica_sample *sample,
                                struct slc_replica_candidate *candidates,
                                unsigned count,
                                struct slc_error *err)
{
    const struct slc_replica_mode *copy = &cpu->replica->modes[mode];
    struct trial trial = {.cpu = cpu, .window_bytes = copy->rows_max * cpu->sum_stride};

    cpu->job.mode = mode;
    enum slc_status status = prepare_trial(&trial, copy, sample, err);
    for (unsigned c = 0; c < count && status == SLC_OK; c++) {
        status = try_form(&trial, &candidates[c], err);
        if (candidates[c].cost < FASTER_RATIO * candidates[0].cost) {
            const struct slc_replica_candidate better = candidates[c];

            candidates[c] = candidates[0];
            candidates[0] = better;
        }
    }
    slc_buffer_destroy(&trial.windows);
    slc_free(trial.worker_ns);
    slc_free(trial.form.pieces);
    return status;
}
