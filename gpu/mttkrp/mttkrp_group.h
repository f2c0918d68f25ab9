/* Sorts the nonzeros of a chunk by output row, in place: a stable counting sort by a thread block
 * of SLC_MTTKRP_THREADS, in shared memory. Device code, included by kernels.
 *
 * The bucket of a row is its offset from the tile's corner modulo a power of two. In ALTO order
 * (base/key.h) the rows of a chunk are close together, so two rows seldom share a bucket. If two
 * rows share a bucket, their nonzeros alternate in the bucket and form more and shorter segments.
 * The sums are still correct, so one pass of the sort suffices. The sort is stable, so the order
 * depends only on the chunk.
 *
 * Each warp counts and places its own range of nonzeros. Each bucket has eight counters of 16 bits,
 * one per warp, in the order of the ranges. A scan over all counters yields the position of each
 * warp's first nonzero of each bucket. A thread keeps the positions of its nonzeros in registers
 * and moves the arrays one after the other. After the sort, the loop over the nonzeros of a row
 * reads every array in 16-byte loads.
 *
 * Cost: two sweeps over the rows, each with one __match_any_sync per 32 nonzeros; a scan of 16
 * bytes per bucket; one load and one store for each number of a nonzero. */
#ifndef SLC_GPU_MTTKRP_GROUP_H
#define SLC_GPU_MTTKRP_GROUP_H

#include "gpu/mttkrp/mttkrp_plan.h"

static_assert(SLC_MTTKRP_WARPS == 8, "a bucket's counters are a vector of 16 bytes");
static_assert(SLC_MTTKRP_MOST_RUNS * SLC_RUN_NNZ < 1 << 16, "counters have 16 bits");

/* Largest number of nonzeros that a thread sorts. */
enum { SLC_MTTKRP_STEPS = SLC_MTTKRP_MOST_RUNS * SLC_RUN_NNZ / SLC_MTTKRP_THREADS };

/* Arguments of the sort. Word w of a bucket's counters has the counters of warps 2w (low half) and
 * 2w + 1 (high half). */
struct slc_mttkrp_sort {
    const uint32_t *rows; /* output rows of the chunk's nonzeros */
    uint32_t nnz;
    uint32_t buckets; /* a power of two, at least SLC_MTTKRP_LEAST_BUCKETS */
    uint4 *counters;  /* one element per bucket */
    uint32_t *warp_sums;
};

/* Destinations of a thread's nonzeros. The thread's nonzeros are first, first + SLC_WARP, .. up to
 * `end`. */
struct slc_mttkrp_places {
    uint32_t first, end;
    uint32_t places[SLC_MTTKRP_STEPS / 2]; /* each word has two places of 16 bits */
};

/* Sets *begin and *end to the range of nonzeros that a warp sorts: a multiple of 32 nonzeros,
 * except for the last range. */
__device__ static inline void
slc_mttkrp_sort_range(uint32_t nnz, uint32_t warp, uint32_t *begin, uint32_t *end)
{
    const uint32_t steps = (nnz + SLC_MTTKRP_THREADS - 1) / SLC_MTTKRP_THREADS;

    *begin = warp * steps * SLC_WARP;
    *end = *begin + steps * SLC_WARP < nnz ? *begin + steps * SLC_WARP : nnz;
}

/* Returns the set of warp lanes whose nonzeros have the same bucket as the nonzero of this warp
 * lane. The lowest warp lane of the set counts for all. Warp lanes after the end have no bucket. */
__device__ static inline uint32_t slc_mttkrp_same_bucket(const struct slc_mttkrp_sort *sort,
                                                         uint32_t at,
                                                         uint32_t end,
                                                         uint32_t *bucket)
{
    *bucket = at < end ? sort->rows[at] & (sort->buckets - 1) : UINT32_MAX;
    return __match_any_sync(SLC_ALL_LANES, *bucket);
}

/* Returns the word that contains a warp's counter; a shift selects the half. */
__device__ static inline uint32_t *
slc_mttkrp_counter(const struct slc_mttkrp_sort *sort, uint32_t bucket, uint32_t warp)
{
    return reinterpret_cast<uint32_t *>(sort->counters) + (size_t)bucket * 4 + warp / 2;
}

/* Returns exclusive prefix sums over a bucket's eight counters, starting at *before, and adds their
 * total to *before. */
__device__ static inline uint4 slc_mttkrp_scan_bucket(uint4 counts, uint32_t *before)
{
    uint32_t words[4] = {counts.x, counts.y, counts.z, counts.w};

    for (int w = 0; w < 4; w++) {
        const uint32_t low = words[w] & 0xffffU, high = words[w] >> 16;

        words[w] = *before | (*before + low) << 16;
        *before += low + high;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Replaces the counts with positions. The caller synchronizes the thread block before and after. */
__device__ static inline void slc_mttkrp_scan(const struct slc_mttkrp_sort *sort)
{
    const uint32_t each = sort->buckets / SLC_MTTKRP_THREADS;
    uint4 *mine = sort->counters + (size_t)threadIdx.x * each;
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t warp = threadIdx.x / SLC_WARP;
    uint32_t total = 0;

    for (uint32_t b = 0; b < each; b++) {
        const uint32_t halves = mine[b].x + mine[b].y + mine[b].z + mine[b].w;

        total += (halves & 0xffffU) + (halves >> 16);
    }
    uint32_t before = total;
    for (uint32_t apart = 1; apart < SLC_WARP; apart *= 2) {
        const uint32_t other = __shfl_up_sync(SLC_ALL_LANES, before, apart);

        before += lane >= apart ? other : 0;
    }
    if (lane == SLC_WARP - 1) {
        sort->warp_sums[warp] = before;
    }
    before -= total;
    __syncthreads();
    for (uint32_t w = 0; w < warp; w++) {
        before += sort->warp_sums[w];
    }
    for (uint32_t b = 0; b < each; b++) {
        mine[b] = slc_mttkrp_scan_bucket(mine[b], &before);
    }
}

/* Counts the warp's nonzeros of each bucket. */
__device__ static inline void slc_mttkrp_count(const struct slc_mttkrp_sort *sort,
                                               const struct slc_mttkrp_places *places)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t warp = threadIdx.x / SLC_WARP;
    uint32_t bucket;

    for (uint32_t at = places->first; at - lane < places->end; at += SLC_WARP) {
        const uint32_t same = slc_mttkrp_same_bucket(sort, at, places->end, &bucket);

        if (at < places->end && __ffs(same) - 1 == (int)lane) {
            /* The addition is atomic, because the other half of the word belongs to another
             * warp. */
            uint32_t *counter = slc_mttkrp_counter(sort, bucket, warp);
            const uint32_t count = (uint32_t)__popc(same) << warp % 2 * 16;

            SLC_PLANT_OTHER(mttkrp_plain_count, atomicAdd(counter, count), *counter += count);
        }
    }
}

/* Assigns positions to the warp's nonzeros. */
__device__ static inline void slc_mttkrp_place(const struct slc_mttkrp_sort *sort,
                                               struct slc_mttkrp_places *places)
{
    const uint32_t lane = threadIdx.x % SLC_WARP;
    const uint32_t warp = threadIdx.x / SLC_WARP;
    const uint32_t shift = warp % 2 * 16;

    SLC_UNROLL
    for (int s = 0; s < SLC_MTTKRP_STEPS; s++) {
        const uint32_t at = places->first + (uint32_t)s * SLC_WARP;
        uint32_t bucket, place = 0;

        if (at - lane >= places->end) {
            break;
        }
        const uint32_t same = slc_mttkrp_same_bucket(sort, at, places->end, &bucket);
        const int first = __ffs(same) - 1;

        if (at < places->end && first == (int)lane) {
            place =
                atomicAdd(slc_mttkrp_counter(sort, bucket, warp), (uint32_t)__popc(same) << shift);
        }
        place = __shfl_sync(SLC_ALL_LANES, place, first) >> shift & 0xffffU;
        place += (uint32_t)__popc(same & ((1U << lane) - 1));
        places->places[s / 2] = s % 2 == 0 ? place : places->places[s / 2] | place << 16;
    }
}

/* Computes the positions of the chunk's nonzeros. Afterwards each counter has the end position of
 * its warp's nonzeros in the bucket. Called by all threads of the thread block; the caller
 * synchronizes the thread block before and after. */
__device__ static inline void slc_mttkrp_group(const struct slc_mttkrp_sort *sort,
                                               struct slc_mttkrp_places *places)
{
    for (uint32_t b = threadIdx.x; b < sort->buckets; b += SLC_MTTKRP_THREADS) {
        sort->counters[b] = make_uint4(0, 0, 0, 0);
    }
    slc_mttkrp_sort_range(sort->nnz, threadIdx.x / SLC_WARP, &places->first, &places->end);
    places->first += threadIdx.x % SLC_WARP;
    SLC_PLANT(mttkrp_counters_not_clear, __syncthreads());
    slc_mttkrp_count(sort, places);
    SLC_PLANT(mttkrp_not_counted, __syncthreads());
    slc_mttkrp_scan(sort);
    SLC_PLANT(mttkrp_not_placed, __syncthreads());
    slc_mttkrp_place(sort, places);
}

/* Permutes an array that has a number per nonzero of the chunk: each number moves to the position
 * of its nonzero in `places`. Called by all threads of the thread block. The caller synchronizes
 * the thread block before reading the numbers. */
template <typename T>
__device__ static inline void slc_mttkrp_move(T *array, const struct slc_mttkrp_places *places)
{
    /* Initialized: otherwise the elements that a chunk skips would stay in registers until the next
     * chunk. */
    T held[SLC_MTTKRP_STEPS] = {};

    SLC_UNROLL
    for (int s = 0; s < SLC_MTTKRP_STEPS; s++) {
        const uint32_t at = places->first + (uint32_t)s * SLC_WARP;

        if (at >= places->end) {
            break;
        }
        held[s] = array[at];
    }
    SLC_PLANT(mttkrp_moved_unread, __syncthreads());
    SLC_UNROLL
    for (int s = 0; s < SLC_MTTKRP_STEPS; s++) {
        if (places->first + (uint32_t)s * SLC_WARP >= places->end) {
            break;
        }
        array[places->places[s / 2] >> s % 2 * 16 & 0xffffU] = held[s];
    }
}

/* Returns the end position of a bucket's nonzeros. Needs: slc_mttkrp_group computed positions. */
__device__ static inline uint32_t slc_mttkrp_bucket_end(const struct slc_mttkrp_sort *sort,
                                                        uint32_t bucket)
{
    return sort->counters[bucket].w >> 16;
}

#endif
