/* Holds the tables of the papers. Mode sizes and numbers of nonzeros are as printed, mostly rounded
 * to two to four digits. */
#include "convert/generate/paper_tensor.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define K 1000
#define M UINT64_C(1000000)

/* [Phipps2019] prints 13 M nonzeros for Uber, and [Nguyen2022] 3.3 M. [SPTV] table 1 rounds to one
 * digit, so mode sizes, and numbers of nonzeros below three digits, come from table 2: sizes of the
 * unfolding times density. Table 2 has 7,120 rows for ratings-m20, and table 1 has 72K. [XPLAT]
 * table 4 has no number of nonzeros for vast-3d; the text states that each fiber has one. Its
 * fibers are those of the last mode. */
const struct slc_paper_tensor slc_paper_tensors[SLC_PAPER_TENSORS] = {
    {"amazon", "BLCO, table 2", 3, {4800 * K, 1800 * K, 1800 * K}, 1700 * M, 0.9, 0, 0},
    {"chicago", "BLCO, table 2", 4, {6200, 24, 77, 32}, 5300 * K, 0.5, 0, 0},
    {"darpa", "BLCO, table 2", 3, {22500, 22500, 23800 * K}, 28400 * K, 0.9, 0, 0},
    {"delicious", "BLCO, table 2", 4, {532900, 17300 * K, 2500 * K, 1400}, 140100 * K, 1, 0, 0},
    {"enron", "BLCO, table 2", 4, {6000, 5700, 244300, 1200}, 54200 * K, 0.9, 0, 0},
    {"fb-m", "BLCO, table 2", 3, {23300 * K, 23300 * K, 166}, 99600 * K, 0.9, 0, 0},
    {"flickr", "BLCO, table 2", 4, {319700, 28200 * K, 1600 * K, 731}, 112900 * K, 1, 0, 0},
    {"genten-random", "GenTen, figure 5", 3, {30 * K, 40 * K, 50 * K}, 10 * M, 0, 0, 0},
    {"lbnl", "GenTen, table 6a", 5, {1600, 4200, 1600, 4200, 868 * K}, 1700 * K, 1, 0, 0},
    {"nell-1",
     "Cross-Platform, table 4",
     3,
     {2902330, 2143368, 25495389},
     143599552,
     0,
     3,
     17372417},
    {"nell-2", "Cross-Platform, table 4", 3, {12092, 9184, 28818}, 76879419, 0, 3, 337365},
    {"nips", "BLCO, table 2", 4, {2500, 2900, 14 * K, 17}, 3100 * K, 0.9, 0, 0},
    {"patents", "BLCO, table 2", 3, {46, 239200, 239200}, 3600 * M, 0.6, 0, 0},
    {"ratings-m1", "SpTV, tables 1 and 2", 3, {6040, 3952, 5}, 1 * M, 0, 1, 16912},
    {"ratings-m20", "SpTV, tables 1 and 2", 3, {7120, 130642, 10}, 1050 * K, 0, 1, 70147},
    {"reddit", "BLCO, table 2", 3, {8200 * K, 177 * K, 8100 * K}, 4700 * M, 0.9, 0, 0},
    {"submissions", "SpTV, tables 1 and 2", 3, {3253292, 346715, 2}, 1600 * K, 0, 1, 121318},
    {"twitch", "AMPED, table 2", 5, {15500 * K, 6200 * K, 783900, 6100, 6100}, 500 * M, 1, 0, 0},
    {"uber", "BLCO, table 2", 4, {183, 24, 1100, 1700}, 3300 * K, 0.7, 0, 0},
    {"uber-pickups", "SpTV, tables 1 and 2", 4, {1717, 1140, 24, 183}, 3310 * K, 0, 1, 692597},
    {"user-ratedmovies", "SpTV, tables 1 and 2", 3, {71534, 65133, 10}, 856 * K, 0, 1, 63015},
    {"user-taggedartists",
     "SpTV, tables 1 and 2",
     3,
     {2100, 19 * K, 13 * K},
     186 * K,
     0,
     1,
     109750},
    {"vast-3d", "Cross-Platform, table 4", 3, {165427, 11374, 2}, 26021945, 0, 3, 26021945},
    {"vast-5d", "GenTen, table 6a", 5, {165 * K, 11 * K, 2, 100, 89}, 26 * M, 0.9, 0, 0},
};

const char *const slc_paper_tensor_names[SLC_PAPER_TENSORS + 1] = {"amazon",
                                                                   "chicago",
                                                                   "darpa",
                                                                   "delicious",
                                                                   "enron",
                                                                   "fb-m",
                                                                   "flickr",
                                                                   "genten-random",
                                                                   "lbnl",
                                                                   "nell-1",
                                                                   "nell-2",
                                                                   "nips",
                                                                   "patents",
                                                                   "ratings-m1",
                                                                   "ratings-m20",
                                                                   "reddit",
                                                                   "submissions",
                                                                   "twitch",
                                                                   "uber",
                                                                   "uber-pickups",
                                                                   "user-ratedmovies",
                                                                   "user-taggedartists",
                                                                   "vast-3d",
                                                                   "vast-5d",
                                                                   NULL};

/* A mode of this size or less is kept whole. */
#define DIM_MIN UINT64_C(16)

/* Sets dims to the mode sizes of the tensor, scaled so that their product shrinks by `scale`.
 * Processes modes by increasing size, as the shortest modes may keep their size. */
static void scale_dims(const struct slc_paper_tensor *tensor, double scale, uint64_t *dims)
{
    uint32_t done = 0;

    for (unsigned left = tensor->order; left > 0; left--) {
        const double factor = pow(scale, 1.0 / left);
        unsigned shortest = tensor->order;

        for (unsigned n = 0; n < tensor->order; n++) {
            if ((done >> n & 1) == 0 &&
                (shortest == tensor->order || tensor->dims[n] < tensor->dims[shortest])) {
                shortest = n;
            }
        }
        assert(shortest < tensor->order);
        const uint64_t size = tensor->dims[shortest];
        const uint64_t scaled = (uint64_t)llround((double)size * factor);
        dims[shortest] = slc_max_u64(scaled, slc_min_u64(size, DIM_MIN));
        scale /= (double)dims[shortest] / (double)size;
        done |= UINT32_C(1) << shortest;
    }
}

const struct slc_paper_tensor *slc_paper_tensor_find(const char *name)
{
    for (unsigned i = 0; i < SLC_PAPER_TENSORS; i++) {
        if (strcmp(slc_paper_tensors[i].name, name) == 0) {
            return &slc_paper_tensors[i];
        }
    }
    return NULL;
}

void slc_paper_tensor_options(const struct slc_paper_tensor *tensor,
                              double scale,
                              struct slc_generate_options *options)
{
    options->order = tensor->order;
    options->nnz = slc_max_u64((uint64_t)llround((double)tensor->nnz * scale), 1);
    scale_dims(tensor, scale, options->dims);
    if (tensor->fibers > 0) {
        const uint64_t fibers = (uint64_t)llround((double)tensor->fibers * scale);
        const uint64_t length = options->dims[tensor->fiber_mode - 1];

        options->distribution = SLC_DIST_FIBERS;
        options->mode = tensor->fiber_mode;
        options->fiber_count = slc_max_u64(fibers, slc_div_up_u64(options->nnz, length));
    } else {
        options->distribution =
            tensor->zipf_exponent > 0 ? SLC_DIST_ZIPF_SHUFFLED : SLC_DIST_UNIFORM;
        options->zipf_exponent = tensor->zipf_exponent;
    }
}
