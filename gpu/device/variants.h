/* Chooses variants of the MTTKRP kernel on one open device, for benchmarks that compare variants in
 * one run. */
#ifndef SLC_GPU_VARIANTS_H
#define SLC_GPU_VARIANTS_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the number of variants, and the name of a variant. Variant 0 is "default", which
 * everything except benchmarks uses. */
unsigned slc_gpu_variants(void);
const char *slc_gpu_variant_name(unsigned variant);

/* Makes an open device of gpu/ use a variant for its next jobs, until another variant is chosen or
 * the device is closed. For a transcoded variant, the call transcodes all blocks that are resident
 * at this time to additional memory; the default variant computes all other blocks. Errors:
 * SLC_ERR_USAGE during a job; SLC_ERR_UNSUPPORTED if factors are not f64 or sums are deterministic;
 * SLC_ERR_DAMAGED as in mttkrp_end; SLC_ERR_MEMORY; SLC_ERR_SYSTEM. After SLC_ERR_USAGE the device
 * uses the same variant as before; after any other error the device uses the default variant. */
enum slc_status slc_gpu_variant_use(struct slc_device *device,
                                    unsigned variant,
                                    struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
