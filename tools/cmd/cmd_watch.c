/* sluice watch: follows a run by its JSON log (--log-json) or its folder, without writing to
 * either. The file is opened again for every poll, because network file systems (NFS) then see new
 * data. New data is processed line by line; a line without a line end is still being written. */
#include "base/error/clock.h"
#include "base/error/error.h"
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "report/saved_run.h"
#include "storage/file/files.h"
#include "storage/manifest/folder_kind.h"
#include "storage/manifest/json_text.h"
#include "storage/model/run_folder.h"
#include "tools/progress/console.h"
#include "tools/progress/json_out.h"
#include "tools/progress/log_json.h"
#include "tools/progress/run_state.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

struct watch_folder {
    bool held;     /* true if a process on this machine has locked the folder */
    bool was_held; /* true if a process had locked the folder during the watch */
};

enum { PATH_BYTES = 4096 };

/* Returns the id of the process that has locked the folder, or 0 if no process on this machine has
 * locked it. A run locks the folder of its checkpoints (storage/file/folder_lock.h). Trying the
 * lock could block a run that is starting, so the lock table of the system is read. Only inode
 * numbers are compared, because on file systems with several volumes the lock table may show
 * another device number than stat. */
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
    /* Format: "1: FLOCK  ADVISORY  WRITE 4711 fe:01:123456 0 EOF". */
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

/* Returns the recorded exit code. For older records without an exit code, returns the exit code of
 * sluice cpd for `reason`. */
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

/* Reads run.json of a run that has ended. Sets *there to whether the file exists and is not older
 * than `written`. */
static enum slc_status read_record(const char *folder,
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
    enum slc_status status = SLC_OK;

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
    const char *reason = json_string_value(json_object_get(record, "reason"));
    if (reason == NULL) {
        json_decref(record);
        return slc_fail_file(err, SLC_ERR_INPUT, path,
                             "not the record of a run of sluice cpd: it has no member \"reason\"");
    }
    const char *finished = json_string_value(json_object_get(record, "finished"));
    if (finished != NULL && strcmp(finished, written) < 0) {
        json_decref(record); /* record of an earlier run */
        return SLC_OK;
    }
    *there = true;
    reset_state(state, 0);
    state->ended = true;
    state->completed = slc_json_count(record, "iterations_done");
    state->fit = number_of(record, "fit");
    state->seconds = number_of(json_object_get(record, "seconds"), "total");
    (void)snprintf(state->reason, sizeof state->reason, "%s", reason);
    slc_text_make_plain(state->reason);
    state->exit_code = exit_code_of(record, reason);
    json_decref(record);
    return SLC_OK;
}

/* Reads the newest checkpoint and its time. Ignores a checkpoint that cannot be read, because it
 * may be in the middle of a replacement. */
static void read_checkpoint(const char *folder, struct run_state *state, char written[32])
{
    struct slc_error ignored = SLC_ERROR_INIT;
    json_t *saved = NULL;

    if (slc_saved_run_read(folder, true, &saved, &ignored) == SLC_OK) {
        state->completed = slc_json_count(saved, "iterations_done");
        state->mode = slc_json_count(saved, "mode");
        state->fit = number_of(saved, "fit");
        state->seconds = number_of(saved, "seconds");
        (void)snprintf(written, 32, "%s", json_string_value(json_object_get(saved, "written")));
    }
    json_decref(saved);
}

/* Updates `state` from the folder. Sets *news to the change since the previous call. If a
 * checkpoint is being written, the next call reads it. Errors: SLC_ERR_INPUT if the folder neither
 * belongs to a run nor is locked by a run; SLC_ERR_IO; SLC_ERR_MEMORY. */
static enum slc_status watch_folder_update(const char *path,
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
    SLC_TRY(status);
    reset_state(state, pid > 0 ? pid : before.pid);
    state->completed = before.completed;
    state->fit = before.fit;
    state->seconds = before.seconds;
    if (saved) {
        read_checkpoint(path, state, written);
    }
    if (pid == 0) {
        status = read_record(path, written, state, &recorded, err);
    }
    if (status == SLC_OK && recorded) {
        *news = RUN_NEWS_END;
    } else if (status == SLC_OK && !saved && pid == 0 && !folder->was_held) {
        status = slc_fail_file(
            err, SLC_ERR_INPUT, path,
            "not the folder of a run: no record, no checkpoint and no process using it%s",
            slc_folder_advice(slc_files_system(), path, SLC_FOLDER_RUN));
    } else if (!before.started || before.pid != state->pid) {
        *news = RUN_NEWS_START;
    } else if (state->completed != before.completed) {
        *news = RUN_NEWS_PHASE;
    }
    return status;
}

enum {
    /* maximum length of an event: a plan for a thousand processors has 20 KiB */
    LINE_BYTES_MAX = 1 << 20,
    READ_BYTES = 64 << 10,
    POLL_MS = 250
};

struct arguments {
    bool once;
    bool json;
    double lost_after;
    bool quiet;
};

static const struct option options[] = {
    {"once", OPTION_FLAG, offsetof(struct arguments, once),
     .help = "print the current state and exit"},
    {"json", OPTION_FLAG, offsetof(struct arguments, json),
     .help = "print one JSON object per change, one object per line"},
    {"lost-after", OPTION_DOUBLE, offsetof(struct arguments, lost_after), .value = "S",
     .fallback = "120",
     .help = "after S seconds without news, a run on another machine counts as dead, or the "
             "command stops waiting for a run to start; 0 means no limit"},
    OPTION_ROW_QUIET(arguments, quiet),
    {.name = NULL}};

struct watch {
    struct arguments args;
    const char *path;
    struct run_state state;
    uint64_t inode, offset; /* inode of the file, and number of bytes already processed */
    bool found;             /* true once the file has existed */
    bool skipping;          /* true within a line that is too long and is ignored */
    size_t held;            /* number of bytes of an unfinished line */
    char *line;             /* LINE_BYTES_MAX */
    uint64_t heard_ns;      /* time of the last news */
    bool noted_waiting;     /* true once the note about waiting was printed */
    bool is_folder;         /* true if the folder of a run is watched instead of a log */
    struct watch_folder folder;
};

/* Prints `news` as a line of text or, with --json, the whole state. */
static enum slc_status
report_news(const struct watch *watch, enum run_news news, struct slc_error *err)
{
    const struct run_state *state = &watch->state;
    char text[512];

    if (news == RUN_NEWS_NONE || watch->args.once) {
        return SLC_OK;
    }
    if (watch->args.json) {
        char *json = NULL;
        const enum slc_status status =
            json_out_text(run_state_json(state, state->ended ? 0 : 1), true, &json, err);

        if (status == SLC_OK) {
            printf("%s\n", json);
        }
        free(json);
        (void)fflush(stdout);
        return status;
    }
    if (watch->args.quiet || news == RUN_NEWS_PROGRESS) {
        return SLC_OK;
    }
    console_clear_live();
    if (news == RUN_NEWS_ITERATION) {
        printf("  its = %3llu (%.3fs)  fit = %.5f  delta = %+.4e\n",
               (unsigned long long)state->completed, state->iteration_seconds, state->fit,
               state->delta);
    } else {
        run_state_describe(state, text, sizeof text);
        printf("%s\n", text);
    }
    (void)fflush(stdout);
    return SLC_OK;
}

/* Processes the complete lines of the data. */
static enum slc_status
parse_lines(struct watch *watch, const char *data, size_t bytes, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (size_t at = 0; at < bytes && status == SLC_OK; at++) {
        if (data[at] != '\n') {
            watch->skipping = watch->skipping || watch->held == LINE_BYTES_MAX;
            if (!watch->skipping) {
                watch->line[watch->held++] = data[at];
            }
            continue;
        }
        if (!watch->skipping) {
            watch->heard_ns = slc_clock_ns();
            status =
                report_news(watch, run_state_apply(&watch->state, watch->line, watch->held), err);
        }
        watch->held = 0;
        watch->skipping = false;
    }
    return status;
}

/* Reads the folder of a run instead of its log. */
static enum slc_status read_folder(struct watch *watch, struct slc_error *err)
{
    enum run_news news;
    enum slc_status status =
        watch_folder_update(watch->path, &watch->folder, &watch->state, &news, err);

    watch->is_folder = true;
    SLC_TRY(status);
    if (news != RUN_NEWS_NONE) {
        watch->heard_ns = slc_clock_ns();
        SLC_TRY(report_news(watch, news, err));
    }
    return SLC_OK;
}

/* Reads all data since the previous poll. A file that was replaced or truncated is read from its
 * start. */
static enum slc_status read_news(struct watch *watch, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    char data[READ_BYTES];
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;
    int fd = files->open(files->self, watch->path, O_RDONLY | O_CLOEXEC | SLC_OPEN_PLAIN, 0);

    if (fd == -ENOENT) {
        return SLC_OK;
    }
    int64_t got = fd < 0 ? fd : files->stat_fd(files->self, fd, &stat);
    if (got >= 0 && stat.kind == 'd') {
        status = read_folder(watch, err);
    } else if (got >= 0 && stat.kind != 'f') {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "%s is neither a file nor a folder: use the file of --log-json or the "
                          "result folder of the run",
                          watch->path);
    } else if (got >= 0) {
        if (!watch->found || stat.inode != watch->inode || stat.bytes < watch->offset) {
            watch->found = true;
            watch->inode = stat.inode;
            watch->offset = 0;
            watch->held = 0;
            watch->skipping = false;
        }
        while (status == SLC_OK &&
               (got = files->read_at(files->self, fd, data, sizeof data, watch->offset)) > 0) {
            watch->offset += (uint64_t)got;
            status = parse_lines(watch, data, (size_t)got, err);
        }
    }
    if (fd >= 0) {
        (void)files->close(files->self, fd);
    }
    /* A file that disappears while it is read is opened again by the next poll. */
    return status == SLC_OK && got < 0 && got != -ESTALE
               ? slc_fail_errno(err, (int)-got, watch->path, "reading the log of the run")
               : status;
}

/* Returns 1 if the process of the run exists, 0 if not, and -1 if the run is on another machine. */
static int alive(const struct watch *watch)
{
    const struct run_state *state = &watch->state;
    char boot[LOG_BOOT_BYTES];
    struct utsname here;

    if (state->ended || !state->started) {
        return state->ended ? 0 : -1;
    }
    if (watch->is_folder) {
        return watch->folder.held ? 1 : watch->folder.was_held || watch->args.once ? 0 : -1;
    }
    if (uname(&here) != 0 || strcmp(here.nodename, state->host) != 0 || state->pid <= 0) {
        return -1;
    }
    if (log_json_boot(boot)[0] != '\0' && state->boot[0] != '\0' &&
        strcmp(boot, state->boot) != 0) {
        return 0; /* the machine was restarted after the run started */
    }
    return kill((pid_t)state->pid, 0) == 0 || errno != ESRCH;
}

/* Returns whether the run has died or never started: its process is gone, or there is no news for
 * --lost-after. */
static bool is_lost(const struct watch *watch)
{
    const int known = alive(watch);

    return !watch->state.ended &&
           (known == 0 || (known < 0 && watch->args.lost_after > 0 &&
                           slc_seconds_since(watch->heard_ns) > watch->args.lost_after));
}

static void draw_live_line(struct watch *watch)
{
    char text[512];
    char line[640];

    if (watch->args.quiet || watch->args.json) {
        return;
    }
    if (!console_can_rewrite()) {
        /* Print this note once, to reveal a wrong file name. */
        if (!watch->state.started && !watch->noted_waiting) {
            console_note("note: waiting for a run that writes to %s", watch->path);
            watch->noted_waiting = true;
        }
        return;
    }
    run_state_describe(&watch->state, text, sizeof text);
    if (watch->state.started) {
        console_live(text);
    } else {
        (void)snprintf(line, sizeof line, "waiting for a run that writes to %.400s", watch->path);
        console_live(line);
    }
}

/* Prints the current state. Returns an exit code. */
static int print_state(const struct watch *watch)
{
    const int known = alive(watch);
    struct slc_error err = SLC_ERROR_INIT;
    char text[512];

    if (!watch->state.started) {
        (void)slc_fail(&err, SLC_ERR_IO, "%s: no run has written to it", watch->path);
        return console_error(&err);
    }
    if (watch->args.json) {
        if (json_out_print(run_state_json(&watch->state, known), &err) != SLC_OK) {
            return console_error(&err);
        }
    } else if (!watch->args.quiet) {
        run_state_describe(&watch->state, text, sizeof text);
        printf("%s%s\n", text, known == 0 && !watch->state.ended ? "; its process is gone" : "");
    }
    return watch->state.ended ? watch->state.exit_code : known == 0;
}

/* Polls until the run ends. Returns an exit code. */
static int follow(struct watch *watch)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    struct slc_error err = SLC_ERROR_INIT;
    bool lost = false;

    for (;;) {
        if (read_news(watch, &err) != SLC_OK) {
            console_clear_live();
            return console_error(&err);
        }
        if (watch->args.once) {
            return print_state(watch);
        }
        if (watch->state.ended || lost) {
            break;
        }
        /* The run may have written its last events just before it ended, so poll once more. */
        lost = is_lost(watch);
        draw_live_line(watch);
        if (!lost) {
            (void)nanosleep(&pause, NULL);
        }
    }
    console_clear_live();
    if (watch->state.ended) {
        return watch->state.exit_code;
    }
    if (!watch->state.started) {
        (void)slc_fail(&err, SLC_ERR_IO,
                       "%s: no run has written to it within %g s: check the path, or wait longer "
                       "(--lost-after)",
                       watch->path, watch->args.lost_after);
        return console_error(&err);
    }
    (void)slc_fail(&err, SLC_ERR_SYSTEM,
                   "the run died without a final event: process %lld on %s; repeat the command to "
                   "resume a decomposition or conversion",
                   (long long)watch->state.pid, watch->state.host);
    return console_error(&err);
}

static void end_watch(void *unused)
{
    (void)unused;
    console_clear_live();
}

static int run(const struct command *command, int argc, char **argv)
{
    struct watch watch = {.inode = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code;

    if (!command_begin(command, argc, argv, &watch.args, &operands, &code)) {
        return code;
    }
    console_start(watch.args.quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    if (signals_start(end_watch, NULL, &err) != SLC_OK) {
        return console_error(&err);
    }
    watch.path = operands.text[0];
    watch.heard_ns = slc_clock_ns();
    watch.line = slc_malloc(LINE_BYTES_MAX);
    if (watch.line == NULL) {
        (void)slc_fail(&err, SLC_ERR_MEMORY, "out of memory for a line of the log");
        return console_error(&err);
    }
    code = follow(&watch);
    slc_free(watch.line);
    return code;
}

const struct command command_watch = {
    .name = "watch",
    .summary = "follow a run, from another terminal or machine, by its JSON log or its folder",
    .example = "sluice watch flights.jsonl",
    .operands = "LOG|RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "LOG is the file of --log-json, which may be created after this command starts. RUN "
             "is the folder\nof the checkpoints and results of a factorization. The exit code is "
             "the exit code of the run, or\n1 if the run died. A signal ends only this command, "
             "not the run.",
    .run = run,
};
