/* Tries whole commands on every crash state. `cpd` with a checkpoint after every mode update and
 * every part of a pass, while it writes results and removes the checkpoint: committed work
 * survives, the same command resumes from it and ends with the bits of an undisturbed run. Every
 * result of every command is complete, or is the earlier file, or is missing; results that belong
 * together are of one run. */
#include "crash_command.h"
#include "slc_test.h"

#include "engine/product/npy_pair.h"
#include "engine/solve/cp.h"

/* The linker substitutes this main for the command's (command_main.h). */
int __wrap_main(int argc, char **argv);
enum slc_status __real_slc_cp_run(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err);
enum slc_status __wrap_slc_cp_run(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err);

/* Makes parts of passes short, so that even the pass over a few blocks has several parts. */
enum slc_status __wrap_slc_cp_run(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    struct slc_cp_options in_parts = *options;

    in_parts.part_bytes = 1;
    return __real_slc_cp_run(store, stream, backend, plan, &in_parts, result, err);
}

#define CPD_PATHS                                                                                  \
    .paths = {"r/mode-1.npy", "r/mode-2.npy", "r/mode-3.npy", "r/lambda.npy"},                     \
    .record = "r/run.json"
#define CPD "cpd x.slc -r 2 --tol 0 --deterministic -t 2 --io pread --progress never -o r "

static void test_cpd(void)
{
    crash_command_sweep(
        &(struct crash_command){.name = "cpd",
                                .arguments = CPD "-i 2 --checkpoint-interval 0 --layouts blco",
                                CPD_PATHS,
                                .checkpoint = "r",
                                .scale = 1,
                                .every = 5});
}

static void test_fused(void)
{
    crash_command_sweep(
        &(struct crash_command){.name = "cpd, two modes in a pass",
                                .arguments = CPD "-i 2 --checkpoint-interval 0 --passes fused",
                                CPD_PATHS,
                                .checkpoint = "r",
                                .scale = 1,
                                .every = 10});
}

#define RANKS                                                                                      \
    "cpd x.slc --tol 0 --deterministic -t 2 --io pread --progress never -o s -i 2 -v "             \
    "--checkpoint-interval 0 --layouts blco "

/* Adding a rank to a sweep: the run resumes, and recorded runs are kept. */
static void test_ranks(void)
{
    crash_command_sweep(
        &(struct crash_command){.name = "cpd, a sweep",
                                .arguments = RANKS "-r 1,2",
                                .before = RANKS "-r 1 --runs 2",
                                .paths = {"s/r2-seed0/mode-1.npy", "s/r2-seed0/mode-2.npy",
                                          "s/r2-seed0/mode-3.npy", "s/r2-seed0/lambda.npy"},
                                .record = "s/r2-seed0/run.json",
                                .checkpoint = "s/r2-seed0",
                                .varies = ".json",
                                .scale = 1,
                                .every = 5});
}

static void test_replaced(void)
{
    crash_command_sweep(&(struct crash_command){.name = "cpd over the results of another",
                                                .arguments = CPD "-i 1",
                                                .before = CPD "-i 1 --seed 5",
                                                CPD_PATHS,
                                                .scale = 8,
                                                /* Needless are sync 2, which syncs an old name, and
                                                 * syncs 4, 6 and 8, because sync 10 syncs their
                                                 * names again. */
                                                .each_sync = true,
                                                .needless = 0xaa});
}

static void test_products(void)
{
    static const struct crash_command commands[] = {
        {.name = "mttkrp",
         .arguments = "mttkrp x.slc --mode 1 --factors r -o m.npy -t 2 --io pread -q",
         .before = CPD "-i 1",
         .paths = {"m.npy"},
         .scale = 8,
         .each_sync = true},
        {.name = "ttv",
         .arguments = "ttv x.slc --mode 1 --vector v.npy y.slc -t 2 --io pread -q",
         .paths = {"y.slc"},
         .scale = 4,
         /* The needless syncs are those of a conversion (test_crash_convert.c). */
         .each_sync = true,
         .needless = 0x19},
        {.name = "ttm",
         .arguments = "ttm x.slc p --mode 1 --matrix v.npy -t 2 --io pread -q",
         .before = "ttm x.slc p --mode 2 --matrix w.npy -t 2 --io pread -q",
         .paths = {"p/" SLC_PAIR_COORDS, "p/" SLC_PAIR_ROWS},
         .scale = 4,
         /* The needless syncs are those of the temporary store. */
         .each_sync = true,
         .needless = 0x7f},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        crash_command_sweep(&commands[i]);
    }
}

static void test_texts(void)
{
    static const struct crash_command commands[] = {
        {.name = "export",
         .arguments = "export x.slc t.tns -f -t 2 -q",
         .before = "generate t.tns --dims 5x4x3 --nnz 20 -q",
         .paths = {"t.tns"},
         .scale = 8,
         .each_sync = true},
        {.name = "export lists",
         .arguments = "export x.slc t.bin -f -t 1 -q",
         .before = "export x.slc t.bin --format tns -q",
         .paths = {"t.bin"},
         .scale = 8,
         .each_sync = true},
        {.name = "export factors",
         .arguments = "export r m.mat -f -q",
         .before = CPD "-i 1",
         .paths = {"m.mat"},
         .scale = 8,
         .each_sync = true},
        {.name = "predict at the nonzeros of a store",
         .arguments = "predict r x.slc -o p.csv -f -t 2 -q",
         .before = CPD "-i 1",
         .paths = {"p.csv"},
         .scale = 8,
         .each_sync = true},
        {.name = "generate a text",
         .arguments = "generate t.tns --dims 5x4x3 --nnz 30 -q -f",
         .before = "generate t.tns --dims 5x4x3 --nnz 20 -q",
         .paths = {"t.tns"},
         .scale = 8,
         .each_sync = true},
        {.name = "generate over a store",
         .arguments = "generate y.slc --dims 5x4x3 --nnz 30 -q -f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 4},
        {.name = "generate a store",
         .arguments = "generate y.slc --dims 5x4x3 --nnz 30 -q",
         .paths = {"y.slc"},
         .scale = 4,
         .each_sync = true,
         .needless = 0x19},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        crash_command_sweep(&commands[i]);
    }
}

#define COMMITTING "y.slc -t 2 --memory 2GiB --checkpoint-interval 1e-9 --progress never "
#define CONVERT    "convert in.tns " COMMITTING

static void test_convert(void)
{
    static const struct crash_command commands[] = {
        {.name = "convert", .arguments = CONVERT},
        {.name = "convert over a store",
         .arguments = CONVERT "-f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q"},
        {.name = "convert with new numbers", .arguments = CONVERT "--relabel frequency"},
        {.name = "convert a dense array",
         .arguments = "convert v.npy " COMMITTING "--format npy-dense"},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        struct crash_command command = commands[i];

        command.paths[0] = "y.slc";
        command.noted[0] = "y.slc";
        command.noted[1] = "y.slc.part";
        command.scale = 2;
        crash_command_sweep(&command);
    }
}

/* Nothing is appended twice or partially: all layouts of the store have the same nonzeros. */
static void test_grow(void)
{
    static const struct crash_command commands[] = {
        {.name = "append",
         .arguments = "append x.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"x.slc"},
         .scale = 2,
         .every = 4},
        {.name = "append to a store without layouts",
         .arguments = "append y.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 4},
        {.name = "append by two renames",
         .arguments = "append y.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .two_renames = true,
         .scale = 4},
        {.name = "slice over a store",
         .arguments = "slice x.slc y.slc --mode 1=2..4 -t 2 --memory 2GiB -q -f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 2},
        {.name = "permute",
         .arguments = "permute x.slc y.slc --order 2,3,1 -t 2 --memory 2GiB -q",
         .paths = {"y.slc"},
         .scale = 2},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        crash_command_sweep(&commands[i]);
    }
}

static const struct slc_test tests[] = {
    {"convert", test_convert},
    {"append, slice and permute", test_grow},
    {"cpd", test_cpd},
    {"cpd with two modes in a pass", test_fused},
    {"cpd over several ranks", test_ranks},
    {"cpd over the results of another run", test_replaced},
    {"products", test_products},
    {"texts and stores", test_texts},
};

int __wrap_main(int argc, char **argv)
{
    return slc_test_main("crash_commands", tests, SLC_COUNT(tests), argc, argv);
}
