/* Writes and reads the state of a run as a list of numbers. All numbers that are read are untrusted
 * and are checked before use. */
#include "base/memory/checked.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/solve/cp_state.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Version of the section `state`. Increment it when members are added. Version 1 did not have
 * struct slc_cp_part. */
enum { STATE_VERSION = 2, STATE_VERSION_PARTS = 2 };

void cp_factor_name(unsigned mode, char name[SLC_CHECKPOINT_NAME_BYTES])
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "factor-%u", (mode + 1) % 100);
}

static void write_cost(struct slc_checkpoint *checkpoint, const struct slc_conflict_cost *cost)
{
    slc_checkpoint_put_u64(checkpoint, (uint64_t)cost->conflict);
    slc_checkpoint_put_f64(checkpoint, cost->predicted_ns);
    slc_checkpoint_put_f64(checkpoint, cost->measured_ns);
}

static void write_choice(struct slc_checkpoint *checkpoint,
                         const struct slc_conflict_choice *choice)
{
    slc_checkpoint_put_u64(checkpoint, (uint64_t)choice->chosen);
    slc_checkpoint_put_u64(checkpoint, (uint64_t)choice->rival);
    slc_checkpoint_put_u64(checkpoint, choice->cost_count);
    for (unsigned i = 0; i < SLC_CONFLICT_COSTS; i++) {
        write_cost(checkpoint, &choice->costs[i]);
    }
    write_cost(checkpoint, &choice->spare);
}

static void write_part(struct slc_checkpoint *checkpoint, const struct slc_cp_part *part)
{
    slc_checkpoint_put_u64(checkpoint, part->position);
    slc_checkpoint_put_u64(checkpoint, part->hash);
    slc_checkpoint_put_u64(checkpoint, part->fused);
    for (unsigned j = 0; j < 2; j++) {
        slc_checkpoint_put_u64(checkpoint, (uint64_t)part->conflict[j]);
        slc_checkpoint_put_u64(checkpoint, (uint64_t)part->rival[j]);
    }
}

void cp_saved_write(struct slc_checkpoint *checkpoint, const struct slc_cp_saved *saved)
{
    const double times[] = {saved->times.total, saved->times.mttkrp, saved->times.solve,
                            saved->times.fit,   saved->times.init,   saved->times.copies};

    slc_checkpoint_section(checkpoint, "state");
    slc_checkpoint_put_u64(checkpoint, STATE_VERSION);
    slc_checkpoint_put_u64(checkpoint, saved->order);
    slc_checkpoint_put_u64(checkpoint, saved->iterations);
    slc_checkpoint_put_u64(checkpoint, saved->place);
    slc_checkpoint_put_u64(checkpoint, saved->pending);
    slc_checkpoint_put_u64(checkpoint, saved->settled);
    slc_checkpoint_put_u64(checkpoint, saved->copies_after);
    slc_checkpoint_put_u64(checkpoint, saved->threads);
    slc_checkpoint_put_u64(checkpoint, saved->checkpoints.resumes);
    slc_checkpoint_put_u64(checkpoint, saved->checkpoints.count);
    slc_checkpoint_put_u64(checkpoint, saved->written);
    slc_checkpoint_put_u64(checkpoint, saved->past_count);
    slc_checkpoint_put_f64(checkpoint, saved->checkpoints.seconds);
    slc_checkpoint_put_f64(checkpoint, saved->fit);
    slc_checkpoint_put_f64(checkpoint, saved->inner);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        slc_checkpoint_put_f64(checkpoint, times[i]);
    }
    write_part(checkpoint, &saved->part);
    for (unsigned n = 0; n < saved->order; n++) {
        slc_checkpoint_put_u64(checkpoint, saved->mode_order[n]);
        write_choice(checkpoint, &saved->choices[n]);
        write_choice(checkpoint, &saved->second_choices[n]);
    }
}

/* Reads and returns a number. If it is larger than `most`, returns 0 and sets *sound to false. */
static unsigned read_below(struct slc_checkpoint_reader *reader, uint64_t most, bool *sound)
{
    const uint64_t value = slc_checkpoint_get_u64(reader);

    *sound = *sound && value <= most;
    return value <= most ? (unsigned)value : 0;
}

static void
read_cost(struct slc_checkpoint_reader *reader, struct slc_conflict_cost *cost, bool *sound)
{
    cost->conflict = (enum slc_conflict)read_below(reader, SLC_CONFLICT_REPLICA, sound);
    cost->predicted_ns = slc_checkpoint_get_f64(reader);
    cost->measured_ns = slc_checkpoint_get_f64(reader);
}

static void
read_choice(struct slc_checkpoint_reader *reader, struct slc_conflict_choice *choice, bool *sound)
{
    choice->chosen = (enum slc_conflict)read_below(reader, SLC_CONFLICT_REPLICA, sound);
    choice->rival = (enum slc_conflict)read_below(reader, SLC_CONFLICT_REPLICA, sound);
    choice->cost_count = read_below(reader, SLC_CONFLICT_COSTS, sound);
    for (unsigned i = 0; i < SLC_CONFLICT_COSTS; i++) {
        read_cost(reader, &choice->costs[i], sound);
    }
    read_cost(reader, &choice->spare, sound);
}

static void read_part(struct slc_checkpoint_reader *reader, struct slc_cp_part *part, bool *sound)
{
    part->position = slc_checkpoint_get_u64(reader);
    part->hash = slc_checkpoint_get_u64(reader);
    part->fused = read_below(reader, 1, sound) != 0;
    for (unsigned j = 0; j < 2; j++) {
        part->conflict[j] = (enum slc_conflict)read_below(reader, SLC_CONFLICT_REPLICA, sound);
        part->rival[j] = (enum slc_conflict)read_below(reader, SLC_CONFLICT_REPLICA, sound);
    }
}

static void read_state(struct slc_checkpoint_reader *reader,
                       uint64_t version,
                       struct slc_cp_saved *saved,
                       bool *sound)
{
    struct slc_cp_times *times = &saved->times;
    double *const into[] = {&times->total, &times->mttkrp, &times->solve,
                            &times->fit,   &times->init,   &times->copies};

    saved->order = read_below(reader, SLC_MAX_ORDER, sound);
    saved->iterations = read_below(reader, INT_MAX, sound);
    saved->place = read_below(reader, SLC_MAX_ORDER, sound);
    saved->pending = read_below(reader, SLC_MAX_ORDER, sound);
    saved->settled = read_below(reader, UINT32_MAX, sound);
    saved->copies_after = read_below(reader, UINT_MAX, sound);
    saved->threads = read_below(reader, UINT_MAX, sound);
    saved->checkpoints.resumes = read_below(reader, INT_MAX, sound);
    saved->checkpoints.count = slc_checkpoint_get_u64(reader);
    saved->written = slc_checkpoint_get_u64(reader);
    saved->past_count = read_below(reader, INT_MAX, sound);
    saved->checkpoints.seconds = slc_checkpoint_get_f64(reader);
    saved->fit = slc_checkpoint_get_f64(reader);
    saved->inner = slc_checkpoint_get_f64(reader);
    for (size_t i = 0; i < sizeof into / sizeof into[0]; i++) {
        *into[i] = slc_checkpoint_get_f64(reader);
    }
    if (version >= STATE_VERSION_PARTS) {
        read_part(reader, &saved->part, sound);
    }
    for (unsigned n = 0; n < saved->order; n++) {
        saved->mode_order[n] = read_below(reader, SLC_MAX_ORDER - 1, sound);
        read_choice(reader, &saved->choices[n], sound);
        read_choice(reader, &saved->second_choices[n], sound);
    }
}

/* Returns true if the numbers are consistent. */
static bool is_state(const struct slc_cp_saved *saved)
{
    return saved->order > 0 && saved->place < saved->order &&
           saved->past_count == saved->iterations &&
           slc_plan_check_order(saved->order, saved->mode_order, NULL) == SLC_OK &&
           (saved->pending == SLC_MAX_ORDER ||
            (saved->pending == saved->mode_order[saved->place] && saved->part.position == 0));
}

static enum slc_status
read_identity(struct slc_checkpoint_reader *reader, char *identity, struct slc_error *err)
{
    const struct slc_checkpoint_section *section = slc_checkpoint_find(reader, "identity");
    uint64_t bytes = section != NULL ? section->bytes : 0;

    bytes = slc_min_u64(bytes, SLC_CP_IDENTITY_BYTES - 1);
    slc_checkpoint_seek(reader, "identity");
    slc_checkpoint_get(reader, identity, bytes);
    identity[bytes] = '\0';
    enum slc_status status = slc_checkpoint_end(reader, err);
    /* The characters are checked because callers print the text unchanged. */
    for (uint64_t i = 0; i < bytes; i++) {
        if (identity[i] != '\n' && (identity[i] < ' ' || identity[i] > '~')) {
            identity[i] = '?';
        }
    }
    return status;
}

enum slc_status slc_cp_saved_read(struct slc_checkpoint_reader *reader,
                                  char *identity,
                                  struct slc_cp_saved *saved,
                                  struct slc_error *err)
{
    bool sound = true;

    SLC_TRY(read_identity(reader, identity, err));
    memset(saved, 0, sizeof *saved);
    slc_checkpoint_seek(reader, "state");
    uint64_t version = slc_checkpoint_get_u64(reader);
    if (version > STATE_VERSION) {
        return slc_fail_file(
            err, SLC_ERR_UNSUPPORTED, slc_checkpoint_reader_path(reader),
            "the checkpoint was written by a newer sluice: resume with that version");
    }
    read_state(reader, version, saved, &sound);
    SLC_TRY(slc_checkpoint_end(reader, err));
    if ((version == 0 || !sound || !is_state(saved))) {
        (void)slc_fail(err, SLC_ERR_FORMAT, "the state in the checkpoint is invalid");
        slc_error_locate_file(err, slc_checkpoint_reader_path(reader));
        SLC_TRY(SLC_ERR_FORMAT);
    }
    return SLC_OK;
}

bool slc_cp_saved_order(const struct slc_checkpoint *checkpoint, unsigned order, unsigned *modes)
{
    struct slc_checkpoint_reader *reader = slc_checkpoint_found(checkpoint);
    char identity[SLC_CP_IDENTITY_BYTES];
    struct slc_cp_saved saved;

    if (reader == NULL || slc_cp_saved_read(reader, identity, &saved, NULL) != SLC_OK ||
        saved.order != order) {
        return false;
    }
    memcpy(modes, saved.mode_order, order * sizeof modes[0]);
    return true;
}
