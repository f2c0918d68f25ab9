/* Lets every operation of every command fail once; sweep.h lists the checks. */
#include "fault_inputs.h"
#include "slc_test.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The linker substitutes this main for the command's (faulty_command.c). */
int __wrap_main(int argc, char **argv);

#if defined(__SANITIZE_ADDRESS__)
/* AddressSanitizer may retain little freed memory: it is resident and counts against the budget
 * of later commands. */
const char *__asan_default_options(void); // NOLINT(bugprone-reserved-identifier)
const char *__asan_default_options(void)  // NOLINT(bugprone-reserved-identifier)
{
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}
#endif

/* A command whose output is its result. */
#define PRINTS(case_name, command)                                                                 \
    {                                                                                              \
        .name = (case_name), .arguments = (command), .prints = true, .replaces = true              \
    }

static const struct sweep_case cases[] = {
    {.name = "convert", .arguments = CONVERT_COMMITTING, .store = "out.slc/"},
    {.name = "convert, compressed",
     .arguments = "convert ../in/t.tns.gz out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, binary",
     .arguments = "convert ../in/t.bin out.slc -t 2 --checkpoint-interval 0.001 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, binary by a temporary file",
     .arguments = "convert ../in/t.bin.gz out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, arrays",
     .arguments = "convert ../in/coords.npy ../in/data.npy out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, a dense array",
     .arguments = "convert ../in/dense.npy out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, members",
     .arguments = "convert ../in/t.npz out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "convert, labelled",
     .arguments = "convert ../in/t.tns out.slc -t 2 --memory 256MiB --labels 1=../in/names.map",
     .store = "out.slc/"},
    {.name = "convert, a table",
     .arguments = "convert ../in/t.tns out.slc -t 2 --memory 256MiB --no-header --delimiter ; "
                  "--columns 1",
     .store = "out.slc/"},
    {.name = "convert, spilling", .arguments = fault_spilling, .store = "out.slc/"},
    {.name = "convert, resumed",
     .arguments = CONVERT_COMMITTING,
     .before = "half-converted",
     .store = "out.slc/",
     .resumes = true},
    {.name = "convert, complete",
     .arguments = CONVERT_REPLACING,
     .before = "complete",
     .store = "out.slc/",
     .replaces = true,
     .resumes = true},
    {.name = "convert, replacing",
     .arguments = "convert ../in/zipf.tns out.slc -f --relabel frequency -t 2 --temp-dir .",
     .before = "with-old",
     .store = "out.slc/",
     .replaces = true},
    {.name = "generate",
     .arguments = "generate out.slc --dims 60x40x30 --nnz 3000 --dist zipf:1.1 -t 2",
     .store = "out.slc/"},
    {.name = "layout, sorted",
     .arguments = "layout x.slc --sorted 1 -t 2",
     .before = "with-store",
     .store = "x.slc/",
     .replaces = true},
    {.name = "layout, fibers",
     .arguments = "layout x.slc --fiber 2 -t 2",
     .before = "with-store",
     .store = "x.slc/",
     .replaces = true},
    {.name = "layout, dropping",
     .arguments = "layout x.slc --drop sorted-1",
     .before = "with-layouts",
     .store = "x.slc/"},
    {.name = "layout, striping",
     .arguments = "layout x.slc --stripe . --of blco -t 2",
     .before = "with-store",
     .store = "x.slc/",
     .replaces = true},
    {.name = "append",
     .arguments = "append x.slc ../in/t.tns -t 2 --memory 256MiB",
     .before = "to-grow",
     .store = "x.slc/",
     .replaces = true},
    {.name = "append, labelled",
     .arguments = "append x.slc ../in/t.tns -t 2 --memory 256MiB --labels 1=../in/names.map",
     .before = "to-grow",
     .store = "x.slc/",
     .replaces = true},
    {.name = "slice",
     .arguments = "slice ../in/sorted.slc out.slc --mode 1=3..40 --transform log1p -t 2 "
                  "--memory 256MiB",
     .store = "out.slc/"},
    {.name = "permute",
     .arguments = "permute ../in/plain.slc out.slc --order 3,1,2 -f -t 2 --relabel frequency "
                  "--memory 256MiB",
     .before = "with-old",
     .store = "out.slc/",
     .replaces = true},
    PRINTS("check", "check ../in/real.slc -t 2"),
    {.name = "check, damaged",
     .arguments = "check ../in/sorted.slc -t 2",
     .replaces = true,
     .code = 5},
    {.name = "cpd", .arguments = CPD_SAVING, .replaces = true},
    {.name = "cpd, pread", .arguments = CPD_SAVING " --io pread", .replaces = true},
    {.name = "cpd, mmap", .arguments = CPD_SAVING " --io mmap", .replaces = true},
    {.name = "cpd, resumed",
     .arguments = CPD_SAVING,
     .before = "half-factored",
     .replaces = true,
     .resumes = true},
    {.name = "cpd, two modes in a pass",
     .arguments = CPD_SAVING " --passes fused",
     .replaces = true},
    {.name = "cpd, devices", .arguments = CPD_SAVING " --devices 2", .replaces = true},
    {.name = "cpd, other outputs",
     .arguments = CPD "--ktensor k.txt -s stem --log-json log.json --init ../in/factors",
     .replaces = true},
    {.name = "cpd, a sweep",
     .arguments = CPD "-r 1,2 --runs 2 --keep all -i 1 -o out --checkpoint-interval 0 "
                      "--io pread",
     .replaces = true},
    {.name = "predict",
     .arguments = "predict ../in/factors ../in/t.tns -o p.csv -t 2",
     .replaces = false},
    {.name = "predict, numbers",
     .arguments = "predict ../in/factors ../in/t.tns.gz -o p.npy -t 2 -f",
     .replaces = true},
    {.name = "predict, a store",
     .arguments = "predict ../in/factors ../in/sorted.slc -o p.csv -t 2"},
    {.name = "predict, a table",
     .arguments = "predict ../in/of-table ../in/table.csv -o p.csv -t 2 -f",
     .replaces = true},
    PRINTS("residuals", "residuals ../in/factors ../in/sorted.slc -n 3 -t 2 --io pread"),
    PRINTS("residuals --json", "residuals ../in/of-table --json -n 3 -t 2"),
    PRINTS("compare", "compare ../in/factors ../in/factors"),
    PRINTS("compare --json", "compare ../in/of-table ../in/of-table --json"),
    {.name = "mttkrp",
     .arguments = "mttkrp ../in/sorted.slc --mode 1 --factors ../in/factors -o m.npy -t 2 "
                  "--deterministic --io pread",
     .replaces = true},
    {.name = "ttv",
     .arguments = "ttv ../in/plain.slc --mode 2 --vector ../in/v2.npy out.slc -t 2",
     .store = "out.slc/"},
    {.name = "ttv, sorting",
     .arguments = "ttv ../in/plain.slc --mode 2 --vector ../in/v2.npy out.slc -t 2 --sort -f "
                  "--io mmap",
     .before = "with-old",
     .store = "out.slc/",
     .replaces = true},
    {.name = "ttv, a part",
     .arguments = "ttv ../in/plain.slc --mode 2 --vector ../in/v2.npy out.slc -t 2 --part 2/3",
     .store = "out.slc/"},
    {.name = "join, stores",
     .arguments = "join ../in/part1.slc ../in/part2.slc out.slc -t 2 --memory 256MiB",
     .store = "out.slc/"},
    {.name = "join, fibers", .arguments = "join ../in/part1 ../in/part2 out", .replaces = true},
    PRINTS("ttv, a number",
           "ttv ../in/plain.slc --mode 1 --vector ../in/v1.npy --mode 2 --vector "
           "../in/v2.npy --mode 3 --vector ../in/v3.npy -t 2 --io pread"),
    {.name = "ttm",
     .arguments = "ttm ../in/real.slc --mode 2 --matrix ../in/u.npy out -t 2",
     .replaces = true},
    {.name = "ttm, a part",
     .arguments = "ttm ../in/real.slc --mode 2 --matrix ../in/u.npy out -t 2 --part 2/2",
     .replaces = true},
    {.name = "ttm, sorting",
     .arguments = "ttm ../in/plain.slc --mode 2 --matrix ../in/v2.npy out -t 2 --io mmap",
     .replaces = true},
    {.name = "export", .arguments = "export ../in/plain.slc out.tns -t 2"},
    {.name = "export, lists", .arguments = "export ../in/plain.slc out.bin -t 2"},
    {.name = "export, sorted", .arguments = "export ../in/plain.slc out.npz -t 2"},
    {.name = "export, a run", .arguments = "export ../in/factors out.mat"},
    {.name = "export, a run as text", .arguments = "export ../in/factors out.ktensor"},
    {.name = "export, a run as tables",
     .arguments = "export ../in/factors out --format csv -f",
     .replaces = true},
    {.name = "export, a run as new tables", .arguments = "export ../in/factors out --format csv"},
    PRINTS("top", "top ../in/factors -n 3"),
    PRINTS("top --json", "top ../in/factors --json -c 2,1"),
    {.name = "report", .arguments = "report ../in/factors -o r.html -n 3"},
    {.name = "report, a sweep", .arguments = "report ../in/swept -o r.html"},
    {.name = "report, a checkpoint",
     .arguments = "report ../half-factored/out -o r.html -f",
     .replaces = true},
    PRINTS("info", "info ../in/sorted.slc"),
    PRINTS("info --json", "info ../in/sorted.slc --json"),
    PRINTS("info, a checkpoint", "info ../half-factored/out"),
    {.name = "plan, convert",
     .arguments = "convert ../in/t.tns.gz out.slc -t 2 --memory 256MiB --dry-run"},
    {.name = "plan, check",
     .arguments = "check ../in/real.slc -t 2 --dry-run --no-probe",
     .replaces = true},
    {.name = "plan, export",
     .arguments = "export ../in/plain.slc out.tns -t 2 --memory 256MiB --dry-run --no-probe",
     .replaces = true},
    {.name = "plan, append",
     .arguments = "append ../in/real.slc ../in/t.tns.gz --memory 256MiB --dry-run --no-probe",
     .replaces = true},
    {.name = "plan, slice",
     .arguments = "slice ../in/real.slc out.slc --mode 1=2.. --memory 256MiB --dry-run --no-probe",
     .replaces = true},
    {.name = "plan, export to .npz",
     .arguments = "export ../in/plain.slc out.npz -t 2 --memory 256MiB --dry-run --no-probe",
     .replaces = true},
    {.name = "plan, export of a run",
     .arguments = "export ../in/factors out.ktensor --memory 256MiB --dry-run --no-probe",
     .replaces = true},
    {.name = "plan",
     .arguments = "plan ../in/sorted.slc -r 3 --memory 256MiB --json",
     .replaces = true},
};

/* Sweeps all cases whose names start with `name`; SLC_TEST_CASE selects those that contain it. */
static void sweep_cases(const char *name)
{
    const char *part = getenv("SLC_TEST_CASE");

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        if (strncmp(cases[i].name, name, strlen(name)) == 0 &&
            (part == NULL || strstr(cases[i].name, part) != NULL)) {
            sweep(&cases[i], fault_inputs());
        }
    }
}

static void test_convert(void)
{
    sweep_cases("convert");
}

static void test_generate(void)
{
    sweep_cases("generate");
}

static void test_layout(void)
{
    sweep_cases("layout");
}

/* Commands that make a store from another store. */
static void test_grow(void)
{
    sweep_cases("append");
    sweep_cases("slice");
    sweep_cases("permute");
}

static void test_check(void)
{
    sweep_cases("check");
}

static void test_cpd(void)
{
    sweep_cases("cpd");
}

/* The options of cpd for every method, and for further losses and layouts. I/O methods vary. */
static const struct {
    const char *name, *options;
} methods[] = {
    {"hals", "--nonnegative --l1 2=1 --bounds 1=0,5 --io pread"},
    {"admm", "--smooth 1=1 --simplex=2 --nonnegative=3 --io mmap"},
    {"mu", "--loss poisson --method mu"},
    {"pdnr", "--loss poisson --method pdnr --io pread"},
    {"completion als", "--observed --method als --holdout 10% --io mmap"},
    {"ccd", "--observed --method ccd --holdout 10% --io pread"},
    {"newton huber", "--observed --loss huber --holdout 10%"},
    {"newton bernoulli", "../in/bits.slc --observed --loss bernoulli --io mmap"},
    {"newton gamma", "--observed --loss gamma --io pread"},
    {"newton poisson", "--observed --loss poisson --layouts blco --io mmap"},
    {"mu, blco", "--loss poisson --method mu --layouts blco --io pread"},
    {"completion als, blco", "--observed --method als --layouts blco"},
};
/* The short form runs only this number of methods, each either from the start or resumed. */
enum { METHODS_SHORT = 8 };

/* Every method from the start, and resumed. */
static void test_methods(void)
{
    const char *part = getenv("SLC_TEST_CASE");

    for (size_t i = 0; i < 2 * SLC_COUNT(methods); i++) {
        const bool resumes = i % 2 == 1;
        const char *options = methods[i / 2].options;
        char name[64], arguments[512], before[64];
        const struct sweep_case swept = {.name = name,
                                         .arguments = arguments,
                                         .before = resumes ? before : NULL,
                                         .replaces = true,
                                         .resumes = resumes};

        (void)snprintf(name, sizeof name, "%s%s", methods[i / 2].name, resumes ? ", resumed" : "");
        (void)snprintf(before, sizeof before, "half-%zu", i);
        (void)snprintf(arguments, sizeof arguments, "%s %s%s", CPD_METHOD,
                       options[0] == '-' ? "../in/sorted.slc " : "", options);
        if (part != NULL ? strstr(name, part) != NULL
                         : slc_test_full() ||
                               (i / 2 < METHODS_SHORT && (i / 2 + slc_test_seed() + i) % 2 == 0)) {
            fault_inputs();
            if (resumes) {
                fault_inputs_left(before, arguments);
            }
            sweep(&swept, fault_inputs());
        }
    }
}

static void test_mttkrp(void)
{
    sweep_cases("mttkrp");
}

static void test_ttv(void)
{
    sweep_cases("ttv");
    sweep_cases("join");
}

static void test_ttm(void)
{
    sweep_cases("ttm");
}

static void test_export(void)
{
    sweep_cases("export");
}

static void test_predict(void)
{
    sweep_cases("predict");
}

static void test_residuals(void)
{
    sweep_cases("residuals");
    sweep_cases("compare");
}

static void test_top(void)
{
    sweep_cases("top");
}

static void test_report(void)
{
    sweep_cases("report");
}

static void test_info(void)
{
    sweep_cases("info");
    sweep_cases("plan");
}

int __wrap_main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"convert", test_convert},
        {"generate", test_generate},
        {"layout", test_layout},
        {"append, slice and permute", test_grow},
        {"check", test_check},
        {"cpd", test_cpd},
        {"methods", test_methods},
        {"predict", test_predict},
        {"residuals and compare", test_residuals},
        {"mttkrp", test_mttkrp},
        {"ttv", test_ttv},
        {"ttm", test_ttm},
        {"export", test_export},
        {"top", test_top},
        {"report", test_report},
        {"info and plan", test_info},
    };

    return slc_test_main("faults", tests, SLC_COUNT(tests), argc, argv);
}
