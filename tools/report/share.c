/* See share.h. */
#include "tools/report/share.h"

#include <inttypes.h>
#include <stdio.h>

void share_report_plan(const struct slc_hybrid_wish *wish)
{
    struct slc_hybrid_text text;

    if (wish->kind != SLC_HYBRID_NONE) {
        printf("  %-12s between CPU and device: %s\n", "shared", slc_hybrid_name(wish, &text));
    }
}

void share_report(const struct slc_hybrid *shares, unsigned order)
{
    struct slc_hybrid_text text;
    bool first = true;

    for (unsigned n = 0; n < order; n++) {
        const struct slc_hybrid *share = &shares[n];
        const struct slc_hybrid_part *cpu = &share->parts[SLC_HYBRID_CPU];
        const struct slc_hybrid_part *device = &share->parts[SLC_HYBRID_GPU];

        if (share->passes == 0 || cpu->nnz + device->nnz == 0) {
            continue;
        }
        if (first) {
            printf("Shared between CPU and device (%s)\n", slc_hybrid_name(&share->wish, &text));
        }
        printf("  mode %-7u %.1f %% of the nonzeros by the device (last pass: %.1f %%) in %.3f s, "
               "the rest by the CPU in %.3f s; %" PRIu64 " of %" PRIu64 " passes without the CPU\n",
               n + 1, 100 * slc_hybrid_fraction(share->parts),
               100 * slc_hybrid_fraction(share->last), device->seconds, cpu->seconds,
               share->passes_alone, share->passes);
        first = false;
    }
    if (!first) {
        printf("\n");
    }
}
