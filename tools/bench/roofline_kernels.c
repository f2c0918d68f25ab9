/* The table of kernels; see roofline_kernels.h. */
#include "roofline_kernels.h"

const struct roofline_kernel roofline_kernels[] = {
    {"mttkrp-copies", roofline_mttkrp_copies},
    {"mttkrp-stream", roofline_mttkrp_stream},
    {"sptv", roofline_sptv},
    {"ttm-fiber", roofline_ttm_fiber},
    {"ttm-element", roofline_ttm_element},
};
const unsigned roofline_kernel_count = sizeof roofline_kernels / sizeof roofline_kernels[0];

_Static_assert(sizeof roofline_kernels / sizeof roofline_kernels[0] <= ROOFLINE_KERNELS_MAX,
               "raise ROOFLINE_KERNELS_MAX");
