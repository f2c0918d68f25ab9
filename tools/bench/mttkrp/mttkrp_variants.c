/* Selects the variants that the options ask for, and names them. */
#include "tools/bench/mttkrp/mttkrp_group.h"

#include "cpu/cpu.h"
#include "tools/bench/mttkrp/mttkrp_held.h"

#include <string.h>

const char *bench_mttkrp_kernel_name(const struct bench_mttkrp_variant *variant)
{
    if (variant->fibers) {
        return slc_fiber_form_name(variant->form);
    }
    if (variant->slices) {
        return slc_xplat_kernel_name(variant->listing);
    }
    return variant->listed ? slc_coo_kernel_name(variant->kernel) : "sluice";
}

const char *bench_mttkrp_conflict_name(const struct bench_mttkrp_variant *variant)
{
    if (variant->fibers) {
        return "atomic";
    }
    if (variant->slices) {
        return slc_conflict_name(SLC_CONFLICT_ROWS);
    }
    if (variant->listed) {
        return variant->kernel == SLC_COO_PERMUTED ? "permuted" : "atomic";
    }
    if (variant->best) {
        return "auto";
    }
    return variant->conflict == SLC_CONFLICT_AUTO ? "stream" : slc_conflict_name(variant->conflict);
}

const char *bench_mttkrp_layout_name(const struct bench_mttkrp_variant *variant,
                                     const struct slc_store *store)
{
    if (variant->fibers) {
        return slc_layout_name(mttkrp_fiber_layout(store, variant->fiber_mode));
    }
    return slc_layout_name(variant->sorted || variant->slices ? SLC_LAYOUT_SORTED
                                                              : SLC_LAYOUT_BLCO);
}

static void add_variant(struct bench_mttkrp_group *group, struct bench_mttkrp_variant variant)
{
    group->variants[group->variant_count++] = variant;
}

/* Returns true if the value of an option is `name` or "all". */
static bool selects(const char *option, const char *name)
{
    return strcmp(option, name) == 0 || strcmp(option, "all") == 0;
}

/* Adds the baselines over a list of coordinates that --kernel selects, for one instruction set. */
static void add_listed(const struct bench_mttkrp_selection *selection,
                       const char *instruction_set,
                       struct bench_mttkrp_group *group)
{
    for (enum slc_coo_kernel kernel = SLC_COO_EACH; kernel < SLC_COO_KERNELS; kernel++) {
        if (selects(selection->kernel, "genten") ||
            strcmp(selection->kernel, slc_coo_kernel_name(kernel)) == 0) {
            add_variant(group, (struct bench_mttkrp_variant){.instruction_set = instruction_set,
                                                             .listed = true,
                                                             .kernel = kernel});
        }
    }
}

/* Adds the baselines over fibers that --kernel selects, for each mode whose fibers a layout keeps
 * whole. */
static enum slc_status add_fibers(const struct bench_mttkrp_selection *selection,
                                  const struct slc_store *store,
                                  const char *instruction_set,
                                  struct bench_mttkrp_group *group,
                                  struct slc_error *err)
{
    bool any = strcmp(selection->kernel, "all") == 0;

    for (enum slc_fiber_form form = 0; form < SLC_FIBER_FORMS; form++) {
        if (!selects(selection->kernel, "atomic") &&
            strcmp(selection->kernel, slc_fiber_form_name(form)) != 0) {
            continue;
        }
        for (unsigned n = 0; n < store->manifest.order; n++) {
            if (mttkrp_has_fibers(store, n)) {
                any = true;
                add_variant(group, (struct bench_mttkrp_variant){.instruction_set = instruction_set,
                                                                 .fibers = true,
                                                                 .form = form,
                                                                 .fiber_mode = n});
            }
        }
    }
    if (!any && strncmp(selection->kernel, "atomic", strlen("atomic")) == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--kernel %s: the store keeps no mode's fibers whole: add layouts that do "
                        "(sluice layout %s --fiber all)",
                        selection->kernel, store->path);
    }
    return SLC_OK;
}

/* Returns true if slices of every measured mode can be built: the tensor has at least 3 modes, and
 * each of these modes has a sorted layout. */
static bool has_slices(const struct slc_store *store, const struct bench_mttkrp_group *group)
{
    bool has = store->manifest.order >= 3;

    for (unsigned n = group->mode_begin; has && n < group->mode_end; n++) {
        has = slc_manifest_find(&store->manifest, SLC_LAYOUT_SORTED, n) != NULL;
    }
    return has;
}

/* Adds the baselines over slices that --kernel selects. With `all`, omits them if they are not
 * possible; otherwise opening the sorted layouts fails if one is missing. */
static enum slc_status add_slices(const struct bench_mttkrp_selection *selection,
                                  const struct slc_store *store,
                                  const char *instruction_set,
                                  struct bench_mttkrp_group *group,
                                  struct slc_error *err)
{
    const bool all = strcmp(selection->kernel, "all") == 0;

    if (all && !has_slices(store, group)) {
        return SLC_OK;
    }
    for (enum slc_xplat_kernel listing = SLC_XPLAT_MTTKRP_ELEMENT; listing < SLC_XPLAT_KERNELS;
         listing++) {
        if (!selects(selection->kernel, "xplat") &&
            strcmp(selection->kernel, slc_xplat_kernel_name(listing)) != 0) {
            continue;
        }
        if (store->manifest.order < 3) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--kernel %s needs a tensor of 3 modes or more, but %s has %u",
                            selection->kernel, store->path, store->manifest.order);
        }
        add_variant(group, (struct bench_mttkrp_variant){.instruction_set = instruction_set,
                                                         .slices = true,
                                                         .listing = listing});
    }
    return SLC_OK;
}

/* Adds the strategies that --conflict selects, with layout `blco`, for one instruction set. */
static enum slc_status add_strategies(const struct bench_mttkrp_selection *selection,
                                      const char *instruction_set,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err)
{
    const bool all = strcmp(selection->conflict, "all") == 0;

    if (strcmp(selection->conflict, "auto") == 0) {
        add_variant(group, (struct bench_mttkrp_variant){.instruction_set = instruction_set,
                                                         .conflict = SLC_CONFLICT_AUTO,
                                                         .best = true});
        return SLC_OK;
    }
    for (enum slc_conflict c = SLC_CONFLICT_AUTO; c <= SLC_CONFLICT_REPLICA; c++) {
        const struct bench_mttkrp_variant variant = {
            .instruction_set = instruction_set, .conflict = c, .optional = all};
        /* Strategy `direct` needs one thread; `private` and `columns` help only with several
         * threads. */
        const bool sensible = group->threads == 1
                                  ? c != SLC_CONFLICT_PRIVATE && c != SLC_CONFLICT_COLUMNS
                                  : c != SLC_CONFLICT_DIRECT;

        /* Strategy `rows` (each row has one owner) follows from a layout; --conflict does not
         * select it. */
        if (c == SLC_CONFLICT_ROWS ||
            !selects(selection->conflict, bench_mttkrp_conflict_name(&variant))) {
            continue;
        }
        if (c == SLC_CONFLICT_DIRECT && !all && !sensible) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--conflict direct needs one thread, but --threads is %u",
                            group->threads);
        }
        if (!all || sensible) {
            add_variant(group, variant);
        }
    }
    return SLC_OK;
}

/* Adds the variants that the options select, for one instruction set. */
static enum slc_status add_variants(const struct bench_mttkrp_selection *selection,
                                    const struct slc_store *store,
                                    const char *instruction_set,
                                    struct bench_mttkrp_group *group,
                                    struct slc_error *err)
{
    if (selects(selection->kernel, "sluice") && selects(selection->layouts, "blco")) {
        SLC_TRY(add_strategies(selection, instruction_set, group, err));
    }
    if (selects(selection->kernel, "sluice") && selects(selection->layouts, "sorted")) {
        add_variant(group, (struct bench_mttkrp_variant){.instruction_set = instruction_set,
                                                         .sorted = true});
    }
    add_listed(selection, instruction_set, group);
    SLC_TRY(add_slices(selection, store, instruction_set, group, err));
    return add_fibers(selection, store, instruction_set, group, err);
}

enum slc_status bench_mttkrp_variants(const struct bench_mttkrp_selection *selection,
                                      const struct slc_store *store,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err)
{
    /* The instruction sets of the bandwidth loops. No other instruction set has kernels. */
    const struct bench_bandwidth_set *sets[BENCH_BANDWIDTH_SETS];
    const unsigned available = bench_bandwidth_sets(sets);

    group->variant_count = 0;
    if (strcmp(selection->isa, "all") != 0) {
        return add_variants(selection, store,
                            strcmp(selection->isa, "best") == 0 ? slc_cpu_instruction_set()
                                                                : selection->isa,
                            group, err);
    }
    for (unsigned i = 0; i < available; i++) {
        /* This build may have the bandwidth loops of an instruction set, but not its kernels. */
        if (slc_cpu_force_instruction_set(sets[i]->name)) {
            (void)slc_cpu_force_instruction_set(NULL);
            SLC_TRY(add_variants(selection, store, sets[i]->name, group, err));
        }
    }
    return SLC_OK;
}
