/* Variants of the MTTKRP kernel on one open device, for benchmarks that compare them in one run. */
#ifndef SLC_GPU_VARIANTS_H
#define SLC_GPU_VARIANTS_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of variants, and the name of each. Variant 0 is "default", which everything except
 * benchmarks uses. */
unsigned slc_gpu_variants(void);
const char *slc_gpu_variant_name(unsigned variant);

/*
 * Makes an open device of gpu/ use a variant for its next jobs, until another variant is chosen or
 * the device is closed. Transcoded variants transcode the blocks that are resident at the time of
 * the call to additional memory; the default computes all other blocks. Errors: SLC_ERR_USAGE
 * during a job; SLC_ERR_UNSUPPORTED unless factors are f64 and sums may be in any order;
 * SLC_ERR_DAMAGED as in mttkrp_end; SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After SLC_ERR_USAGE nothing has
 * changed; after any other error the device uses the default.
 */
enum slc_status slc_gpu_variant_use(struct slc_device *device,
                                    unsigned variant,
                                    struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
