/* Keeps, parses and writes the record of a sweep. */
#include "sweep/sweep_record.h"

#include "base/memory/memory.h"
#include "storage/file/files.h"
#include "storage/manifest/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "sluice-sweep-1";

const char *slc_sweep_folder_name(char *text, uint32_t rank, uint64_t seed)
{
    (void)snprintf(text, SLC_SWEEP_FOLDER_BYTES, "r%" PRIu32 "-seed%" PRIu64, rank, seed);
    return text;
}

void slc_sweep_record_destroy(struct slc_sweep_record *record)
{
    json_decref(record->identity);
    json_decref(record->store);
    slc_free(record->runs);
    memset(record, 0, sizeof *record);
}

struct slc_sweep_run *
slc_sweep_record_find(const struct slc_sweep_record *record, uint32_t rank, uint64_t seed)
{
    for (unsigned i = 0; i < record->run_count; i++) {
        if (record->runs[i].rank == rank && record->runs[i].seed == seed) {
            return &record->runs[i];
        }
    }
    return NULL;
}

static bool comes_before(const struct slc_sweep_run *one, const struct slc_sweep_run *other)
{
    return one->rank < other->rank || (one->rank == other->rank && one->seed < other->seed);
}

enum slc_status slc_sweep_record_add(struct slc_sweep_record *record,
                                     const struct slc_sweep_run *run,
                                     struct slc_error *err)
{
    struct slc_sweep_run *place = slc_sweep_record_find(record, run->rank, run->seed);

    if (place == NULL && record->run_count == record->run_capacity) {
        const unsigned capacity = record->run_capacity == 0 ? 64 : 2 * record->run_capacity;

        if (record->run_count >= SLC_SWEEP_RUNS_MAX) {
            return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_SWEEP_FOLDER,
                                  "a sweep has at most %d runs: use another folder",
                                  SLC_SWEEP_RUNS_MAX);
        }
        struct slc_sweep_run *more = slc_realloc(record->runs, capacity * sizeof *more);
        SLC_TRY(slc_check_memory(more != NULL, err, "for the runs of a sweep"));
        record->runs = more;
        record->run_capacity = capacity;
    }
    if (place == NULL) {
        unsigned at = record->run_count++;

        for (; at > 0 && comes_before(run, &record->runs[at - 1]); at--) {
            record->runs[at] = record->runs[at - 1];
        }
        place = &record->runs[at];
    }
    *place = *run;
    return SLC_OK;
}

struct slc_sweep_rank *slc_sweep_record_rank(struct slc_sweep_record *record, uint32_t rank)
{
    unsigned at = 0;

    while (at < record->rank_count && record->ranks[at].rank < rank) {
        at++;
    }
    if (at < record->rank_count && record->ranks[at].rank == rank) {
        return &record->ranks[at];
    }
    if (record->rank_count == SLC_SWEEP_RANKS_MAX) {
        return NULL;
    }
    memmove(&record->ranks[at + 1], &record->ranks[at],
            (record->rank_count - at) * sizeof record->ranks[0]);
    record->rank_count++;
    record->ranks[at] = (struct slc_sweep_rank){.rank = rank, .agreement = NAN, .consistency = NAN};
    return &record->ranks[at];
}

struct slc_sweep_run *slc_sweep_record_best(const struct slc_sweep_record *record, uint32_t rank)
{
    struct slc_sweep_run *best = NULL;

    for (unsigned i = 0; i < record->run_count; i++) {
        struct slc_sweep_run *run = &record->runs[i];

        if (run->rank == rank && (best == NULL || run->fit > best->fit ||
                                  (run->fit == best->fit && run->seed < best->seed))) {
            best = run;
        }
    }
    return best;
}

bool slc_sweep_record_by_heldout(const struct slc_sweep_record *record)
{
    return json_object_get(record->identity, SLC_SWEEP_LOSS) != NULL;
}

/* Returns `value` as JSON, null if it is NAN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void set_member(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

static json_t *run_to_json(const struct slc_sweep_run *run)
{
    char folder[SLC_SWEEP_FOLDER_BYTES];
    json_t *object = json_object();

    set_member(object, "rank", json_integer(run->rank));
    set_member(object, "seed", json_integer((json_int_t)run->seed));
    set_member(object, "folder", json_string(slc_sweep_folder_name(folder, run->rank, run->seed)));
    set_member(object, "factors_kept", json_boolean(run->kept));
    set_member(object, "fit", json_real(run->fit));
    set_member(object, "iterations", json_integer(run->iterations));
    set_member(object, "reason", json_string(run->reason));
    set_member(object, "seconds", json_real(run->seconds));
    set_member(object, "match_with_best", number(run->match));
    set_member(object, "heldout_rmse", number(run->heldout_rmse));
    set_member(object, "heldout_deviance", number(run->heldout_deviance));
    set_member(object, "condition", number(run->condition));
    return object;
}

static json_t *rank_to_json(const struct slc_sweep_record *record,
                            const struct slc_sweep_rank *rank)
{
    const struct slc_sweep_run *best = slc_sweep_record_best(record, rank->rank);
    json_t *object = json_object();
    double lowest = INFINITY, highest = -INFINITY;

    for (unsigned i = 0; i < record->run_count; i++) {
        if (record->runs[i].rank == rank->rank) {
            lowest = fmin(lowest, record->runs[i].fit);
            highest = fmax(highest, record->runs[i].fit);
        }
    }
    set_member(object, "rank", json_integer(rank->rank));
    set_member(object, "runs", json_integer(rank->runs));
    set_member(object, "best_seed", json_integer((json_int_t)rank->best_seed));
    set_member(object, "fit", best != NULL ? json_real(best->fit) : json_null());
    set_member(object, "fit_spread", number(highest - lowest));
    set_member(object, "agreement", number(rank->agreement));
    set_member(object, "reached", json_integer(rank->reached));
    set_member(object, "compared", json_integer(rank->compared));
    set_member(object, "core_consistency", number(rank->consistency));
    set_member(object, "core_consistency_note",
               rank->note[0] != '\0' ? json_string(rank->note) : json_null());
    return object;
}

/* State of parsing; keeps the first fault. */
struct parse {
    struct slc_error *err;
    enum slc_status status;
};

static void refuse(struct parse *parse, const char *name, const char *expected)
{
    if (parse->status == SLC_OK) {
        parse->status = slc_fail(parse->err, SLC_ERR_FORMAT,
                                 "'%s' is not %s, so this sweep.json is damaged or not from "
                                 "sluice: restart the sweep, or use another folder",
                                 name, expected);
    }
}

static uint64_t get_count(
    struct parse *parse, const json_t *object, const char *name, uint64_t least, uint64_t most)
{
    const json_t *value = json_object_get(object, name);
    const json_int_t count = json_integer_value(value);

    if (!json_is_integer(value) || count < 0 || (uint64_t)count < least || (uint64_t)count > most) {
        refuse(parse, name, "a number in its range");
        return least;
    }
    return (uint64_t)count;
}

/* Returns the number in a member, NAN if an optional member (not `needed`) is null or missing. */
static double get_real(struct parse *parse, const json_t *object, const char *name, bool needed)
{
    const json_t *value = json_object_get(object, name);

    if ((value == NULL || json_is_null(value)) && !needed) {
        return NAN;
    }
    if (!json_is_number(value)) {
        refuse(parse, name, "a number");
        return 0.0;
    }
    return json_number_value(value);
}

static bool get_flag(struct parse *parse, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_boolean(value)) {
        refuse(parse, name, "true or false");
    }
    return json_is_true(value);
}

/* Copies the text of a member, which must be printable ASCII, to the `out_bytes` bytes at `out`. */
static void get_text(struct parse *parse,
                     const json_t *object,
                     const char *name,
                     bool needed,
                     char *out,
                     size_t out_bytes)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);

    out[0] = '\0';
    if (text == NULL) {
        if (needed || !json_is_null(value)) {
            refuse(parse, name, "a text");
        }
        return;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || (size_t)(at - text) + 1 >= out_bytes) {
            refuse(parse, name, "a short text");
            return;
        }
    }
    (void)snprintf(out, out_bytes, "%s", text);
}

static void parse_run(struct parse *parse, const json_t *object, struct slc_sweep_record *record)
{
    struct slc_sweep_run run = {
        .rank = (uint32_t)get_count(parse, object, "rank", 1, SLC_MAX_RANK),
        .seed = get_count(parse, object, "seed", 0, INT64_MAX),
        .fit = get_real(parse, object, "fit", true),
        .iterations = (unsigned)get_count(parse, object, "iterations", 0, 1000000000),
        .seconds = get_real(parse, object, "seconds", true),
        .match = get_real(parse, object, "match_with_best", false),
        .heldout_rmse = get_real(parse, object, "heldout_rmse", false),
        .heldout_deviance = get_real(parse, object, "heldout_deviance", false),
        .condition = get_real(parse, object, "condition", false),
        .kept = get_flag(parse, object, "factors_kept")};

    get_text(parse, object, "reason", true, run.reason, sizeof run.reason);
    if (parse->status == SLC_OK && slc_sweep_record_find(record, run.rank, run.seed) != NULL) {
        refuse(parse, "runs", "a list of different runs");
    }
    if (parse->status == SLC_OK) {
        parse->status = slc_sweep_record_add(record, &run, parse->err);
    }
}

static void parse_rank(struct parse *parse, const json_t *object, struct slc_sweep_record *record)
{
    const uint32_t number_of = (uint32_t)get_count(parse, object, "rank", 1, SLC_MAX_RANK);
    const unsigned before = record->rank_count;
    struct slc_sweep_rank *rank = slc_sweep_record_rank(record, number_of);

    if (rank == NULL || record->rank_count == before) {
        refuse(parse, "ranks", "a list of different ranks");
        return;
    }
    rank->runs = (unsigned)get_count(parse, object, "runs", 0, SLC_SWEEP_RUNS_MAX);
    rank->best_seed = get_count(parse, object, "best_seed", 0, INT64_MAX);
    rank->agreement = get_real(parse, object, "agreement", false);
    rank->compared = (unsigned)get_count(parse, object, "compared", 0, SLC_SWEEP_RUNS_MAX);
    /* Older records do not have this member. */
    if (json_object_get(object, "reached") != NULL) {
        rank->reached = (unsigned)get_count(parse, object, "reached", 0, SLC_SWEEP_RUNS_MAX);
    }
    rank->consistency = get_real(parse, object, "core_consistency", false);
    get_text(parse, object, "core_consistency_note", false, rank->note, sizeof rank->note);
}

static void parse_all(struct parse *parse, const json_t *root, struct slc_sweep_record *record)
{
    const json_t *runs = json_object_get(root, "runs"), *ranks = json_object_get(root, "ranks");
    json_t *identity = json_object_get(root, "identity"), *store = json_object_get(root, "store");
    const char *name = json_string_value(json_object_get(root, "schema"));

    if (name == NULL || strcmp(name, schema) != 0) {
        refuse(parse, "schema", schema);
    }
    if (!json_is_object(identity)) {
        refuse(parse, "identity", "an object");
    }
    if (!json_is_array(runs) || json_array_size(runs) > SLC_SWEEP_RUNS_MAX) {
        refuse(parse, "runs", "a list of runs");
    }
    if (!json_is_array(ranks) || json_array_size(ranks) > SLC_SWEEP_RANKS_MAX) {
        refuse(parse, "ranks", "a list of ranks");
    }
    for (size_t i = 0; i < json_array_size(runs) && parse->status == SLC_OK; i++) {
        parse_run(parse, json_array_get(runs, i), record);
    }
    for (size_t i = 0; i < json_array_size(ranks) && parse->status == SLC_OK; i++) {
        parse_rank(parse, json_array_get(ranks, i), record);
    }
    if (parse->status == SLC_OK) {
        record->identity = json_incref(identity);
        record->store = json_is_string(store) ? json_incref(store) : NULL;
        record->complete = json_is_true(json_object_get(root, "complete"));
    }
}

enum slc_status slc_sweep_record_parse(const char *text,
                                       uint64_t bytes,
                                       struct slc_sweep_record *record,
                                       struct slc_error *err)
{
    struct parse parse = {.err = err, .status = SLC_OK};
    json_t *root = NULL;

    parse.status =
        slc_json_read(text, bytes, "the record of the sweep", SLC_ERR_FORMAT, &root, err);
    if (parse.status != SLC_OK) {
        return parse.status;
    }
    parse_all(&parse, root, record);
    json_decref(root);
    if (parse.status != SLC_OK) {
        slc_sweep_record_destroy(record);
    }
    return parse.status;
}

/* Stores the JSON text of `object` and releases `object`. jansson silently omits members when
 * memory runs out, so the text is parsed again to check it. Ownership: free. */
static enum slc_status
make_text(const struct slc_sweep_record *record, json_t *object, char **text, struct slc_error *err)
{
    struct slc_sweep_record again = SLC_SWEEP_RECORD_INIT;

    *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | JSON_PRESERVE_ORDER);
    json_decref(object);
    bool whole = *text != NULL &&
                 slc_sweep_record_parse(*text, strlen(*text), &again, NULL) == SLC_OK &&
                 again.run_count == record->run_count && again.rank_count == record->rank_count &&
                 json_object_size(again.identity) == json_object_size(record->identity);
    slc_sweep_record_destroy(&again);
    return whole ? SLC_OK : slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of the sweep");
}

enum slc_status slc_sweep_record_write(const char *path,
                                       const struct slc_sweep_record *record,
                                       const char *store,
                                       json_t *suggestion,
                                       struct slc_error *err)
{
    json_t *object = json_pack("{s:s}", "schema", schema);
    json_t *runs = json_array(), *ranks = json_array();
    char *text = NULL;

    for (unsigned i = 0; i < record->run_count; i++) {
        (void)json_array_append_new(runs, run_to_json(&record->runs[i]));
    }
    for (unsigned i = 0; i < record->rank_count; i++) {
        (void)json_array_append_new(ranks, rank_to_json(record, &record->ranks[i]));
    }
    slc_json_set_path(object, "store", store);
    set_member(object, "complete", json_boolean(suggestion != NULL));
    set_member(object, "suggestion", suggestion != NULL ? json_incref(suggestion) : json_null());
    set_member(object, "ranks", ranks);
    set_member(object, "runs", runs);
    set_member(object, "identity", json_incref(record->identity));
    enum slc_status status = make_text(record, object, &text, err);
    SLC_THEN(status, slc_file_replace(slc_files_system(), path, text, strlen(text), err));
    free(text);
    return status;
}

enum slc_status slc_sweep_record_read(const char *path,
                                      struct slc_sweep_record *record,
                                      bool *found,
                                      struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    void *text = NULL;
    uint64_t bytes = 0;
    const int rc = files->stat_path(files->self, path, &stat);

    *found = false;
    if (rc == -ENOENT) {
        return SLC_OK;
    }
    enum slc_status status =
        rc < 0 ? slc_fail_errno(err, -rc, path, "opening the record of the sweep")
               : slc_file_load(files, path, SLC_SWEEP_RECORD_BYTES, &text, &bytes, err);
    SLC_THEN(status, slc_sweep_record_parse(text, bytes, record, err));
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
    }
    *found = status == SLC_OK;
    slc_free(text);
    return status;
}

enum slc_status slc_sweep_record_compare(const struct slc_sweep_record *record,
                                         json_t *identity,
                                         struct slc_error *err)
{
    const char *name;
    json_t *ours, *theirs;

    json_object_foreach(identity, name, ours)
    {
        const char *mine = json_string_value(ours);
        const char *value = json_string_value(json_object_get(record->identity, name));

        if (value == NULL || strcmp(mine, value) != 0) {
            return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_RESTART, SLC_FIELD_SWEEP_FOLDER,
                                   "%s is %.200s, but the sweep in this folder has %.200s: "
                                   "restart it, or use another folder",
                                   name, mine, value != NULL ? value : "none");
        }
    }
    /* Find options that only the sweep in the folder has. */
    json_object_foreach(record->identity, name, theirs)
    {
        if (json_object_get(identity, name) == NULL) {
            const char *value = json_string_value(theirs);

            return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_RESTART, SLC_FIELD_SWEEP_FOLDER,
                                   "%.200s is not set, but the sweep in this folder has %.200s: "
                                   "restart it, or use another folder",
                                   name, value != NULL ? value : "another value");
        }
    }
    return SLC_OK;
}
