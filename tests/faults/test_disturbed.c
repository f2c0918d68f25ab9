/* Changes the files of a running command from outside: a file of a store is truncated, modified or
 * replaced, also under a map; a text is truncated, modified or extended; the folder of the results
 * is removed. Each of these changes happens before the k-th file operation of the command, for
 * every k or for a sample of all k.
 *
 * The command ends by itself, leaves nothing open, and either exits with 0 and a right result or
 * names the file at fault. Results are complete or absent. Once the inputs are restored, the same
 * command resumes from its checkpoint and ends with the undisturbed result. */
#include "base/random.h"
#include "base/topology/topology.h"
#include "faulty_command.h"
#include "file_tree.h"
#include "make_sorted.h"
#include "make_store.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The linker substitutes this main for the command's (command_main.h). */
int __wrap_main(int argc, char **argv);

enum {
    PATH_BYTES = 512,
    BLOCK_BYTES = 4096,
    TILE_NNZ = 150,
    PARTITION_NNZ = 1500,
    ALTERED_EVERY = 400
};

static const char *folder; /* the inputs are in its folder `in`, unchanged copies in `kept` */
static char inputs[PATH_BYTES], kept[PATH_BYTES], place[PATH_BYTES];

static const char *below(const char *name)
{
    static char path[2 * PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void must(bool holds, const char *what)
{
    if (!holds) {
        printf("Bail out! %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
    }
}

/* The disturbed file: of a store, or a text. */
static char disturbed_path[2 * PATH_BYTES];

static off_t length_of(const char *path)
{
    struct stat status;

    /* The file may have been removed already. */
    return stat(path, &status) == 0 ? status.st_size : 0;
}

static void cut(void)
{
    (void)truncate(disturbed_path, length_of(disturbed_path) / 2 + 1);
}

static void write_into(off_t at, const char *text, size_t bytes)
{
    int fd = open(disturbed_path, O_WRONLY | O_CLOEXEC);

    (void)!pwrite(fd, text, bytes, at);
    (void)close(fd);
}

/* Changes bytes throughout the file, so that every tile changes. */
static void alter(void)
{
    const off_t length = length_of(disturbed_path);

    for (off_t at = ALTERED_EVERY; at < length; at += ALTERED_EVERY) {
        write_into(at, "9", 1);
    }
}

static void grow(void)
{
    static const char rows[] = "\n59 1 1 7\n60 2 2 7\n";

    write_into(length_of(disturbed_path), rows, sizeof rows - 1);
}

static void replace(void)
{
    char other[2 * PATH_BYTES], aside[2 * PATH_BYTES];

    (void)snprintf(other, sizeof other, "%s/y.slc", kept);
    (void)snprintf(aside, sizeof aside, "%s/aside.slc", inputs);
    (void)rename(below("in/x.slc"), aside);
    file_tree_copy(other, below("in/x.slc"));
    file_tree_remove(aside);
}

static void remove_results(void)
{
    file_tree_remove(below("try/out"));
}

struct disturbance {
    const char *name;
    void (*call)(void);
    const char *path; /* path of the disturbed file */
    bool replaces;    /* the command may succeed with the result of the replacement */
    bool removes;     /* the result may be missing */
};

struct disturbed_case {
    const char *name;
    const char *arguments; /* run in a folder next to the inputs */
    const char *printed;   /* start of the result in the output; NULL: the output has no result */
    struct disturbance disturbances[3]; /* terminated by an element without a name */
    unsigned kinds;     /* bits of enum slc_faulty_kind: the file is disturbed before operations of
                           these kinds */
    const char *blamed; /* folder of the file to blame */
};

/* One try. */
struct attempt {
    const struct disturbed_case *of;
    const struct disturbance *disturbance;
    struct file_tree after, other; /* expected files, and those with the replacement */
    struct command_end clean, ended, again;
    uint64_t tries, refused, resumed;
    unsigned complaints;
};

static void restore_inputs(void)
{
    file_tree_remove(inputs);
    file_tree_copy(kept, inputs);
}

static void begin_anew(void)
{
    restore_inputs();
    file_tree_remove(place);
    file_tree_copy(NULL, place);
}

static void read_tree(struct file_tree *tree)
{
    static const char *const unread[] = {"run.json", NULL};

    file_tree_read(tree, place, unread);
}

static bool is_result(const struct attempt *a, const struct file_tree *now)
{
    return file_tree_difference(now, &a->after) == NULL ||
           (a->disturbance->removes && now->count == 0) ||
           (a->disturbance->replaces && file_tree_difference(now, &a->other) == NULL);
}

static bool has_checkpoint(const struct file_tree *now)
{
    for (size_t i = 0; i < now->count; i++) {
        if (strstr(now->files[i].path, ".ckpt") != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether the output is the same except for times and rates. */
static bool prints_the_same(const struct attempt *a, const struct command_end *end)
{
    const char *from = a->of->printed;
    const char *one = from != NULL ? strstr(a->clean.printed, from) : NULL;
    const char *two = from != NULL ? strstr(end->printed, from) : NULL;

    return from == NULL || (one != NULL && two != NULL && strcmp(one, two) == 0);
}

static const char *check_open(const struct attempt *a, const struct command_end *end)
{
    return !end->finished ? "ended by a signal"
           : end->open_files != 0 || end->buffers != 0 || end->leaked ||
                   end->descriptors > a->clean.descriptors
               ? "leaves something open"
               : NULL;
}

/* Returns the fault of the disturbed run, or NULL. */
static const char *check_disturbed(const struct attempt *a, char *text, size_t bytes)
{
    const struct command_end *end = &a->ended;
    const char *wrong = check_open(a, end);
    struct file_tree now;

    if (wrong != NULL) {
        return wrong;
    }
    read_tree(&now);
    if (end->code == 0) {
        return !is_result(a, &now)        ? "exit code 0, but the result is another"
               : !prints_the_same(a, end) ? "exit code 0, but prints something else"
                                          : NULL;
    }
    if (a->disturbance->replaces) {
        return "fails, although there was a whole store at any time";
    }
    if (end->code != 5 && !(end->code == 3 && strstr(a->of->name, "convert") != NULL)) {
        (void)snprintf(text, bytes, "exit code %d", end->code);
        return text;
    }
    for (size_t i = 0; i < now.count; i++) {
        const char *path = now.files[i].path;

        if (!file_tree_agrees(&now, &a->after, path) && strstr(path, ".ckpt") == NULL &&
            strstr(path, ".part/") == NULL) {
            (void)snprintf(text, bytes, "%s is left", path);
            return text;
        }
    }
    return strstr(end->said, a->of->blamed) != NULL ? NULL : "does not say which file it was";
}

static void try_disturbance(struct attempt *a, enum slc_faulty_kind kind, uint64_t k)
{
    const struct command_fault fault = {
        .kind = kind, .action = SLC_FAULTY_CALL, .call = a->disturbance->call};
    struct file_tree now;
    char text[256];
    const char *wrong;
    bool kept_one;

    begin_anew();
    command_run(place, a->of->arguments, &fault, k, &a->ended);
    wrong = check_disturbed(a, text, sizeof text);
    a->tries++;
    a->refused += a->ended.code != 0;
    if (wrong == NULL && a->ended.code != 0) {
        read_tree(&now);
        kept_one = has_checkpoint(&now);
        restore_inputs();
        command_run(place, a->of->arguments, NULL, 0, &a->again);
        read_tree(&now);
        a->resumed += kept_one;
        wrong = check_open(a, &a->again);
        wrong = wrong != NULL                                   ? wrong
                : a->again.code != a->clean.code                ? "the next run fails"
                : file_tree_difference(&now, &a->after) != NULL ? "the next run has another result"
                : kept_one && strstr(a->again.printed, "\n  resumed ") == NULL
                    ? "the next run does not go on"
                    : NULL;
    }
    if (wrong != NULL && (a->complaints++ < 5 || slc_test_full())) {
        printf("# %s, %s before operation %" PRIu64 " of kind %d: %s\n# %s\n", a->of->name,
               a->disturbance->name, k, (int)kind, wrong, a->ended.said);
    }
}

/* Undisturbed runs with the original and with the replacement. */
static void run_alone(struct attempt *a)
{
    begin_anew();
    replace();
    command_run(place, a->of->arguments, NULL, 0, &a->clean);
    read_tree(&a->other);
    begin_anew();
    command_run(place, a->of->arguments, NULL, 0, &a->clean);
    read_tree(&a->after);
    if (!a->clean.finished || a->clean.code != 0) {
        printf("# %s, undisturbed: %d: %s\n", a->of->name, a->clean.code, a->clean.said);
        CU_FAIL("a run that is left alone");
    }
}

/* Runs the command and disturbs its files before every operation of each kind, or before a random
 * one. */
static void disturb(struct attempt *a)
{
    static uint64_t draws;

    for (unsigned kind = 0; kind <= SLC_FAULTY_ANY; kind++) {
        const uint64_t most = (a->of->kinds >> kind & 1U) != 0 ? a->clean.seen[kind] : 0;
        const uint64_t step = slc_test_full() ? 1 : most;

        for (uint64_t k = 1; k <= most; k += step) {
            const uint64_t drawn = slc_random_below(slc_test_seed(), draws++, kind, step);

            try_disturbance(a, (enum slc_faulty_kind)kind, k + drawn);
        }
    }
}

static void make_store(const char *name, uint64_t seed)
{
    static const uint64_t dims[] = {60, 40, 30};
    struct slc_made_tensor tensor = {.order = 0};
    struct slc_error err = SLC_ERROR_INIT;

    slc_made_tensor_create(&tensor, SLC_COUNT(dims), dims, 4000, SLC_MADE_DOUBLES, seed);
    tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(
        slc_made_store_write(&tensor, NULL, below(name), SLC_CODEC_PACKED, BLOCK_BYTES, &err),
        &err);
    for (unsigned mode = 0; mode < SLC_COUNT(dims); mode++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&tensor, below(name), mode, PARTITION_NNZ,
                                                SLC_CODEC_PACKED, BLOCK_BYTES, &err),
                      &err);
    }
    slc_made_tensor_destroy(&tensor);
}

static void prepare(const char *arguments)
{
    static struct command_end end;

    command_run(kept, arguments, NULL, 0, &end);
    must(end.finished && end.code == 0, end.said);
}

static void make_inputs(void)
{
    double vector[60];
    struct slc_error err = SLC_ERROR_INIT;

    /* Read the topology here, because that takes as long as a short run: children inherit it. */
    (void)slc_topology();
    folder = slc_test_folder();
    (void)snprintf(inputs, sizeof inputs, "%s/in", folder);
    (void)snprintf(kept, sizeof kept, "%s/kept", folder);
    (void)snprintf(place, sizeof place, "%s/try", folder);
    file_tree_copy(NULL, kept);
    make_store("kept/x.slc", 1);
    make_store("kept/y.slc", 2);
    for (size_t i = 0; i < SLC_COUNT(vector); i++) {
        vector[i] = (double)(i % 5);
    }
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, below("kept/v.npy"), vector, SLC_COUNT(vector), &err),
                  &err);
    prepare("generate t.tns --dims 60x40x30 --nnz 60000 -q");
    prepare("generate g.slc --dims 200x150x100 --nnz 40000 --block-bytes 4KiB -q");
    prepare("cpd x.slc -r 3 -i 1 --tol 0 -o factors -q --io pread");
}

static void disturb_by_all(const struct disturbed_case *of)
{
    static struct attempt a;
    static size_t cases;
    size_t count = 0;

    if (folder == NULL) {
        make_inputs();
    }
    a = (struct attempt){.of = of};
    run_alone(&a);
    while (count < SLC_COUNT(of->disturbances) && of->disturbances[count].name != NULL) {
        count++;
    }
    cases++;
    for (size_t i = 0; i < count; i++) {
        if (slc_test_quick() && i != cases % count) {
            continue;
        }
        a.disturbance = &of->disturbances[i];
        a.tries = a.refused = a.resumed = 0;
        (void)snprintf(disturbed_path, sizeof disturbed_path, "%s/%s", inputs,
                       a.disturbance->path != NULL ? a.disturbance->path : "");
        disturb(&a);
        printf("# %s, %s: %" PRIu64 " tries, %" PRIu64 " refused, %" PRIu64
               " went on from a checkpoint\n",
               of->name, a.disturbance->name, a.tries, a.refused, a.resumed);
        CU_ASSERT(a.tries > 0);
    }
    CU_ASSERT_EQUAL(a.complaints, 0);
}

/* clang-format off */
#define OF_STORE(file)                                                                             \
    {{"cut", cut, "x.slc/" file, false, false},                                                    \
     {"altered", alter, "x.slc/" file, false, false},                                              \
     {"replaced", replace, NULL, true, false}}
#define OF_TEXT                                                                                    \
    {{"cut", cut, "t.tns", false, false},                                                          \
     {"altered", alter, "t.tns", false, false},                                                    \
     {"grown", grow, "t.tns", false, false}}
/* clang-format on */
#define CPD "cpd ../in/x.slc -r 3 -i 2 --tol 0 --deterministic -t 2 --no-cache -o out "

enum {
    READS = 1U << SLC_FAULTY_OPEN | 1U << SLC_FAULTY_READ | 1U << SLC_FAULTY_COMPLETED,
    MAPS = 1U << SLC_FAULTY_MAP | 1U << SLC_FAULTY_COMPLETED | 1U << SLC_FAULTY_STAT
};

static void test_cpd(void)
{
    static const struct disturbed_case cases[] = {
        {.name = "cpd",
         .arguments = CPD "--checkpoint-interval 0 --layouts blco",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "cpd, pread",
         .arguments = CPD "--checkpoint-interval 0 --io pread",
         .disturbances = OF_STORE("sorted-2.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "cpd, mmap",
         .arguments = CPD "--checkpoint-interval 0 --io mmap --layouts blco",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = MAPS,
         .blamed = "x.slc"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        disturb_by_all(&cases[i]);
    }
}

static void test_others(void)
{
    static const struct disturbed_case cases[] = {
        {.name = "mttkrp, mmap",
         .arguments = "mttkrp ../in/x.slc --mode 1 --factors ../in/factors -o m.npy -t 2 "
                      "--deterministic --io mmap --layouts blco",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = MAPS,
         .blamed = "x.slc"},
        {.name = "export",
         .arguments = "export ../in/x.slc out.tns -t 2",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "export, lists",
         .arguments = "export ../in/x.slc out.bin -t 2",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "export, sorted",
         .arguments = "export ../in/x.slc out.npz -t 2",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "predict",
         .arguments = "predict ../in/factors ../in/x.slc -o p.csv -t 2",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "residuals",
         .arguments = "residuals ../in/factors ../in/x.slc -n 3 -t 2",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = READS,
         .blamed = "x.slc"},
        {.name = "check",
         .arguments = "check ../in/g.slc -t 2",
         .disturbances = {{"cut", cut, "g.slc/blco.blk", false, false},
                          {"altered", alter, "g.slc/blco.blk", false, false}},
         .kinds = READS,
         .blamed = "g.slc"},
        {.name = "info",
         .arguments = "info ../in/x.slc",
         .disturbances = {{"replaced", replace, NULL, true, false}},
         .kinds = 1U << SLC_FAULTY_ANY,
         .blamed = "x.slc"},
        {.name = "ttv, mmap",
         .arguments = "ttv ../in/x.slc --mode 1 --vector ../in/v.npy out.slc -t 2 --sort --io mmap",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = MAPS,
         .blamed = "x.slc"},
        {.name = "ttm, mmap",
         .arguments = "ttm ../in/x.slc --mode 1 --matrix ../in/v.npy out -t 2 --io mmap",
         .disturbances = OF_STORE("blco.blk"),
         .kinds = MAPS,
         .blamed = "x.slc"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        disturb_by_all(&cases[i]);
    }
}

static void test_text(void)
{
    static const struct disturbed_case cases[] = {
        {.name = "convert",
         .arguments = "convert ../in/t.tns out.slc -t 2 --memory 256MiB",
         .disturbances = OF_TEXT,
         .kinds = 1U << SLC_FAULTY_READ,
         .blamed = "t.tns"},
        {.name = "convert that commits",
         .arguments =
             "convert ../in/t.tns out.slc -t 2 --memory 256MiB --checkpoint-interval 0.001",
         .disturbances = OF_TEXT,
         .kinds = 1U << SLC_FAULTY_READ,
         .blamed = "t.tns"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        disturb_by_all(&cases[i]);
    }
}

static void test_results(void)
{
    static const struct disturbed_case cases[] = {
        {.name = "the results of cpd",
         .arguments = CPD "--checkpoint-interval 0 --layouts blco --io pread",
         .disturbances = {{"removed", remove_results, NULL, false, true}},
         .kinds = 1U << SLC_FAULTY_ANY,
         .blamed = "out"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        disturb_by_all(&cases[i]);
    }
}

int __wrap_main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"a store under cpd", test_cpd},
        {"a store under other commands", test_others},
        {"a text under convert", test_text},
        {"results", test_results},
    };

    return slc_test_main("disturbed", tests, SLC_COUNT(tests), argc, argv);
}
