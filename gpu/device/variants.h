/*
 * Variants of the MTTKRP kernel on one open device, for benchmarks that compare them in one run.
 */
#ifndef SLC_GPU_VARIANTS_H
#define SLC_GPU_VARIANTS_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Their number, and their names: "default" is number 0, which everything else computes by. */
unsigned slc_gpu_variants(void);
const char *slc_gpu_variant_name(unsigned variant);

/*
 * Has an open device of gpu/ compute its next jobs by a variant, until another is chosen or the
 * device is closed. Transcoded variants copy the blocks that are resident by now, in memory next to
 * what the device holds; other blocks are computed by the default. Errors: SLC_ERR_USAGE
 * during a job, SLC_ERR_UNSUPPORTED unless factors are f64 and sums in any order, SLC_ERR_DAMAGED
 * as mttkrp_end, SLC_ERR_MEMORY, SLC_ERR_SYSTEM. After SLC_ERR_USAGE nothing has changed; after any
 * other error the device computes by the default.
 */
enum slc_status slc_gpu_variant_use(struct slc_device *device,
                                    unsigned variant,
                                    struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
