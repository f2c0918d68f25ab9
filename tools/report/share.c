/* See share.h. */
#include "tools/report/share.h"

#include <inttypes.h>
#include <stdio.h>

void share_report_plan(const struct slc_share_wish *wish)
{
    struct slc_share_text text;

    if (wish->kind != SLC_SHARE_NONE) {
        printf("  %-12s between CPU and device: %s\n", "shared", slc_share_name(wish, &text));
    }
}

void share_report(const struct slc_share *shares, unsigned order)
{
    struct slc_share_text text;
    bool first = true;

    for (unsigned n = 0; n < order; n++) {
        const struct slc_share *share = &shares[n];
        const struct slc_share_part *cpu = &share->parts[SLC_SHARE_CPU];
        const struct slc_share_part *device = &share->parts[SLC_SHARE_DEVICE];

        if (share->passes == 0 || cpu->nnz + device->nnz == 0) {
            continue;
        }
        if (first) {
            printf("Shared between CPU and device (%s)\n", slc_share_name(&share->wish, &text));
        }
        printf("  mode %-7u %.1f %% of the nonzeros by the device (last pass: %.1f %%) in %.3f s, "
               "the rest by the CPU in %.3f s; %" PRIu64 " of %" PRIu64 " passes without the CPU\n",
               n + 1, 100 * slc_share_fraction(share->parts), 100 * slc_share_fraction(share->last),
               device->seconds, cpu->seconds, share->passes_alone, share->passes);
        first = false;
    }
    if (!first) {
        printf("\n");
    }
}
