/* See share.h. */
#include "share.h"

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
               "the rest by the CPU in %.3f s\n",
               n + 1, 100 * slc_share_fraction(share->parts), 100 * slc_share_fraction(share->last),
               device->seconds, cpu->seconds);
        first = false;
    }
    if (!first) {
        printf("\n");
    }
}

/* A fraction that there may be none of. */
static json_t *fraction_json(double fraction)
{
    return fraction >= 0 ? json_real(fraction) : json_null();
}

static json_t *sides_json(json_t *cpu, json_t *device)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "cpu", cpu);
    (void)json_object_set_new(object, "device", device);
    return object;
}

json_t *share_wish_json(const struct slc_share_wish *wish)
{
    json_t *object;

    if (wish->kind == SLC_SHARE_NONE) {
        return json_null();
    }
    object = json_object();
    (void)json_object_set_new(object, "kind", json_string(slc_share_kind_name(wish->kind)));
    (void)json_object_set_new(object, "fraction",
                              fraction_json(wish->kind == SLC_SHARE_STATIC ? wish->fraction : -1));
    return object;
}

json_t *share_json(const struct slc_share *shares, unsigned order)
{
    json_t *object = share_wish_json(&shares[0].wish);
    json_t *modes = json_array();

    for (unsigned n = 0; n < order; n++) {
        const struct slc_share *share = &shares[n];
        const struct slc_share_part *cpu = &share->parts[SLC_SHARE_CPU];
        const struct slc_share_part *device = &share->parts[SLC_SHARE_DEVICE];
        json_t *mode;

        if (share->passes == 0) {
            continue;
        }
        mode = json_object();
        (void)json_object_set_new(mode, "mode", json_integer(n + 1));
        (void)json_object_set_new(mode, "passes", json_integer((json_int_t)share->passes));
        (void)json_object_set_new(mode, "measured",
                                  fraction_json(slc_share_rates_fraction(&share->rates)));
        (void)json_object_set_new(mode, "used", fraction_json(slc_share_fraction(share->parts)));
        (void)json_object_set_new(mode, "used_last",
                                  fraction_json(slc_share_fraction(share->last)));
        (void)json_object_set_new(
            mode, "nnz",
            sides_json(json_integer((json_int_t)cpu->nnz), json_integer((json_int_t)device->nnz)));
        (void)json_object_set_new(mode, "seconds",
                                  sides_json(json_real(cpu->seconds), json_real(device->seconds)));
        (void)json_array_append_new(modes, mode);
    }
    if (json_is_null(object)) {
        json_decref(modes);
        return object;
    }
    (void)json_object_set_new(object, "modes", modes);
    return object;
}
