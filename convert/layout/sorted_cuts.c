/* Cuts runs of rows into partitions in two steps; the first step only counts the partitions. */
#include "convert/layout/sorted_cuts.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <assert.h>

uint64_t slc_sorted_part_nnz(uint64_t nnz)
{
    return slc_min_u64(slc_max_u64(nnz / 64, UINT64_C(1) << 13), UINT64_C(1) << 20);
}

uint64_t slc_sorted_cuts_memory_bytes(uint64_t nnz)
{
    /* Upper bound of the number of partitions. Two neighbouring partitions together have more than
     * part_nnz nonzeros, with two exceptions. The first is a row that is cut into pieces, of which
     * all except one have at least part_nnz / 2 nonzeros. The second is a partition that is
     * followed by such a row. */
    return (3 * (nnz / slc_sorted_part_nnz(nnz)) + 2) * sizeof(struct slc_sorted_part);
}

static void append_part(struct slc_sorted_cuts *cuts, const struct slc_sorted_part *part)
{
    if (cuts->parts != NULL) {
        cuts->parts[cuts->count] = *part;
    }
    cuts->count++;
}

static void
append_pieces(struct slc_sorted_cuts *cuts, const struct slc_row_run *row, uint64_t part_nnz)
{
    uint64_t piece = slc_div_up_u64(row->nnz, slc_div_up_u64(row->nnz, part_nnz));

    assert(row->rows == 1);
    for (uint64_t begin = 0; begin < row->nnz; begin += piece) {
        append_part(cuts, &(struct slc_sorted_part){.first_row = row->first_row,
                                                    .last_row = row->first_row,
                                                    .nnz = slc_min_u64(piece, row->nnz - begin),
                                                    .continued = begin > 0});
    }
    cuts->split_rows++;
}

/* Counts the partitions, and writes them to cuts->parts unless it is NULL. */
static void
cut_parts(const struct slc_row_counts *counts, uint64_t part_nnz, struct slc_sorted_cuts *cuts)
{
    struct slc_sorted_part open = {.nnz = 0};

    cuts->count = 0;
    cuts->split_rows = 0;
    for (uint64_t i = 0; i < counts->count; i++) {
        const struct slc_row_run *run = &counts->runs[i];

        if (open.nnz > 0 && (run->nnz > part_nnz || open.nnz + run->nnz > part_nnz)) {
            append_part(cuts, &open);
            open.nnz = 0;
        }
        if (run->nnz > part_nnz) {
            append_pieces(cuts, run, part_nnz);
            continue;
        }
        open.first_row = open.nnz == 0 ? run->first_row : open.first_row;
        open.last_row = run->first_row + run->rows - 1;
        open.nnz += run->nnz;
    }
    if (open.nnz > 0) {
        append_part(cuts, &open);
    }
}

enum slc_status slc_sorted_cut(const struct slc_row_counts *counts,
                               uint64_t part_nnz,
                               struct slc_sorted_cuts *cuts,
                               struct slc_error *err)
{
    struct slc_sorted_cuts made = {.parts = NULL};

    cut_parts(counts, part_nnz, &made);
    made.parts = slc_calloc(made.count + 1, sizeof *made.parts);
    SLC_TRY(slc_check_memory(made.parts != NULL, err, "for the partitions of a layout"));
    cut_parts(counts, part_nnz, &made);
    *cuts = made;
    return SLC_OK;
}

void slc_sorted_cuts_destroy(struct slc_sorted_cuts *cuts)
{
    slc_free(cuts->parts);
    cuts->parts = NULL;
}
