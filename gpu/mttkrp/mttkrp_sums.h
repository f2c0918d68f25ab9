/* Adds the sums of a thread block's segments to the stash (rows in shared memory) or to global
 * memory, as f64 or as exact words. Device code, included by kernels. mttkrp_plan.h describes when
 * a thread block has a stash and which rows are in the stash.
 *
 * A stash of hot rows is updated between chunks. The only possible position of a row is the row
 * modulo the number of positions. A row stays in the stash until it is no longer hot and a hot row
 * needs its position; its sum is then added to global memory. All other rows bypass the stash. */
#ifndef SLC_GPU_MTTKRP_SUMS_H
#define SLC_GPU_MTTKRP_SUMS_H

#include "gpu/mttkrp/mttkrp_group.h"

/* Arguments of the functions below. If `exact_sums`, sums are exact words (exact_sum.h). exact_sums
 * is a template parameter because a loop with f64 and exact sums would need more registers. */
template <bool exact_sums> struct slc_mttkrp_sums {
    double *output; /* sums in global memory; not used with exact sums */
    uint64_t rows;
    uint32_t pitch;
    struct slc_exact_sum exact;
    uint32_t rank;
    uint32_t stash_rows;
    bool whole;
    double *stash;                   /* sums in shared memory */
    unsigned long long *stash_words; /* the same memory as pairs of words, used with exact sums */
    uint64_t *tags;                  /* rows in the stash, or slc_mttkrp_no_row */
    /* candidate of each position, updated by atomicMax: 0, count << 16 | nonzero, or
     * slc_mttkrp_keep */
    uint32_t *candidates;
};

static constexpr uint64_t slc_mttkrp_no_row = UINT64_MAX;
/* A candidate that is greater than every count: the current row is still hot. */
static constexpr uint32_t slc_mttkrp_keep = UINT32_MAX;

/* Clears the stash. The caller synchronizes the thread block after the call. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_sums_begin(slc_mttkrp_sums<exact_sums> *sums)
{
    const uint32_t elements = sums->stash_rows * sums->rank;

    for (uint32_t i = threadIdx.x; i < elements; i += SLC_MTTKRP_THREADS) {
        if constexpr (exact_sums) {
            sums->stash_words[2 * i] = 0;
            sums->stash_words[2 * i + 1] = 0;
        } else {
            sums->stash[i] = 0;
        }
    }
    if (threadIdx.x < SLC_MTTKRP_MOST_STASHED) {
        sums->tags[threadIdx.x] = slc_mttkrp_no_row;
        sums->candidates[threadIdx.x] = 0;
    }
}

/* Adds `value` to one element. `alone` is true if no other thread adds to the element at the same
 * time. */
__device__ static inline void slc_mttkrp_add_one(double *to, double value, bool alone)
{
    if (alone) {
        *to += value;
    } else {
        SLC_PLANT_OTHER(mttkrp_plain_add, atomicAdd(to, value), *to += value);
    }
}

/* Adds pairs of words to the words of `count` columns that begin at `to`. Columns `left` and later
 * are skipped, because they exceed the rank. */
template <int count>
__device__ static inline void slc_mttkrp_add_words(unsigned long long *to,
                                                   uint32_t left,
                                                   const long long (&high)[count],
                                                   const long long (&low)[count])
{
    SLC_UNROLL
    for (int c = 0; c < count; c++) {
        if ((uint32_t)c < left) {
            atomicAdd(to + 2 * c, (unsigned long long)high[c]);
            atomicAdd(to + 2 * c + 1, (unsigned long long)low[c]);
        }
    }
}

/* Adds the sums of `count` columns, of which `left` exist, as exact words. If an addend cannot be
 * added, its column's word of refused additions is incremented instead. */
template <bool exact_sums, int count>
__device__ static inline void slc_mttkrp_add_exact(const slc_mttkrp_sums<exact_sums> *sums,
                                                   uint64_t row,
                                                   uint32_t column,
                                                   uint32_t left,
                                                   const double *sum,
                                                   bool stashed,
                                                   uint32_t place)
{
    unsigned long long *words = sums->exact.words;
    long long high[count] = {}, low[count] = {};

    SLC_UNROLL
    for (int c = 0; c < count; c++) {
        if ((uint32_t)c < left &&
            !slc_exact_split(sum[c], sums->exact.scale[column + c], &high[c], &low[c])) {
            atomicAdd(words + 2 * sums->rows * sums->rank + column + c, 1ULL);
        }
    }
    if (stashed) {
        unsigned long long *to = sums->stash_words + 2 * ((size_t)place * sums->rank + column);

        slc_mttkrp_add_words<count>(to, left, high, low);
    } else {
        slc_mttkrp_add_words<count>(words + 2 * (row * sums->rank + column), left, high, low);
    }
}

/* Destination of a warp lane's sums. */
struct slc_mttkrp_target {
    const uint64_t *corner; /* the output row at offset 0; in shared memory */
    uint32_t column;        /* the first column of the warp lane */
    /* the element at row *corner and column `column`; not used with exact sums */
    double *output;
};

/* Adds two columns of each of `lanes` warp lanes to a row in memory. Warp lanes exchange numbers,
 * so that neighbouring warp lanes add neighbouring numbers and cover whole sectors of 32 bytes;
 * without the exchange, an instruction would cover half of each sector. `to` is the destination of
 * the warp lane's own two numbers. */
__device__ static inline void
slc_mttkrp_add_sectors(uint32_t lanes, double *to, const double (&sum)[2])
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t first = lane / lanes * lanes, mine = lane - first;
    const unsigned group = (lanes == SLC_WARP ? SLC_ALL_LANES : (1U << lanes) - 1) << first;

    SLC_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const int from = (int)(first + (half * lanes + mine) / 2);
        const double even = __shfl_sync(group, sum[0], from);
        const double odd = __shfl_sync(group, sum[1], from);
        const double number = mine % 2 == 0 ? even : odd;

        /* The warp lane's own columns in the row are 2 * mine and 2 * mine + 1. */
        slc_reduce_add<1>(to - mine + half * lanes, &number);
    }
}

/* Adds a segment's sum to global memory. */
template <bool exact_sums, unsigned flags, int width>
__device__ static inline void slc_mttkrp_add_global(const slc_mttkrp_sums<exact_sums> *sums,
                                                    uint32_t column,
                                                    double *to,
                                                    const double (&sum)[width])
{
    const uint32_t left = sums->rank - column;

    if constexpr ((flags & SLC_MTTKRP_FULL_SECTORS) != 0 && width == 2) {
        constexpr uint32_t panel = SLC_WARP * width;
        /* number of columns from the panel's start to the rank */
        const uint32_t there = left + column % panel;
        const uint32_t columns = there < panel ? there : panel;

        /* Warp lanes can exchange numbers if all warp lanes of the row have two numbers to add, and
         * the number of warp lanes is a power of two. */
        if (columns > 1 && (columns & (columns - 1)) == 0) {
            slc_mttkrp_add_sectors(columns / width, to, sum);
            return;
        }
    }
    if (left >= width) {
        slc_reduce_add<width>(to, sum);
        return;
    }
    SLC_UNROLL
    for (int c = 0; c + 1 < width; c++) {
        if ((uint32_t)c < left) {
            slc_reduce_add<1>(to + c, sum + c);
        }
    }
}

/* Adds a segment's sum of `width` columns, ignoring columns after the rank. `offset` is the row's
 * offset from the corner. `alone` is true if no other segment of the chunk has this row. */
template <bool exact_sums, unsigned flags, int width>
__device__ static inline void slc_mttkrp_add_segment(const slc_mttkrp_sums<exact_sums> *sums,
                                                     const struct slc_mttkrp_target *target,
                                                     uint32_t offset,
                                                     const double (&sum)[width],
                                                     bool alone)
{
    uint32_t place = 0;
    bool stashed = false;

    if ((flags & SLC_MTTKRP_WITHOUT_STASH) == 0 && sums->stash_rows != 0) {
        const uint64_t row = *target->corner + offset;

        place =
            sums->whole ? (uint32_t)row : (uint32_t)row & (sums->stash_rows - 1) & (SLC_WARP - 1);
        stashed = sums->whole || sums->tags[place] == row;
    }
    if constexpr (exact_sums) {
        slc_mttkrp_add_exact<exact_sums, width>(sums, *target->corner + offset, target->column,
                                                sums->rank - target->column, sum, stashed, place);
    } else if (stashed) {
        double *to = sums->stash + (size_t)place * sums->rank + target->column;

        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            if (target->column + (uint32_t)c < sums->rank) {
                slc_mttkrp_add_one(to + c, sum[c], alone);
            }
        }
    } else {
        slc_mttkrp_add_global<exact_sums, flags, width>(
            sums, target->column, target->output + (uint64_t)offset * sums->pitch, sum);
    }
}

/* Adds a row of the stash to global memory and clears it. A thread processes every `step`-th
 * column, starting at `first`. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_flush_row(const slc_mttkrp_sums<exact_sums> *sums,
                                                   uint32_t place,
                                                   uint64_t row,
                                                   uint32_t first,
                                                   uint32_t step)
{
    for (uint32_t column = first; column < sums->rank; column += step) {
        const size_t i = (size_t)place * sums->rank + column;

        if constexpr (exact_sums) {
            unsigned long long *to = sums->exact.words + 2 * (row * sums->rank + column);

            for (int w = 0; w < 2; w++) {
                if (sums->stash_words[2 * i + w] != 0) {
                    atomicAdd(to + w, sums->stash_words[2 * i + w]);
                }
                sums->stash_words[2 * i + w] = 0;
            }
        } else {
            if (sums->stash[i] != 0) {
                slc_reduce_add<1>(sums->output + row * sums->pitch + column, sums->stash + i);
            }
            sums->stash[i] = 0;
        }
    }
}

/* Adds all rows of the stash to global memory. The caller synchronizes the thread block before the
 * call. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_sums_end(const slc_mttkrp_sums<exact_sums> *sums)
{
    /* Number of threads per row: the number of columns rounded up to a power of two, at most
     * SLC_WARP. */
    uint32_t lanes = 1;

    while (lanes < sums->rank && lanes < SLC_WARP) {
        lanes *= 2;
    }
    for (uint32_t place = threadIdx.x / lanes; place < sums->stash_rows;
         place += SLC_MTTKRP_THREADS / lanes) {
        const uint64_t row = sums->whole ? place : sums->tags[place];

        if (row != slc_mttkrp_no_row) {
            slc_mttkrp_flush_row(sums, place, row, threadIdx.x % lanes, lanes);
        }
    }
}

/* Assigns positions of the stash to the hot rows of a chunk, after the chunk is sorted and before
 * it is computed. Called by all threads of the thread block; the caller synchronizes the thread
 * block before and after. The most frequent candidate gets the position, so the choice does not
 * depend on the order of threads. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_stash_hot(const slc_mttkrp_sums<exact_sums> *sums,
                                                   const struct slc_mttkrp_sort *sort,
                                                   uint64_t corner)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;

    for (uint32_t b = threadIdx.x; b < sort->buckets; b += SLC_MTTKRP_THREADS) {
        const uint32_t begin = b == 0 ? 0 : slc_mttkrp_bucket_end(sort, b - 1);
        const uint32_t count = slc_mttkrp_bucket_end(sort, b) - begin;

        if (count >= SLC_MTTKRP_HOT_NNZ && count * SLC_MTTKRP_HOT_SHARE > sort->nnz) {
            /* If a bucket has several rows, the row in the middle of the bucket is likely the hot
             * row. */
            const uint32_t nonzero = begin + count / 2;
            const uint64_t row = corner + sort->rows[nonzero];
            const uint32_t place = (uint32_t)row & (sums->stash_rows - 1);

            atomicMax(sums->candidates + place,
                      sums->tags[place] == row ? slc_mttkrp_keep : count << 16 | nonzero);
        }
    }
    __syncthreads();
    const uint32_t want = lane < sums->stash_rows ? sums->candidates[lane] : 0;
    const unsigned coming = __ballot_sync(SLC_ALL_LANES, want != 0 && want != slc_mttkrp_keep);

    for (unsigned left = coming; left != 0; left &= left - 1) {
        const uint32_t place = (uint32_t)__ffs(left) - 1;

        if (sums->tags[place] != slc_mttkrp_no_row) {
            slc_mttkrp_flush_row(sums, place, sums->tags[place], threadIdx.x, SLC_MTTKRP_THREADS);
        }
    }
    SLC_PLANT(mttkrp_stash_unsettled, __syncthreads());
    if (threadIdx.x < sums->stash_rows) {
        if ((coming >> lane & 1U) != 0) {
            sums->tags[lane] = corner + sort->rows[want & 0xffffU];
        }
        sums->candidates[lane] = 0;
    }
}

#endif
