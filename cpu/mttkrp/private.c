/* Implements private copies of the output: each worker has a copy, and the copies are added up at
 * the end.
 *
 * A piece of a copy is zeroed when a tile first reaches the piece, and only zeroed pieces are added
 * up. In a large mode, consecutive tiles reach only a narrow range of rows, so the cost of a copy
 * depends on the pieces that its tiles reach, not on the size of the output.
 *
 * Cost: two sweeps over every piece that tiles reach. Invariant: only pieces that the map marks are
 * read. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/mttkrp/mttkrp.h"

#include <string.h>

/* Returns the map of the worker's copy: one byte per piece, not 0 if the piece has sums. */
static unsigned char *piece_map(const struct slc_cpu_backend *cpu, unsigned worker)
{
    return slc_mttkrp_scratch(cpu, worker - cpu->layout.first_copy, cpu->layout.pieces_at);
}

static unsigned char *copy_of(const struct slc_cpu_backend *cpu, unsigned worker)
{
    return slc_mttkrp_scratch(cpu, worker - cpu->layout.first_copy, cpu->layout.private_at);
}

static uint64_t piece_end(const struct slc_cpu_backend *cpu, uint64_t piece)
{
    return slc_min_u64((piece + 1) * cpu->layout.piece_rows, cpu->job.output->rows);
}

unsigned char *
slc_private_sums(struct slc_cpu_backend *cpu, unsigned worker, const struct slc_tile_view *tile)
{
    const uint64_t corner = tile->corner[cpu->job.mode];
    const uint64_t last = (corner + tile->extent[cpu->job.mode]) / cpu->layout.piece_rows;

    if (worker < cpu->layout.first_copy) {
        return cpu->sums;
    }
    unsigned char *copy = copy_of(cpu, worker);
    unsigned char *map = piece_map(cpu, worker);
    if (!cpu->workers[worker].touched) {
        memset(map, 0, slc_div_up_u64(cpu->job.output->rows, cpu->layout.piece_rows));
        cpu->workers[worker].touched = true;
    }
    for (uint64_t p = corner / cpu->layout.piece_rows; p <= last; p++) {
        const uint64_t begin = p * cpu->layout.piece_rows;

        if (map[p] == 0) {
            const uint64_t bytes = (piece_end(cpu, p) - begin) * cpu->sum_stride;

            memset(copy + begin * cpu->sum_stride, 0, bytes);
            cpu->workers[worker].copied_bytes += bytes;
            map[p] = 1;
        }
    }
    return copy;
}

/* Adds the copies of one piece in the order of the workers. */
static void add_copies(struct slc_cpu_backend *cpu, uint64_t begin_row, uint64_t end_row)
{
    const uint64_t piece = begin_row / cpu->layout.piece_rows;
    const uint64_t at = begin_row * cpu->sum_stride;
    const uint64_t bytes = (end_row - begin_row) * cpu->sum_stride;
    const uint64_t start_ns = cpu->trial.on ? cpu->trial.clock_ns() : 0;
    uint64_t added = 0;

    for (unsigned w = cpu->layout.first_copy; w < cpu->job.workers; w++) {
        if (cpu->workers[w].touched && piece_map(cpu, w)[piece] != 0) {
            cpu->kernels->add_f64(cpu->sums + at, copy_of(cpu, w) + at, bytes / sizeof(double));
            added += bytes;
        }
    }
    if (cpu->trial.on && added > 0) {
        slc_trial_add_copies(&cpu->trial, added, cpu->trial.clock_ns() - start_ns);
    }
}

void slc_private_round(const struct slc_cpu_backend *cpu, uint64_t begin, uint64_t end)
{
    const uint64_t count = (end - begin) * cpu->sum_stride / sizeof(double);
    const double *sums = (const double *)(const void *)(cpu->sums + begin * cpu->sum_stride);
    float *output = slc_matrix_row_f32(cpu->job.output, begin);

    for (uint64_t i = 0; i < count; i++) {
        output[i] = (float)sums[i];
    }
}

/* Completes the rows of one piece: adds the copies, and rounds wide sums to an f32 output. */
static void finish_rows(void *context, uint64_t begin_row, uint64_t end_row, unsigned worker)
{
    struct slc_cpu_backend *cpu = context;

    (void)worker;
    add_copies(cpu, begin_row, end_row);
    if (cpu->layout.wide_bytes > 0) {
        slc_private_round(cpu, begin_row, end_row);
    }
}

enum slc_status slc_private_gather(struct slc_cpu_backend *cpu, struct slc_error *err)
{
    SLC_TRY(slc_private_finish(cpu, err));
    for (unsigned w = 0; w < cpu->job.workers; w++) {
        cpu->workers[w].touched = false;
    }
    return SLC_OK;
}

enum slc_status slc_private_finish(struct slc_cpu_backend *cpu, struct slc_error *err)
{
    return slc_team_for(cpu->job.workers, cpu->job.output->rows, cpu->layout.piece_rows,
                        finish_rows, cpu, err);
}
