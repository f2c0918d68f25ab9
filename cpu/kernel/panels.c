/* Processes rows of any length with kernels of fixed widths: first panels of the largest width that
 * fits in the registers, and then narrower panels for the remaining columns, down to a single
 * element. */
#include "cpu/kernel/kernels.h"

void slc_panels_add(const struct slc_kernel_set *kernels,
                    enum slc_value_type type,
                    const struct slc_mttkrp_span *span)
{
    const unsigned class =
        (span->factor_count < SLC_FACTOR_CLASSES ? span->factor_count : SLC_FACTOR_CLASSES) - 1;
    slc_mttkrp_fn *const *widths =
        type == SLC_F32 ? kernels->mttkrp_f32[class] : kernels->mttkrp_f64[class];

    for (uint64_t column = 0; column < span->row_bytes;) {
        const unsigned width = slc_panel_log2(kernels, type, span->row_bytes - column);

        widths[width](span, column);
        column += UINT64_C(1) << width;
    }
}

void slc_panels_add_fibers(const struct slc_kernel_set *kernels,
                           enum slc_value_type type,
                           const struct slc_fiber_span *span)
{
    const unsigned class =
        span->factor_count < SLC_SHARED_CLASSES ? span->factor_count : SLC_SHARED_CLASSES - 1;
    slc_fiber_fn *const *widths =
        type == SLC_F32 ? kernels->fiber_f32[class] : kernels->fiber_f64[class];

    for (uint64_t column = 0; column < span->row_bytes;) {
        const unsigned width = slc_panel_log2(kernels, type, span->row_bytes - column);

        widths[width](span, column);
        column += UINT64_C(1) << width;
    }
}
