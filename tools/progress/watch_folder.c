/*
 * See watch_folder.h. A run locks the folder of its checkpoints (storage/file/folder_lock.h). To
 * try the lock would stand in the way of one that is just starting, so who has it is read from the
 * system's list of locks, which has those of this machine.
 */
#include "tools/progress/watch_folder.h"

#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "report/saved_run.h"
#include "storage/file/files.h"
#include "storage/manifest/folder_kind.h"
#include "storage/manifest/json_text.h"
#include "storage/model/run_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum { PATH_BYTES = 4096 };

/* The process that has the folder locked; 0: none on this machine. By its number alone: the device
 * is told differently where volumes share one. */
static int64_t holder_of(const char *path)
{
    FILE *locks = fopen("/proc/locks", "re");
    struct stat folder;
    char line[256];
    int64_t found = 0;

    if (locks == NULL || stat(path, &folder) != 0) {
        if (locks != NULL) {
            (void)fclose(locks);
        }
        return 0;
    }
    /* "1: FLOCK  ADVISORY  WRITE 4711 fe:01:123456 0 EOF" */
    while (found == 0 && fgets(line, sizeof line, locks) != NULL) {
        int64_t pid;
        uint64_t inode;

        if (sscanf(line, "%*d: FLOCK %*s %*s %" SCNd64 " %*x:%*x:%" SCNu64, &pid, &inode) == 2 &&
            inode == folder.st_ino && pid > 0) {
            found = pid;
        }
    }
    (void)fclose(locks);
    return found;
}

static void reset_state(struct run_state *state, int64_t pid)
{
    struct utsname here;

    *state = (struct run_state){.started = true, .seconds_left = -1, .pid = pid};
    (void)snprintf(state->name, sizeof state->name, "cpd");
    if (uname(&here) == 0) {
        (void)snprintf(state->host, sizeof state->host, "%s", here.nodename);
    }
}

static double number_of(const json_t *object, const char *name)
{
    const double number = json_number_value(json_object_get(object, name));

    return number > -1e15 && number < 1e15 ? number : 0;
}

static uint64_t count_of(const json_t *object, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(object, name));

    return number > 0 ? (uint64_t)number : 0;
}

/* That of the run, or, where an older one has not recorded it, as cpd ends with that reason. */
static int exit_code_of(const json_t *record, const char *reason)
{
    const json_t *code = json_object_get(record, "exit_code");

    if (json_is_integer(code)) {
        const json_int_t number = json_integer_value(code);

        return number >= 0 && number <= 255 ? (int)number : 1;
    }
    return strcmp(reason, "time") == 0     ? slc_status_exit_code(SLC_ERR_TIME_LIMIT)
           : strcmp(reason, "signal") == 0 ? slc_status_exit_code(SLC_ERR_INTERRUPTED)
                                           : 0;
}

/* What run.json says of a run that has ended; *there: there is one, not older than `written`. */
static enum slc_status take_record(const char *folder,
                                   const char *written,
                                   struct run_state *state,
                                   bool *there,
                                   struct slc_error *err)
{
    char path[PATH_BYTES + 16];
    struct slc_error fault = SLC_ERROR_INIT;
    void *text = NULL;
    uint64_t bytes = 0;
    json_t *record = NULL;
    const char *reason, *finished;
    enum slc_status status;

    *there = false;
    (void)snprintf(path, sizeof path, "%.4000s/run.json", folder);
    status =
        slc_file_load(slc_files_system(), path, SLC_RUN_RECORD_MAX_BYTES, &text, &bytes, &fault);
    if (status != SLC_OK) {
        if (fault.system_errno == ENOENT) {
            return SLC_OK;
        }
        *err = fault;
        return status;
    }
    status = slc_json_read(text, bytes, "run.json", SLC_ERR_INPUT, &record, err);
    slc_free(text);
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
        return status;
    }
    reason = json_string_value(json_object_get(record, "reason"));
    if (reason == NULL) {
        json_decref(record);
        status = slc_fail(err, SLC_ERR_INPUT, "no record of a run of cpd: it tells no reason");
        slc_error_locate_file(err, path);
        return status;
    }
    finished = json_string_value(json_object_get(record, "finished"));
    if (finished != NULL && strcmp(finished, written) < 0) {
        json_decref(record); /* of a run before the one that is looked at */
        return SLC_OK;
    }
    *there = true;
    reset_state(state, 0);
    state->ended = true;
    state->completed = count_of(record, "iterations_done");
    state->fit = number_of(record, "fit");
    state->seconds = number_of(json_object_get(record, "seconds"), "total");
    (void)snprintf(state->reason, sizeof state->reason, "%s", reason);
    slc_text_make_plain(state->reason);
    state->exit_code = exit_code_of(record, reason);
    json_decref(record);
    return SLC_OK;
}

/* What the newest checkpoint says, and when it was written; nothing where it cannot be read, for it
 * may be replaced now. */
static void take_checkpoint(const char *folder, struct run_state *state, char written[32])
{
    struct slc_error untold = SLC_ERROR_INIT;
    json_t *saved = NULL;

    if (slc_saved_run_read(folder, true, &saved, &untold) == SLC_OK) {
        state->completed = count_of(saved, "iterations_done");
        state->mode = count_of(saved, "mode");
        state->fit = number_of(saved, "fit");
        state->seconds = number_of(saved, "seconds");
        (void)snprintf(written, 32, "%s", json_string_value(json_object_get(saved, "written")));
    }
    json_decref(saved);
}

enum slc_status watch_folder_look(const char *path,
                                  struct watch_folder *folder,
                                  struct run_state *state,
                                  enum run_news *news,
                                  struct slc_error *err)
{
    const int64_t pid = holder_of(path);
    const struct run_state before = *state;
    char written[32] = "";
    bool saved = false, recorded = false;
    enum slc_status status = slc_saved_run_find(path, &saved, err);

    *news = RUN_NEWS_NONE;
    folder->held = pid > 0;
    folder->was_held = folder->was_held || pid > 0;
    if (status != SLC_OK) {
        return status;
    }
    reset_state(state, pid > 0 ? pid : before.pid);
    state->completed = before.completed;
    state->fit = before.fit;
    state->seconds = before.seconds;
    if (saved) {
        take_checkpoint(path, state, written);
    }
    if (pid == 0) {
        status = take_record(path, written, state, &recorded, err);
    }
    if (status == SLC_OK && recorded) {
        *news = RUN_NEWS_END;
    } else if (status == SLC_OK && !saved && pid == 0 && !folder->was_held) {
        status =
            slc_fail(err, SLC_ERR_INPUT,
                     "no run: neither its record, nor a checkpoint, nor a process that has it%s",
                     slc_folder_advice(slc_files_system(), path, SLC_FOLDER_RUN));
        slc_error_locate_file(err, path);
    } else if (!before.started || before.pid != state->pid) {
        *news = RUN_NEWS_START;
    } else if (state->completed != before.completed) {
        *news = RUN_NEWS_PHASE;
    }
    return status;
}
