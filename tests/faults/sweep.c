/* Sweeps a command through faults and checks the outcome of every try. */
#include "sweep.h"

#include "file_tree.h"
#include "slc_test.h"
#include "storage/manifest/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 512,
    /* One of this many tries is made: primes, so that all positions in loops are reached. */
    SAMPLE = 151,
    SAMPLE_QUICK = 307,
    /* Number of complaints printed per case: the first ones suffice. */
    COMPLAINTS = 12,
    /* Whole pages, as direct I/O requires, but less than a block. */
    SHORT_BYTES = 4096
};

/* Output of a command that resumed an earlier run. */
static const char resumed[] = "\n  resumed ";

static const struct {
    const char *name;
    struct command_fault fault;
    int code;          /* the documented exit code; 0: the command must succeed without the
                        * operation */
    const char *words; /* expected in the message; NULL: the text of the errno */
    bool cleaning;     /* the fault prevents the removal of files, so they are left over */
} faults[] = {
    {"open EMFILE", {SLC_FAULTY_OPEN, SLC_FAULTY_ERRNO, .error = EMFILE}, 5, NULL, false},
    {"open EACCES", {SLC_FAULTY_OPEN, SLC_FAULTY_ERRNO, .error = EACCES}, 5, NULL, false},
    {"close EIO", {SLC_FAULTY_CLOSE, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"read EIO", {SLC_FAULTY_READ, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"read EINTR", {SLC_FAULTY_READ, SLC_FAULTY_ERRNO, .error = EINTR}, 0, NULL, false},
    {"read short",
     {SLC_FAULTY_READ, SLC_FAULTY_SHORT, .detail = SHORT_BYTES, .from_then = true},
     0,
     NULL,
     false},
    {"write EIO", {SLC_FAULTY_WRITE, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"write ENOSPC", {SLC_FAULTY_WRITE, SLC_FAULTY_ERRNO, .error = ENOSPC}, 5, NULL, false},
    {"full disk",
     {SLC_FAULTY_WRITE, SLC_FAULTY_ERRNO, .error = ENOSPC, .from_then = true},
     5,
     NULL,
     false},
    {"write EINTR", {SLC_FAULTY_WRITE, SLC_FAULTY_ERRNO, .error = EINTR}, 0, NULL, false},
    {"write short",
     {SLC_FAULTY_WRITE, SLC_FAULTY_SHORT, .detail = SHORT_BYTES, .from_then = true},
     0,
     NULL,
     false},
    {"fsync EIO", {SLC_FAULTY_SYNC, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"truncate EIO", {SLC_FAULTY_TRUNCATE, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"reserve ENOSPC", {SLC_FAULTY_RESERVE, SLC_FAULTY_ERRNO, .error = ENOSPC}, 5, NULL, false},
    {"stat EIO", {SLC_FAULTY_STAT, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"rename EIO", {SLC_FAULTY_RENAME, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"exchange EIO", {SLC_FAULTY_EXCHANGE, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"exchange EOPNOTSUPP",
     {SLC_FAULTY_EXCHANGE, SLC_FAULTY_ERRNO, .error = EOPNOTSUPP},
     0,
     NULL,
     false},
    {"unlink EIO", {SLC_FAULTY_UNLINK, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, true},
    {"folder EIO", {SLC_FAULTY_FOLDER, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, true},
    {"lock ENOLCK", {SLC_FAULTY_LOCK, SLC_FAULTY_ERRNO, .error = ENOLCK}, 5, NULL, false},
    {"mmap ENOMEM", {SLC_FAULTY_MAP, SLC_FAULTY_ERRNO, .error = ENOMEM}, 1, NULL, false},
    {"mmap EIO", {SLC_FAULTY_MAP, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"advise EINVAL", {SLC_FAULTY_ADVISE, SLC_FAULTY_ERRNO, .error = EINVAL}, 0, NULL, false},
    {"completion EIO", {SLC_FAULTY_COMPLETED, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"completion EINTR", {SLC_FAULTY_COMPLETED, SLC_FAULTY_ERRNO, .error = EINTR}, 0, NULL, false},
    {"completion short",
     {SLC_FAULTY_COMPLETED, SLC_FAULTY_SHORT, .detail = SHORT_BYTES, .from_then = true},
     0,
     NULL,
     false},
    {"dead drive",
     {SLC_FAULTY_ANY, SLC_FAULTY_ERRNO, .error = EIO, .from_then = true},
     5,
     NULL,
     true},
    {"ring EPERM", {COMMAND_RING_SETUP, SLC_FAULTY_ERRNO, .error = EPERM}, 0, NULL, false},
    {"submit EAGAIN", {COMMAND_RING_SUBMIT, SLC_FAULTY_ERRNO, .error = EAGAIN}, 0, NULL, false},
    {"submit EIO", {COMMAND_RING_SUBMIT, SLC_FAULTY_ERRNO, .error = EIO}, 5, NULL, false},
    {"thread EAGAIN", {COMMAND_THREAD, SLC_FAULTY_ERRNO, .error = EAGAIN}, 1, NULL, false},
    {"allocation", {COMMAND_ALLOCATION, SLC_FAULTY_ERRNO, .error = ENOMEM}, 1, "memory", false},
};

struct sweeping {
    const struct sweep_case *swept;
    char folder[PATH_BYTES];   /* working folder of the command */
    char prepared[PATH_BYTES]; /* a folder in its initial state */
    struct file_tree before;
    struct file_tree after;
    struct command_end clean; /* the run without a fault */
    uint64_t tries;
    uint64_t refused; /* number of tries with an exit code other than 0 */
    unsigned complaints;
};

/* Only times differ between the records of two runs. */
static void read_tree(const struct sweeping *s, struct file_tree *tree)
{
    static const char *const unread[] = {"run.json", "log.json", "sweep.json", NULL};

    file_tree_read(tree, s->folder, unread);
}

static void begin_anew(const struct sweeping *s)
{
    file_tree_remove(s->folder);
    file_tree_copy(s->swept->before != NULL ? s->prepared : NULL, s->folder);
}

/* Files of an interrupted run that the next run can resume from. */
static bool is_resumable(const char *path)
{
    static const char *const parts[] = {".slc.part/", ".slc.old/", ("/" SLC_COMPLETE_STATE_NAME),
                                        ".ckpt",      ".blk.tmp",  ".stripe"};

    for (size_t i = 0; i < SLC_COUNT(parts); i++) {
        if (strstr(path, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool in_store(const struct sweep_case *swept, const char *path)
{
    return swept->store != NULL && strncmp(path, swept->store, strlen(swept->store)) == 0;
}

/* Whether the store is equal in both trees, or absent from both. */
static bool
has_store_of(const struct sweeping *s, const struct file_tree *tree, const struct file_tree *whole)
{
    bool any = false;

    for (size_t i = 0; i < whole->count; i++) {
        if (in_store(s->swept, whole->files[i].path)) {
            any = true;
            if (!file_tree_agrees(tree, whole, whole->files[i].path)) {
                return false;
            }
        }
    }
    return any || s->swept->store == NULL || file_tree_find(tree, s->swept->store) == NULL;
}

/* Checks a failed run; returns NULL or the fault. */
static const char *check_leftovers(const struct sweeping *s,
                                   const struct command_end *end,
                                   bool cleaning,
                                   char *text,
                                   size_t bytes)
{
    /* The message names the place of a store that could not be moved back. */
    const bool moved = strstr(end->said, "the old store is at") != NULL;
    struct file_tree now;

    read_tree(s, &now);
    for (size_t i = 0; i < now.count; i++) {
        const char *path = now.files[i].path;

        if (!file_tree_agrees(&now, &s->before, path) && !file_tree_agrees(&now, &s->after, path) &&
            !is_resumable(path) && !(cleaning && file_tree_find(&s->after, path) == NULL)) {
            (void)snprintf(text, bytes, "%s is neither as before nor as after", path);
            return text;
        }
    }
    for (size_t i = 0; i < s->before.count && !moved; i++) {
        const char *path = s->before.files[i].path;

        if (file_tree_find(&now, path) == NULL && file_tree_find(&s->after, path) != NULL) {
            (void)snprintf(text, bytes, "%s is lost", path);
            return text;
        }
    }
    if (!moved && !has_store_of(s, &now, &s->before) && !has_store_of(s, &now, &s->after)) {
        return "half a store";
    }
    return NULL;
}

/* Whether two runs print the same, ignoring the accuracy of their forecasts, which varies. */
static bool print_alike(const char *one, const char *two)
{
    const char *end_one = strstr(one, "\n  expected ");
    const char *end_two = strstr(two, "\n  expected ");
    const size_t length = end_one != NULL ? (size_t)(end_one - one) : strlen(one);

    return length == (end_two != NULL ? (size_t)(end_two - two) : strlen(two)) &&
           memcmp(one, two, length) == 0;
}

/* Checks a run that reported success; `left`: it also reported a file that it could not remove. */
static const char *check_success(
    const struct sweeping *s, const struct command_end *end, bool left, char *text, size_t bytes)
{
    struct file_tree now;
    const char *path;

    read_tree(s, &now);
    path = left ? file_tree_missing(&now, &s->after) : file_tree_difference(&now, &s->after);
    if (path != NULL) {
        (void)snprintf(text, bytes, "exit code %d, but %s is not as without a fault", end->code,
                       path);
        return text;
    }
    return s->swept->prints && !print_alike(end->printed, s->clean.printed)
               ? "prints something else than without a fault"
               : NULL;
}

static const char *
check_end(const struct sweeping *s, const struct command_end *end, char *text, size_t bytes)
{
    if (!end->finished) {
        (void)snprintf(text, bytes, "ended by signal %d", end->code);
        return text;
    }
    if (end->open_files != 0 || end->descriptors > s->clean.descriptors || end->buffers != 0) {
        (void)snprintf(text, bytes,
                       "left open: %" PRId64 " files and maps, %" PRId64 " descriptors, %" PRId64
                       " buffers",
                       end->open_files, end->descriptors - s->clean.descriptors, end->buffers);
        return text;
    }
    return end->leaked ? "leaks memory" : NULL;
}

/* Whether a line is an error with these words, preceded by a file name. */
static bool has_error(const char *said, const char *words, bool file)
{
    static const char begin[] = "sluice: ";

    for (const char *line = said; *line != '\0';
         line += strcspn(line, "\n"), line += *line == '\n') {
        const char *name = line + strlen(begin);
        const char *found = strstr(line, words);

        if (strncmp(line, begin, strlen(begin)) == 0 && found != NULL &&
            found < line + strcspn(line, "\n") &&
            (!file || name[strcspn(name, " \n") - 1] == ':')) {
            return true;
        }
    }
    return false;
}

/* Reruns the command, as a user would. It must resume unfinished work, however little is left. */
static const char *check_again(struct sweeping *s, char *text, size_t bytes)
{
    static struct command_end again;
    const char *wrong;
    struct file_tree now;
    bool done;

    read_tree(s, &now);
    done = file_tree_difference(&now, &s->after) == NULL;
    command_run(s->folder, s->swept->arguments, NULL, 0, &again);
    wrong = check_end(s, &again, text, bytes);
    if (wrong != NULL) {
        return wrong;
    }
    if (s->swept->resumes && !done && strstr(again.printed, resumed) == NULL) {
        return "the next run does not go on with what was there";
    }
    if (again.code != s->swept->code && (s->swept->replaces || !done)) {
        (void)snprintf(text, bytes, "the next run ends with exit code %d: %.500s", again.code,
                       again.said);
        return text;
    }
    return check_success(s, &again, false, text, bytes);
}

/* Makes one try. Returns whether the fault happened. */
static bool try_fault(struct sweeping *s, unsigned f, uint64_t k)
{
    static struct command_end end;
    char text[1024];
    const char *wrong;
    const char *when = "";
    const char *words = faults[f].words != NULL ? faults[f].words : strerror(faults[f].fault.error);
    bool left;

    begin_anew(s);
    command_run(s->folder, s->swept->arguments, &faults[f].fault, k, &end);
    left = strstr(end.said, "can be removed") != NULL;
    wrong = check_end(s, &end, text, sizeof text);
    if (wrong == NULL && end.code == s->swept->code) {
        wrong = check_success(s, &end, left, text, sizeof text);
    } else if (wrong == NULL && (end.code != faults[f].code || !end.fired)) {
        (void)snprintf(text, sizeof text, "exit code %d", end.code);
        wrong = text;
    } else if (wrong == NULL) {
        s->refused++;
        wrong = has_error(end.said, words, faults[f].fault.kind < COMMAND_ALLOCATION)
                    ? NULL
                    : "does not say what failed";
        wrong =
            wrong != NULL ? wrong : check_leftovers(s, &end, faults[f].cleaning, text, sizeof text);
    }
    if (wrong == NULL && (left || end.code != s->swept->code)) {
        wrong = check_again(s, text, sizeof text);
        when = "then ";
    }
    s->tries += end.fired;
    if (wrong != NULL && (s->complaints++ < COMPLAINTS || slc_test_full())) {
        printf("# %s, %s:%" PRIu64 ": %s%s\n", s->swept->name, faults[f].name, k, when, wrong);
        for (char *line = strtok(end.said, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            /* Skips progress output, unless the run ended in the middle of it. */
            if (!end.finished || strncmp(line, "sluice: ", strlen("sluice: ")) == 0) {
                printf("#     %s\n", line);
            }
        }
    }
    return end.fired;
}

static void sweep_fault(struct sweeping *s, unsigned f)
{
    const uint64_t sample = slc_test_quick() ? SAMPLE_QUICK : SAMPLE;
    const uint64_t step = slc_test_full() ? 1 : sample;
    /* Each kind starts at another operation; otherwise rare operations would never be tried. */
    const uint64_t most = s->clean.seen[faults[f].fault.kind];
    const uint64_t drawn = (slc_test_seed() + 37 * f) % sample;
    /* Always try an operation that a run makes once: it would hardly ever be drawn. */
    const uint64_t first = slc_test_full() || most == 1 ? 1 : 1 + drawn;

    for (uint64_t k = first; slc_test_full() || k <= most; k += step) {
        if (!try_fault(s, f, k)) {
            break;
        }
    }
}

/* Parses "NAME:K" or an empty value. Returns whether there was one. */
static bool sweep_named(struct sweeping *s)
{
    const char *named = getenv("SLC_TEST_FAULT");
    const char *colon = named != NULL ? strchr(named, ':') : NULL;

    for (unsigned f = 0; colon != NULL && f < SLC_COUNT(faults); f++) {
        if (strncmp(named, faults[f].name, (size_t)(colon - named)) == 0) {
            (void)try_fault(s, f, strtoull(colon + 1, NULL, 10));
        }
    }
    return named != NULL;
}

void sweep(const struct sweep_case *swept, const char *folder)
{
    static struct sweeping s;
    char text[1024];
    const char *wrong;

    s = (struct sweeping){.swept = swept};
    (void)snprintf(s.folder, sizeof s.folder, "%s/try", folder);
    (void)snprintf(s.prepared, sizeof s.prepared, "%s/%s", folder, swept->before);
    begin_anew(&s);
    read_tree(&s, &s.before);
    command_run(s.folder, swept->arguments, NULL, 0, &s.clean);
    read_tree(&s, &s.after);
    wrong = check_end(&s, &s.clean, text, sizeof text);
    if (wrong == NULL && swept->resumes && strstr(s.clean.printed, resumed) == NULL) {
        wrong = "does not go on with what was there";
    }
    if (wrong != NULL || s.clean.code != swept->code) {
        printf("# %s, without a fault: exit code %d %s: %s\n", swept->name, s.clean.code,
               wrong != NULL ? wrong : "", s.clean.said);
        CU_FAIL("a run without a fault");
        return;
    }
    if (!sweep_named(&s)) {
        for (unsigned f = 0; f < SLC_COUNT(faults); f++) {
            sweep_fault(&s, f);
        }
    }
    printf("# %s: %" PRIu64 " faults, of which %" PRIu64 " ended it\n", swept->name, s.tries,
           s.refused);
    CU_ASSERT_EQUAL(s.complaints, 0);
}
