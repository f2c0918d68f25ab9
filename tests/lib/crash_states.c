/* Enumerates the states that a crash can leave. A change is open if it is not certainly on the
 * drive. A state assigns a fate to every open change; its tree is the tree at the start plus all
 * changes in their order, each applied as its fate says. */
#include "crash_states.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512, PAGE = 4096, BASIC_STATES = 4 };

struct model {
    const struct slc_recorded *disk;
    const struct slc_change *changes;
    uint64_t moment;
    bool in_order;
    bool *extends;  /* per change: whether it extends its file */
    uint64_t *open; /* indices of the open changes, ascending */
    uint64_t open_count;
    struct slc_crash_fate *fates; /* fate of each change before the moment */
    slc_crash_visitor *visit;
    void *context;
};

static bool is_of_folder(const struct slc_change *change)
{
    return change->kind == SLC_CHANGE_CREATE || change->kind == SLC_CHANGE_REMOVE ||
           change->kind == SLC_CHANGE_RENAME || change->kind == SLC_CHANGE_EXCHANGE;
}

static bool is_sync(const struct slc_change *change)
{
    return change->kind == SLC_CHANGE_SYNC || change->kind == SLC_CHANGE_SYNC_FOLDER;
}

static bool same_place(const struct slc_tree_place *a, const struct slc_tree_place *b, bool folder)
{
    return a->name != NULL && b->name != NULL && a->folder == b->folder &&
           (folder || strcmp(a->name, b->name) == 0);
}

/* Whether one change of names depends on another: same name or, with `folder`, same folder. */
static bool meet(const struct slc_change *a, const struct slc_change *b, bool folder)
{
    return same_place(&a->place, &b->place, folder) || same_place(&a->place, &b->to, folder) ||
           same_place(&a->to, &b->place, folder) || same_place(&a->to, &b->to, folder);
}

/* Whether the sync puts the change on the drive. */
static bool covers(const struct slc_change *sync, const struct slc_change *change)
{
    if (sync->kind == SLC_CHANGE_SYNC) {
        return !is_of_folder(change) && change->node == sync->node;
    }
    return sync->kind == SLC_CHANGE_SYNC_FOLDER && is_of_folder(change) &&
           (change->place.folder == sync->node ||
            (change->to.name != NULL && change->to.folder == sync->node));
}

/* Finds the open changes and marks all others as present. */
static void find_open(struct model *model)
{
    for (uint64_t i = 0; i < model->moment; i++) {
        model->fates[i] = (struct slc_crash_fate){.kind = SLC_FATE_MISSING};
    }
    for (uint64_t i = model->moment; i-- > 0;) {
        struct slc_crash_fate *fate = &model->fates[i];

        for (uint64_t s = i + 1; s < model->moment && !is_sync(&model->changes[i]); s++) {
            const bool synced = covers(&model->changes[s], &model->changes[i]);
            const bool built_on = is_of_folder(&model->changes[i]) &&
                                  is_of_folder(&model->changes[s]) &&
                                  model->fates[s].kind == SLC_FATE_THERE &&
                                  meet(&model->changes[i], &model->changes[s], false);

            if (synced || built_on) {
                fate->kind = SLC_FATE_THERE;
                break;
            }
        }
    }
    model->open_count = 0;
    for (uint64_t i = 0; i < model->moment; i++) {
        if (model->fates[i].kind == SLC_FATE_MISSING && !is_sync(&model->changes[i])) {
            model->open[model->open_count++] = i;
        }
    }
}

/* Finds the writes that extend their file if all changes are applied. */
static void find_extending(struct model *model)
{
    const struct slc_tree *base = slc_recorded_base(model->disk);
    uint32_t nodes = base->count;
    uint64_t *bytes;

    for (uint64_t i = 0; i < model->moment; i++) {
        nodes += model->changes[i].kind == SLC_CHANGE_CREATE;
    }
    bytes = slc_tree_memory(NULL, nodes * sizeof *bytes);
    for (uint32_t n = 0; n < nodes; n++) {
        bytes[n] = n < base->count ? base->nodes[n].bytes : 0;
    }
    for (uint64_t i = 0; i < model->moment; i++) {
        const struct slc_change *change = &model->changes[i];
        const uint64_t end = change->offset + change->bytes;

        model->extends[i] = change->kind == SLC_CHANGE_WRITE && end > bytes[change->node];
        if (change->kind == SLC_CHANGE_RESIZE || model->extends[i]) {
            bytes[change->node] = end;
        }
    }
    free(bytes);
}

/* Number of sectors of `unit` bytes that the write touches. */
static uint64_t sectors_of(const struct slc_change *write, uint32_t unit)
{
    return (write->offset + write->bytes - 1) / unit - write->offset / unit + 1;
}

/* Number of fates that the change can have; the k-th of them. */
static unsigned fate_count(const struct model *model, uint64_t at)
{
    const struct slc_change *change = &model->changes[at];

    if (change->kind != SLC_CHANGE_WRITE) {
        return 2;
    }
    return 2U + model->extends[at] + (sectors_of(change, SECTOR) > 1 ? 3U : 0U) +
           (sectors_of(change, PAGE) > 1 ? 3U : 0U);
}

static struct slc_crash_fate fate_of(const struct model *model, uint64_t at, unsigned k)
{
    static const enum slc_crash_fate_kind torn[] = {SLC_FATE_FIRST, SLC_FATE_LAST, SLC_FATE_SOME};
    const struct slc_change *change = &model->changes[at];
    struct slc_crash_fate fate = {.kind = k == 0 ? SLC_FATE_MISSING : SLC_FATE_THERE};

    if (k < 2) {
        return fate;
    }
    k -= 2;
    if (model->extends[at] && k-- == 0) {
        fate.kind = SLC_FATE_LENGTH;
        return fate;
    }
    /* A write that touches several pages also touches several sectors. */
    fate.unit = k < 3 ? SECTOR : PAGE;
    fate.kind = torn[k % 3];
    fate.cut = fate.kind == SLC_FATE_SOME ? 0 : sectors_of(change, fate.unit) / 2;
    return fate;
}

static void tear(struct slc_tree *tree, const struct slc_change *write, struct slc_crash_fate fate)
{
    const uint64_t first = write->offset / fate.unit;
    const uint64_t count = sectors_of(write, fate.unit);

    for (uint64_t s = 0; s < count; s++) {
        const uint64_t start = (first + s) * fate.unit;
        const uint64_t from = start > write->offset ? start - write->offset : 0;
        const uint64_t end = start + fate.unit - write->offset;
        const bool there = fate.kind == SLC_FATE_FIRST  ? s < fate.cut
                           : fate.kind == SLC_FATE_LAST ? s >= fate.cut
                                                        : slc_random_below(fate.cut, 0, s, 2) == 1;

        if (there) {
            slc_tree_write_part(tree, write, from, end < write->bytes ? end : write->bytes);
        }
    }
    if (fate.kind != SLC_FATE_FIRST) {
        slc_tree_grow(tree, write->node, write->offset + write->bytes);
    }
}

static void make(struct slc_tree *tree, const struct slc_change *change, struct slc_crash_fate fate)
{
    switch (fate.kind) {
    case SLC_FATE_MISSING:
        if (change->kind == SLC_CHANGE_CREATE) {
            (void)slc_tree_add(tree, change->node_kind); /* keeps later node numbers */
        }
        break;
    case SLC_FATE_THERE:
        slc_tree_apply(tree, change);
        break;
    case SLC_FATE_LENGTH:
        slc_tree_grow(tree, change->node, change->offset + change->bytes);
        break;
    case SLC_FATE_FIRST:
    case SLC_FATE_LAST:
    case SLC_FATE_SOME:
        tear(tree, change, fate);
        break;
    }
}

static bool visit(const struct model *model, bool killed)
{
    struct slc_tree tree;
    struct slc_crash_state state = {
        .tree = &tree, .moment = model->moment, .killed = killed, .fates = model->fates};
    bool more;

    slc_tree_copy(slc_recorded_base(model->disk), &tree);
    for (uint64_t i = 0; i < model->moment; i++) {
        make(&tree, &model->changes[i], model->fates[i]);
    }
    more = model->visit(model->context, &state);
    slc_tree_destroy(&tree);
    return more;
}

/* Drops names that depend on missing ones; returns whether there were any. */
static bool drop_unfounded(struct model *model)
{
    bool dropped = false;

    for (uint64_t j = 0; j < model->open_count; j++) {
        const struct slc_change *later = &model->changes[model->open[j]];
        struct slc_crash_fate *fate = &model->fates[model->open[j]];

        for (uint64_t i = 0; i < j && is_of_folder(later) && fate->kind == SLC_FATE_THERE; i++) {
            const struct slc_change *earlier = &model->changes[model->open[i]];

            if (is_of_folder(earlier) && model->fates[model->open[i]].kind == SLC_FATE_MISSING &&
                meet(earlier, later, model->in_order)) {
                fate->kind = SLC_FATE_MISSING;
                dropped = true;
            }
        }
    }
    return dropped;
}

/* Adds the changes on which the change of a name depends. */
static void found(struct model *model, uint64_t open)
{
    for (uint64_t j = open + 1; j-- > 0;) {
        const struct slc_change *later = &model->changes[model->open[j]];

        if (!is_of_folder(later) || model->fates[model->open[j]].kind != SLC_FATE_THERE) {
            continue;
        }
        for (uint64_t i = 0; i < j; i++) {
            const struct slc_change *earlier = &model->changes[model->open[i]];

            if (is_of_folder(earlier) && meet(earlier, later, model->in_order)) {
                model->fates[model->open[i]].kind = SLC_FATE_THERE;
            }
        }
    }
}

/* All combinations, counted like the digits of a number. */
static bool visit_all(struct model *model, uint64_t count)
{
    for (uint64_t combination = 0; combination < count; combination++) {
        uint64_t rest = combination;

        for (uint64_t i = 0; i < model->open_count; i++) {
            const unsigned fates = fate_count(model, model->open[i]);

            model->fates[model->open[i]] = fate_of(model, model->open[i], (unsigned)(rest % fates));
            rest /= fates;
        }
        if (!drop_unfounded(model) && !visit(model, false)) {
            return false;
        }
    }
    return true;
}

/* Sets all open bytes, or all open names, to present or missing. */
static void set_all(struct model *model, bool bytes, bool names)
{
    for (uint64_t i = 0; i < model->open_count; i++) {
        const uint64_t at = model->open[i];

        model->fates[at] = fate_of(model, at, is_of_folder(&model->changes[at]) ? names : bytes);
    }
}

static uint64_t extreme_count(const struct model *model)
{
    uint64_t count = BASIC_STATES;

    for (uint64_t i = 0; i < model->open_count; i++) {
        count += (uint64_t)BASIC_STATES * fate_count(model, model->open[i]);
    }
    return count;
}

/* The n-th extreme: all changes with the same fate, or all but one, which has any fate. */
static bool visit_extreme(struct model *model, uint64_t n)
{
    const unsigned basic = (unsigned)(n % BASIC_STATES);
    uint64_t rest = n / BASIC_STATES;

    set_all(model, basic % 2 != 0, basic / 2 != 0);
    if (rest > 0) {
        uint64_t open = 0;

        rest--;
        while (rest >= fate_count(model, model->open[open])) {
            rest -= fate_count(model, model->open[open++]);
        }
        model->fates[model->open[open]] = fate_of(model, model->open[open], (unsigned)rest);
        if (rest == 1) {
            found(model, open);
        }
    }
    (void)drop_unfounded(model);
    return visit(model, false);
}

/* A random state; the fractions of missing names and of missing bytes are random, too. */
static bool visit_sample(struct model *model, uint64_t seed, uint64_t sample)
{
    const uint64_t stream = model->moment;
    uint64_t drawn = sample << 32;
    const uint64_t missing[2] = {slc_random_below(seed, stream, drawn, 100),
                                 slc_random_below(seed, stream, drawn + 1, 100)};
    const bool torn = slc_random_below(seed, stream, drawn + 2, 2) == 1;
    const bool in_order = model->in_order;
    bool more;

    drawn += 3;
    for (uint64_t i = 0; i < model->open_count; i++) {
        const uint64_t at = model->open[i];
        const unsigned fates = fate_count(model, at);
        const bool there = slc_random_below(seed, stream, drawn++, 100) >=
                           missing[is_of_folder(&model->changes[at])];
        const uint64_t any = slc_random_below(seed, stream, drawn++, fates);
        struct slc_crash_fate *fate = &model->fates[at];

        *fate = fate_of(model, at, torn && fates > 2 ? (unsigned)any : there);
        if (fate->kind == SLC_FATE_SOME) {
            fate->cut = slc_random_u64(seed, stream, drawn++);
        } else if (fate->kind == SLC_FATE_FIRST || fate->kind == SLC_FATE_LAST) {
            fate->cut = 1 + slc_random_below(seed, stream, drawn++,
                                             sectors_of(&model->changes[at], fate->unit) - 1);
        }
    }
    /* Journaling file systems can leave only a small part of all states: half of the sample is
     * drawn from that part. */
    model->in_order = in_order || sample % 2 == 0;
    (void)drop_unfounded(model);
    model->in_order = in_order;
    more = visit(model, false);
    return more;
}

/* Visits extremes and a random sample. */
static bool visit_some(struct model *model, const struct slc_crash_bounds *bounds)
{
    const uint64_t count = extreme_count(model);
    const uint64_t extremes = count < bounds->extremes ? count : bounds->extremes;

    for (uint64_t i = 0; i < extremes; i++) {
        const bool chosen = count > extremes && i >= BASIC_STATES;
        const uint64_t n = chosen ? slc_random_below(bounds->seed, ~model->moment, i, count) : i;

        if (!visit_extreme(model, n)) {
            return false;
        }
    }
    for (uint64_t i = 0; i < bounds->samples; i++) {
        if (!visit_sample(model, bounds->seed, i)) {
            return false;
        }
    }
    return true;
}

bool slc_crash_states(const struct slc_recorded *disk,
                      uint64_t moment,
                      const struct slc_crash_bounds *bounds,
                      slc_crash_visitor *visitor,
                      void *context,
                      bool *all)
{
    uint64_t change_count, combinations = 1;
    struct model model = {.disk = disk,
                          .changes = slc_recorded_changes(disk, &change_count),
                          .moment = moment,
                          .in_order = bounds->in_order,
                          .visit = visitor,
                          .context = context};
    bool more;

    model.extends = slc_tree_memory(NULL, moment * sizeof *model.extends);
    model.open = slc_tree_memory(NULL, moment * sizeof *model.open);
    model.fates = slc_tree_memory(NULL, moment * sizeof *model.fates);
    find_extending(&model);
    find_open(&model);
    for (uint64_t i = 0; i < model.open_count && combinations <= bounds->all; i++) {
        combinations *= fate_count(&model, model.open[i]);
    }
    *all = combinations <= bounds->all;
    set_all(&model, true, true);
    more = visit(&model, true);
    if (more) {
        more = *all ? visit_all(&model, combinations) : visit_some(&model, bounds);
    }
    free(model.extends);
    free(model.open);
    free(model.fates);
    return more;
}

static void print_place(const struct slc_tree_place *place)
{
    if (place->name != NULL) {
        printf(" %" PRIu32 "/%s", place->folder, place->name);
    }
}

void slc_crash_print(const struct slc_recorded *disk, const struct slc_crash_state *state)
{
    static const char *const kinds[] = {"create", "remove", "rename", "exchange",
                                        "write",  "resize", "sync",   "sync folder"};
    static const char *const fates[] = {"missing",    "there",     "length only",
                                        "first part", "last part", "parts"};
    uint64_t count;
    const struct slc_change *changes = slc_recorded_changes(disk, &count);

    for (uint64_t i = 0; i < state->moment; i++) {
        const struct slc_change *change = &changes[i];

        printf("#   %" PRIu64 " %s %" PRIu32, i, kinds[change->kind], change->node);
        print_place(&change->place);
        print_place(&change->to);
        if (change->kind == SLC_CHANGE_WRITE || change->kind == SLC_CHANGE_RESIZE) {
            printf(" at %" PRIu64 " %" PRIu64, change->offset, change->bytes);
        }
        printf("%s%s\n", is_sync(change) ? "" : ": ",
               is_sync(change) ? "" : fates[state->fates[i].kind]);
    }
    slc_tree_print(state->tree);
}
