#include "tools/report/product_gpu.h"

#include "gpu/gpu.h"
#include "tools/options/fields.h"
#include "tools/progress/format.h"

#include <inttypes.h>

enum slc_status product_gpu_choose(const struct session_options *options,
                                   struct slc_products_choice *choice,
                                   struct slc_error *err)
{
    struct slc_device_wish wish;

    SLC_TRY(session_device_wish(options, false, &wish, err));
    return slc_products_choose(&wish, slc_gpu_maker(), choice, err);
}

static bool is_used(const struct product_gpu *product)
{
    return product->choice->device != NULL && product->refused->status == SLC_OK;
}

/* Returns the fraction of the nonzeros that the device computed. */
static double part_of(const struct slc_hybrid_tiles_report *hybrid)
{
    const double device = (double)hybrid->nnz[SLC_HYBRID_GPU];
    const double all = device + (double)hybrid->nnz[SLC_HYBRID_CPU];

    return slc_ratio(device, all);
}

static void print_shares(const struct slc_hybrid_tiles_report *hybrid, FILE *out)
{
    struct format_text a, b;

    (void)fprintf(out,
                  "  %-12s GPU %" PRIu64 " tile%s, %s nonzeros (%.1f %%), %.3fs; CPU %" PRIu64
                  " tile%s, %s nonzeros, %.3fs",
                  "shares", hybrid->tiles[SLC_HYBRID_GPU], plural(hybrid->tiles[SLC_HYBRID_GPU]),
                  format_count(&a, hybrid->nnz[SLC_HYBRID_GPU]), 100 * part_of(hybrid),
                  hybrid->seconds[SLC_HYBRID_GPU], hybrid->tiles[SLC_HYBRID_CPU],
                  plural(hybrid->tiles[SLC_HYBRID_CPU]),
                  format_count(&b, hybrid->nnz[SLC_HYBRID_CPU]), hybrid->seconds[SLC_HYBRID_CPU]);
    if (hybrid->fraction >= 0) {
        (void)fprintf(out, "; divided by %.3f", hybrid->fraction);
    }
    (void)fprintf(out, "\n");
}

void product_gpu_print(const struct product_gpu *product, FILE *out)
{
    const struct slc_products_choice *choice = product->choice;
    const struct slc_plan_gpu *plan = product->plan;
    struct slc_hybrid_text share;
    struct format_text a, b, c;
    struct fault_text why;

    if (product->refused->status != SLC_OK) {
        (void)fprintf(out, "  %-12s not used: %s\n", "GPU", fault_text(&why, product->refused));
    }
    if (!is_used(product)) {
        return;
    }
    (void)fprintf(out, "  %-12s %s (%s), %u lane%s, %s of %s on it (minimum: %s)", "device",
                  plan->name, choice->device->ops->name, plan->streams, plural(plan->streams),
                  format_memory(&a, plan->total_bytes), format_memory(&b, plan->budget_bytes),
                  format_memory(&c, plan->minimum_bytes));
    if (choice->hybrid.kind != SLC_HYBRID_NONE) {
        (void)fprintf(out, "; split %s with %u thread%s", slc_hybrid_name(&choice->hybrid, &share),
                      product->threads, plural(product->threads));
    }
    (void)fprintf(out, "\n");
    if (product->report != NULL) {
        print_shares(&product->report->hybrid, out);
    }
}

static json_t *side_json(const struct slc_hybrid_tiles_report *hybrid, enum slc_hybrid_side side)
{
    return json_pack("{s:I, s:I, s:f}", "tiles", (json_int_t)hybrid->tiles[side], "nnz",
                     (json_int_t)hybrid->nnz[side], "seconds", hybrid->seconds[side]);
}

json_t *product_gpu_json(const struct product_gpu *product)
{
    const struct slc_plan_gpu *plan = product->plan;
    const struct slc_products_report *report = product->report;
    struct slc_hybrid_text share;

    if (!is_used(product)) {
        return json_null();
    }
    json_t *object = json_pack("{s:s, s:i, s:I, s:I, s:I, s:s}", "name", plan->name, "lanes",
                               (int)plan->streams, "memory_bytes", (json_int_t)plan->total_bytes,
                               "memory_least_bytes", (json_int_t)plan->minimum_bytes,
                               "memory_budget_bytes", (json_int_t)plan->budget_bytes, "split",
                               slc_hybrid_name(&product->choice->hybrid, &share));
    if (report != NULL) {
        const struct slc_device_stats *stats = &report->device;
        json_t *done = json_pack(
            "{s:o, s:o, s:f, s:o, s:I, s:I, s:I, s:f, s:f, s:f}", "gpu",
            side_json(&report->hybrid, SLC_HYBRID_GPU), "cpu",
            side_json(&report->hybrid, SLC_HYBRID_CPU), "part", part_of(&report->hybrid),
            "fraction",
            report->hybrid.fraction >= 0 ? json_real(report->hybrid.fraction) : json_null(),
            "block_bytes", (json_int_t)stats->block_bytes, "bytes_to_device",
            (json_int_t)stats->bytes_to_device, "bytes_to_host", (json_int_t)stats->bytes_to_host,
            "copy_seconds", stats->copy_seconds, "compute_seconds", stats->compute_seconds,
            "busy_seconds", stats->busy_seconds);

        (void)json_object_update_new(object, done);
    }
    return object;
}
