/* See gpu_report.h. */
#include "tools/report/gpu_report.h"

#include "base/memory/checked.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>

static void part_line(const char *name, uint64_t bytes, const char *what)
{
    struct format_text text;

    if (bytes > 0) {
        printf("    %-10s %10s  %s\n", name, format_memory(&text, bytes), what);
    }
}

/* What a pass and an iteration copy, once what stays has come. */
static void report_copied(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    const uint64_t count = slc_max_u64(plan->request.gpu_count, 1);
    const bool all = plan->request.operation == SLC_OP_CPD;
    uint64_t least = UINT64_MAX, most = 0;
    struct format_text a, b, c, d;

    for (unsigned n = 0; n < order; n++) {
        if (all || n == plan->request.mode) {
            const uint64_t bytes = slc_plan_pass_copied(plan, n);

            least = slc_min_u64(least, bytes);
            most = slc_max_u64(most, bytes);
        }
    }
    printf("    %-10s %10s  ", "copied", format_data(&a, (double)most));
    if (least < most) {
        printf("per pass at most, %s at least", format_data(&b, (double)least));
    } else {
        printf("per pass%s", plan->request.hybrid.kind != SLC_HYBRID_NONE
                                 ? " at most, the CPU has the rest"
                                 : "");
    }
    if (all) {
        printf(", %s per iteration", format_data(&c, (double)slc_plan_iteration_copied(plan)));
    }
    printf(", through %" PRIu64 " slot%s of %s\n", count * gpu->streams,
           count * gpu->streams == 1 ? "" : "s", format_memory(&d, gpu->slot_bytes));
}

static void report_share_wish(const struct slc_hybrid_wish *wish)
{
    struct slc_hybrid_text text;

    if (wish->kind != SLC_HYBRID_NONE) {
        printf("  %-12s between CPU and device: %s\n", "shared", slc_hybrid_name(wish, &text));
    }
}

void gpu_report_described(const struct slc_plan *plan, const struct slc_error *no_device)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    struct format_text a, b;

    if (!gpu->described) {
        return;
    }
    printf("  %-12s described, not opened: %u multiprocessors, %s of shared memory per block, %s\n",
           "", gpu->multiprocessors, format_memory(&a, gpu->shared_bytes),
           format_data(&b, (double)gpu->device_total_bytes));
    if (no_device->status != SLC_OK) {
        printf("  %-12s no GPU can be used here (%s); --device-name chooses another chip\n", "",
               no_device->message);
    }
    printf("  %-12s the host's memory is counted without what the GPU's driver takes\n", "");
}

void gpu_report_plan(const struct slc_plan *plan, unsigned order)
{
    const struct slc_plan_gpu *gpu = &plan->gpu;
    struct format_text a, b;
    uint64_t kept = 0;
    char slots[96];
    char residents[96];

    if (plan->request.gpu == NULL) {
        return;
    }
    (void)snprintf(slots, sizeof slots, "beyond the smallest: %u stream%s with slots of %s",
                   gpu->streams, gpu->streams == 1 ? "" : "s", format_memory(&a, gpu->slot_bytes));
    for (unsigned l = 0; l < plan->layout_count; l++) {
        kept += plan->layouts[l].resident_bytes;
    }
    (void)snprintf(residents, sizeof residents, "%" PRIu64 " block%s that stay%s, copied once: %s",
                   gpu->kept_blocks, gpu->kept_blocks == 1 ? "" : "s",
                   gpu->kept_blocks == 1 ? "s" : "", format_data(&a, (double)kept));
    printf("  %-12s %s of %s on the device (smallest that works: %.0f MiB)\n", "",
           format_memory(&a, gpu->total_bytes), format_memory(&b, gpu->budget_bytes),
           (double)(gpu->minimum_bytes + ((1U << 20) - 1)) / (1U << 20));
    part_line("factors", gpu->factor_bytes, "output, solver and the smallest slots");
    part_line("slots", gpu->slots_bytes, slots);
    part_line("residents", gpu->resident_bytes, residents);
    report_copied(plan, order);
    report_share_wish(&plan->request.hybrid);
}

void gpu_report_stats(const struct slc_plan *plan, const struct slc_device_stats *stats)
{
    struct format_text a, b, c;

    if (plan->request.gpu == NULL) {
        return;
    }
    printf("Device (%s)\n", plan->gpu.name);
    printf("  %-12s %s of blocks in %.3f s, %s of all else to it, %s from it\n", "copied",
           format_data(&a, (double)stats->block_bytes), stats->copy_seconds,
           format_data(&b, (double)stats->bytes_to_device),
           format_data(&c, (double)stats->bytes_to_host));
    printf("  %-12s %" PRIu64 " blocks in %" PRIu64 " launches, %.3f s; %s without a copy\n\n",
           "computed", stats->blocks, stats->launches, stats->compute_seconds,
           format_data(&a, (double)stats->resident_bytes));
}

void gpu_report_shares(const struct slc_hybrid *shares, unsigned order)
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
