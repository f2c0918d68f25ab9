/* See accelerator.h. */
#include "accelerator.h"

#include "format.h"
#include "share.h"

#include <inttypes.h>
#include <stdio.h>

static void part_line(const char *name, uint64_t bytes, const char *what)
{
    struct format_text text;

    if (bytes > 0) {
        printf("    %-10s %10s  %s\n", name, format_memory(&text, bytes), what);
    }
}

void accelerator_report_plan(const struct slc_plan *plan)
{
    const struct slc_plan_accelerator *accelerator = &plan->accelerator;
    struct format_text a, b;
    char slots[96];
    char residents[96];

    if (plan->request.accelerator == NULL) {
        return;
    }
    (void)snprintf(slots, sizeof slots, "beyond the smallest: %u stream%s with slots of %s",
                   accelerator->streams, accelerator->streams == 1 ? "" : "s",
                   format_memory(&a, accelerator->slot_bytes));
    (void)snprintf(residents, sizeof residents, "%" PRIu64 " block%s that stay%s, copied once",
                   accelerator->kept_blocks, accelerator->kept_blocks == 1 ? "" : "s",
                   accelerator->kept_blocks == 1 ? "s" : "");
    printf("  %-12s %s of %s on the device (smallest that works: %.0f MiB)\n", "",
           format_memory(&a, accelerator->total_bytes),
           format_memory(&b, accelerator->budget_bytes),
           (double)(accelerator->minimum_bytes + ((1U << 20) - 1)) / (1U << 20));
    part_line("factors", accelerator->factor_bytes, "output, solver and the smallest slots");
    part_line("slots", accelerator->slots_bytes, slots);
    part_line("residents", accelerator->resident_bytes, residents);
    share_report_plan(&plan->request.share);
}

void accelerator_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    struct format_text a, b, c;

    if (plan->request.accelerator == NULL) {
        return;
    }
    printf("Device (%s)\n", plan->accelerator.name);
    printf("  %-12s %s of blocks in %.3f s, %s of all else to it, %s from it\n", "copied",
           format_data(&a, (double)stats->block_bytes), stats->copy_seconds,
           format_data(&b, (double)stats->bytes_to_device),
           format_data(&c, (double)stats->bytes_to_host));
    printf("  %-12s %" PRIu64 " blocks in %" PRIu64 " launches, %.3f s; %s without a copy\n\n",
           "computed", stats->blocks, stats->launches, stats->compute_seconds,
           format_data(&a, (double)stats->resident_bytes));
}
