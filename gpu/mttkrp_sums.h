/*
 * Where a thread block puts the sums of segments: rows in shared memory, its stash, or else global
 * memory; as floating point or as exact words. Device code, included by kernels. mttkrp_plan.h says
 * when there is a stash, and of what.
 *
 * Rows come to a stash of hot ones between chunks: each has one place, row modulo the places, and
 * stays there until a hotter one, while it is not hot itself, takes the place; its sum is added to
 * global memory then. All other rows pass it by.
 */
#ifndef SLC_GPU_MTTKRP_SUMS_H
#define SLC_GPU_MTTKRP_SUMS_H

#include "gpu/mttkrp_group.h"

/* exact_sums: they are words (exact_sum.h). A choice at compile time: both ways in one loop cost
 * registers. */
template <typename T, bool exact_sums> struct slc_mttkrp_sums {
    T *output; /* global; not used with exact sums */
    uint64_t rows, pitch;
    struct slc_exact_sum exact;
    uint32_t rank;
    uint32_t stash_rows;
    bool whole;
    T *stash;                        /* shared; with exact sums, */
    unsigned long long *stash_words; /* the same place, as pairs of words */
    uint64_t *tags;                  /* the rows it holds, or no_row */
    uint32_t *wanted; /* per place: 0, or count << 16 | a nonzero's place, or keep: atomicMax */
};

static constexpr uint64_t slc_mttkrp_no_row = UINT64_MAX;
/* Above every count: the row that is there is still hot. */
static constexpr uint32_t slc_mttkrp_keep = UINT32_MAX;

/* Begins with an empty stash. The block synchronizes after it. */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_sums_begin(slc_mttkrp_sums<T, exact_sums> *sums)
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
        sums->wanted[threadIdx.x] = 0;
    }
}

/* Adds one element to where it stays; `alone`: nobody else adds to it meanwhile. */
template <typename T> __device__ static inline void slc_mttkrp_add_one(T *to, T value, bool alone)
{
    if (alone) {
        *to += value;
    } else {
        SLC_PLANT_OTHER(mttkrp_plain_add, atomicAdd(to, value), *to += value);
    }
}

/* Adds pairs of words to those of `count` columns from `to` on, of which `left` are there. */
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

/*
 * Adds sums of `count` columns, of which `left` are there, as words. What cannot be added counts in
 * its column's word and adds nothing.
 */
template <typename T, bool exact_sums, int count>
__device__ static inline void slc_mttkrp_add_exact(const slc_mttkrp_sums<T, exact_sums> *sums,
                                                   uint64_t row,
                                                   uint32_t column,
                                                   uint32_t left,
                                                   const T *sum,
                                                   bool stashed,
                                                   uint32_t place)
{
    unsigned long long *words = sums->exact.words;
    long long high[count] = {}, low[count] = {};

    SLC_UNROLL
    for (int c = 0; c < count; c++) {
        if ((uint32_t)c < left &&
            !slc_exact_split((double)sum[c], sums->exact.scale[column + c], &high[c], &low[c])) {
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

/*
 * Adds a segment's sum of `width` columns from `column` on, of which those beyond the rank are
 * none. `alone`: no other segment of the chunk has this row.
 */
template <typename T, bool exact_sums, int width>
__device__ static inline void slc_mttkrp_add_segment(const slc_mttkrp_sums<T, exact_sums> *sums,
                                                     uint64_t row,
                                                     uint32_t column,
                                                     const T (&sum)[width],
                                                     bool alone)
{
    const uint32_t place =
        sums->whole ? (uint32_t)row : (uint32_t)row & (sums->stash_rows - 1) & (SLC_WARP - 1);
    const bool stashed = sums->whole || sums->tags[place] == row;
    const uint32_t left = sums->rank - column;

    if constexpr (exact_sums) {
        /* Words of several f32 at once would spill: two blocks share a multiprocessor (launch
         * bounds of mttkrp_kernel). */
        constexpr int together = sizeof(T) == 4 ? 1 : width;

        SLC_UNROLL
        for (int c = 0; c < width; c += together) {
            if ((uint32_t)c < left) {
                slc_mttkrp_add_exact<T, exact_sums, together>(sums, row, column + c, left - c,
                                                              sum + c, stashed, place);
            }
        }
    } else if (stashed) {
        T *to = sums->stash + (size_t)place * sums->rank + column;

        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            if ((uint32_t)c < left) {
                slc_mttkrp_add_one(to + c, sum[c], alone);
            }
        }
    } else {
        T *to = sums->output + row * sums->pitch + column;

        if (left >= width) {
            slc_reduce_add<width>(to, sum);
        } else {
            SLC_UNROLL
            for (int c = 0; c + 1 < width; c++) {
                if ((uint32_t)c < left) {
                    slc_reduce_add<1>(to + c, sum + c);
                }
            }
        }
    }
}

/* Adds a row of the stash to global memory and empties it: threads `first`, first + step, .. */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_flush_row(const slc_mttkrp_sums<T, exact_sums> *sums,
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

/* Adds all that the stash holds to global memory. The block synchronizes before it. */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_sums_end(const slc_mttkrp_sums<T, exact_sums> *sums)
{
    /* As many threads per row as it has columns, up to a warp. */
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

/*
 * Between sorting a chunk and computing: gives places of the stash to its hot rows. Called by the
 * whole block, which synchronizes before and after. Which rows get a place does not depend on the
 * order of threads: of those that want one the most frequent.
 */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_stash_hot(const slc_mttkrp_sums<T, exact_sums> *sums,
                                                   const struct slc_mttkrp_sort *sort,
                                                   uint64_t corner)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;

    for (uint32_t b = threadIdx.x; b < sort->buckets; b += SLC_MTTKRP_THREADS) {
        const uint32_t begin = b == 0 ? 0 : slc_mttkrp_bucket_end(sort, b - 1);
        const uint32_t count = slc_mttkrp_bucket_end(sort, b) - begin;

        if (count >= SLC_MTTKRP_HOT_NNZ && count * SLC_MTTKRP_HOT_SHARE > sort->nnz) {
            /* Of several rows in a bucket, one of those in its middle is likely the hot one. */
            const uint32_t nonzero = sort->sorted[begin + count / 2];
            const uint64_t row = corner + sort->rows[nonzero];
            const uint32_t place = (uint32_t)row & (sums->stash_rows - 1);

            atomicMax(sums->wanted + place,
                      sums->tags[place] == row ? slc_mttkrp_keep : count << 16 | nonzero);
        }
    }
    __syncthreads();
    const uint32_t want = lane < sums->stash_rows ? sums->wanted[lane] : 0;
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
        sums->wanted[lane] = 0;
    }
}

#endif
