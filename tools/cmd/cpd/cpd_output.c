/* Chooses, locks and writes the results of a factorization and the record of its run. */
#include "tools/cmd/cpd/cpd_run.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "report/run_record.h"
#include "storage/file/folder_lock.h"
#include "storage/manifest/path_guard.h"
#include "storage/model/model.h"
#include "tools/options/options.h"
#include "tools/progress/console.h"
#include "tools/progress/json_out.h"
#include "tools/progress/log_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the record to `path`, atomically. */
static enum slc_status
run_json_write(const struct run_record *record, const char *path, struct slc_error *err)
{
    struct slc_run_facts facts = record->facts;
    json_t *command = json_command_line(record->argc, record->argv);
    json_t *options = options_to_json(record->command, record->values);
    char *text = NULL;
    enum slc_status status = json_out_complete(err);

    facts.command = command;
    facts.options = options;
    facts.estimate = record->estimate;
    SLC_THEN(status, slc_run_record_text(&facts, &text, err));
    SLC_THEN(status, slc_run_record_write(text, path, err));
    free(text);
    json_decref(command);
    json_decref(options);
    return status;
}

/* Fails if `path`, which does not exist, cannot be created. */
static enum slc_status check_new(const char *path, bool folder, struct slc_error *err)
{
    char *parent = slc_path_parent(path);
    char target[1];
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(parent != NULL, err, "for the path of a folder"));
    if (folder && readlink(path, target, sizeof target) >= 0) {
        status =
            slc_fail_file(err, SLC_ERR_IO, path,
                          "dangling symbolic link: create its target, or choose another output");
    } else if (access(parent, W_OK | X_OK) != 0) {
        status = slc_fail_errno(err, errno, parent, "cannot write the results there");
    }
    slc_free(parent);
    return status;
}

/* Fails if a file or folder at `path` cannot be created or replaced, or belongs to a store. */
static enum slc_status check_writable(const char *path, bool folder, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;

    SLC_TRY(slc_check_outside_stores(files, path, err));
    if (files->stat_path(files->self, path, &stat) < 0) {
        return check_new(path, folder, err);
    }
    if (folder != (stat.kind == 'd')) {
        return slc_fail(err, SLC_ERR_USAGE,
                        folder ? "%s is a file; factors and checkpoints need a folder"
                               : "%s is a folder, not a file",
                        path);
    }
    return access(path, W_OK) == 0
               ? SLC_OK
               : slc_fail_errno(err, errno, path, "cannot write the results there");
}

const char *cpd_output_store_name(const char *store_path, int *length)
{
    size_t end = strlen(store_path);

    while (end > 1 && store_path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && store_path[begin - 1] != '/') {
        begin--;
    }
    if (end - begin > 4 && memcmp(store_path + end - 4, ".slc", 4) == 0) {
        end -= 4;
    }
    *length = (int)(end - begin < 512 ? end - begin : 512);
    return store_path + begin;
}

enum slc_status cpd_output_check_folder(const char *path, struct slc_error *err)
{
    return check_writable(path, true, err);
}

/* Default folder: NAME.rR. */
static void default_folder(struct cpd_output *output, const char *store_path, unsigned rank)
{
    int length;
    const char *name = cpd_output_store_name(store_path, &length);

    (void)snprintf(output->folder, sizeof output->folder, "%.*s.r%u", length, name, rank);
}

static enum slc_status check_outputs(const struct cpd_output *output, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (output->folder[0] != '\0') {
        status = check_writable(output->folder, true, err);
    }
    if (status == SLC_OK && output->stem != NULL) {
        char path[1100];

        (void)snprintf(path, sizeof path, "%slambda.mat", output->stem);
        status = check_writable(path, false, err);
    }
    if (status == SLC_OK && output->ktensor != NULL) {
        status = check_writable(output->ktensor, false, err);
        SLC_THEN(status, slc_check_own_form(NULL, output->ktensor, "ktensor", "a ktensor", err));
    }
    if (status == SLC_OK && output->checkpoint[0] != '\0') {
        status = check_writable(output->checkpoint, true, err);
    }
    return status;
}

/* Sets the paths of the results and the record of the run. */
static void name_results(struct cpd_output *output,
                         const char *store_path,
                         unsigned rank,
                         const struct cpd_output_names *names)
{
    output->stem = names->stem;
    output->ktensor = names->ktensor;
    if (names->folder != NULL) {
        (void)snprintf(output->folder, sizeof output->folder, "%s", names->folder);
    } else if (names->stem == NULL && names->ktensor == NULL) {
        default_folder(output, store_path, rank);
    }
    if (output->folder[0] != '\0') {
        (void)snprintf(output->run_path, sizeof output->run_path, "%s/run.json", output->folder);
    } else if (names->stem != NULL) {
        (void)snprintf(output->run_path, sizeof output->run_path, "%srun.json", names->stem);
    } else {
        (void)snprintf(output->run_path, sizeof output->run_path, "%s.run.json", names->ktensor);
    }
}

/* Sets the folder that accompanies results that are single files: it contains the checkpoint and is
 * locked. */
static void set_own_folder(bool stem, const char *name, char *folder, size_t bytes)
{
    (void)snprintf(folder, bytes, stem ? "%scheckpoint" : "%s.checkpoint", name);
}

/* Sets the checkpoint folder: the folder of the results, unless the options name another folder. */
static void choose_checkpoint_folder(struct cpd_output *output, const char *named)
{
    output->own_checkpoint = false;
    if (strcmp(named, "none") == 0) {
        output->checkpoint[0] = '\0';
    } else if (strcmp(named, "auto") != 0) {
        (void)snprintf(output->checkpoint, sizeof output->checkpoint, "%s", named);
    } else if (output->folder[0] != '\0') {
        (void)snprintf(output->checkpoint, sizeof output->checkpoint, "%s", output->folder);
    } else if (output->run_path[0] != '\0') {
        output->own_checkpoint = true;
        set_own_folder(output->stem != NULL, output->stem != NULL ? output->stem : output->ktensor,
                       output->checkpoint, sizeof output->checkpoint);
    }
}

enum slc_status cpd_output_choose(struct cpd_output *output,
                                  const char *store_path,
                                  unsigned rank,
                                  const struct cpd_output_names *names,
                                  struct slc_error *err)
{
    const char *const named[] = {names->folder, names->stem, names->ktensor, names->checkpoint};

    memset(output, 0, sizeof *output);
    for (unsigned i = 0; i < CPD_OUTPUT_PLACES; i++) {
        output->places[i].fd = -1;
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (named[i] != NULL && strlen(named[i]) >= sizeof output->folder) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "the name of an output has %zu bytes; the limit is %zu",
                            strlen(named[i]), sizeof output->folder - 1);
        }
    }
    if (!names->nowrite) {
        name_results(output, store_path, rank, names);
    }
    choose_checkpoint_folder(output, names->checkpoint);
    return check_outputs(output, err);
}

/* Returns whether two paths refer to the same folder. The folders need not exist. Errors:
 * SLC_ERR_IO. */
static enum slc_status
same_folder(const char *one, const char *two, bool *same, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const char *const names[2] = {one, two};
    struct slc_file_stat stat[2];

    *same = false;
    for (unsigned i = 0; i < 2; i++) {
        const int rc = files->stat_path(files->self, names[i], &stat[i]);

        if (rc == -ENOENT || rc == -ENOTDIR) {
            return SLC_OK;
        }
        SLC_TRY(slc_check_call(rc, err, names[i], "looking for the folder"));
    }
    *same = stat[0].inode == stat[1].inode && stat[0].device == stat[1].device;
    return SLC_OK;
}

static enum slc_status
lock_place(struct cpd_output_place *place, const char *checkpoint, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    enum slc_status status = SLC_OK;
    bool locked = false;

    if (checkpoint != NULL) {
        status = same_folder(place->folder, checkpoint, &locked, err);
    }
    if (status != SLC_OK || locked) {
        return status;
    }
    int rc = files->make_folder(files->self, place->folder);
    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, place->folder, "cannot write the results there");
    }
    status = slc_folder_lock(files, place->folder,
                             "another sluice process is writing its results there: wait for it, or "
                             "choose another output",
                             &place->fd, &locked, err);
    place->made = rc >= 0 && !locked;
    return status;
}

enum slc_status
cpd_output_lock(struct cpd_output *output, const char *checkpoint, struct slc_error *err)
{
    unsigned count = 0;

    if (output->folder[0] != '\0') {
        (void)snprintf(output->places[count++].folder, sizeof output->places[0].folder, "%s",
                       output->folder);
    }
    if (output->stem != NULL) {
        set_own_folder(true, output->stem, output->places[count++].folder,
                       sizeof output->places[0].folder);
    }
    if (output->ktensor != NULL) {
        set_own_folder(false, output->ktensor, output->places[count++].folder,
                       sizeof output->places[0].folder);
    }
    for (unsigned i = 0; i < count; i++) {
        SLC_TRY(lock_place(&output->places[i], checkpoint, err));
    }
    return SLC_OK;
}

void cpd_output_note_replaced(const struct cpd_output *output)
{
    /* Maximum size of a run.json that is read, to limit memory. A larger file, of about a thousand
     * iterations or more, is reported without details. */
    enum { RECORD_BYTES_MAX = 256 << 10 };
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    struct slc_error ignored = SLC_ERROR_INIT;
    json_t *record = NULL;
    void *text = NULL;
    uint64_t bytes = 0;
    char words[96] = "";

    if (output->run_path[0] == '\0' || files->stat_path(files->self, output->run_path, &stat) < 0) {
        return;
    }
    if (slc_file_load(files, output->run_path, RECORD_BYTES_MAX, &text, &bytes, &ignored) ==
        SLC_OK) {
        record = json_loadb(text, bytes, 0, NULL);
    }
    const json_t *fit = json_object_get(record, "fit");
    const json_t *seed = json_object_get(json_object_get(record, "options"), "seed");
    if (json_is_number(fit) && json_is_integer(seed)) {
        (void)snprintf(words, sizeof words, " (seed %" JSON_INTEGER_FORMAT ", fit %.6g)",
                       json_integer_value(seed), json_number_value(fit));
    }
    console_note("%s belongs to an earlier run%s, whose results will be replaced at the end; to "
                 "keep them, choose another folder with --output",
                 output->run_path, words);
    json_decref(record);
    slc_free(text);
}

void cpd_output_unlock(struct cpd_output *output)
{
    const struct slc_files *files = slc_files_system();

    for (unsigned i = 0; i < CPD_OUTPUT_PLACES; i++) {
        struct cpd_output_place *place = &output->places[i];

        /* The system refuses to remove a folder that is not empty. The folder is still locked, so
         * no other run can have started to use it. */
        if (place->made) {
            (void)files->remove_folder(files->self, place->folder);
        }
        if (place->folder[0] != '\0') {
            slc_folder_unlock(files, &place->fd);
        }
    }
}

enum slc_status cpd_output_write(const struct cpd_output *output,
                                 const struct run_record *record,
                                 struct log_json *log,
                                 struct slc_error *err)
{
    const struct slc_cp_result *result = record->facts.result;
    struct slc_model_view model = {
        .order = result->order, .rank = result->rank, .lambda = result->lambda};
    const struct {
        enum slc_model_form form;
        const char *path;
    } forms[] = {
        {SLC_MODEL_NPY, output->folder[0] != '\0' ? output->folder : NULL},
        {SLC_MODEL_SPLATT, output->stem},
        {SLC_MODEL_KTENSOR, output->ktensor},
    };

    for (unsigned n = 0; n < result->order; n++) {
        model.factors[n] = &result->factors[n];
    }
    if (output->run_path[0] == '\0') {
        return SLC_OK;
    }
    SLC_TRY(slc_run_record_remove(output->run_path, err));
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        uint64_t start_ns = slc_clock_ns();

        if (forms[i].path == NULL) {
            continue;
        }
        SLC_TRY(slc_model_write(slc_files_system(), forms[i].form, forms[i].path, &model, err));
        if (forms[i].form == SLC_MODEL_NPY) {
            log_json_results(log, result->iterations, forms[i].path, slc_seconds_since(start_ns));
        }
    }
    return run_json_write(record, output->run_path, err);
}

void cpd_output_report(const struct cpd_output *output)
{
    if (output->run_path[0] == '\0') {
        return;
    }
    printf("Results\n");
    if (output->folder[0] != '\0') {
        printf("  %-12s %s/mode-K.npy, lambda.npy\n", "factors", output->folder);
    }
    if (output->stem != NULL) {
        printf("  %-12s %smodeK.mat, %slambda.mat\n", "SPLATT text", output->stem, output->stem);
    }
    if (output->ktensor != NULL) {
        printf("  %-12s %s\n", "ktensor", output->ktensor);
    }
    printf("  %-12s %s\n\n", "record", output->run_path);
}
