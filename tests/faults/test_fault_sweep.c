/* Lets every operation of every command fail once; sweep.h lists the checks. The inputs are small,
 * but have several blocks and partitions. */
#include "base/topology/topology.h"
#include "faulty_command.h"
#include "file_tree.h"
#include "make_sorted.h"
#include "make_store.h"
#include "slc_test.h"
#include "storage/model/npy.h"
#include "sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* The linker substitutes this main for the command's (faulty_command.c). */
int __wrap_main(int argc, char **argv);

enum {
    PATH_BYTES = 512,
    WORDS_BYTES = 256,
    BLOCK_BYTES = 4096,
    TILE_NNZ = 900,
    PARTITION_NNZ = 1500
};

static const uint64_t dims[] = {60, 40, 30};
static char inputs[PATH_BYTES]; /* the folder of the inputs */
static const char *folder;

/* A path in the folder of the test, or in that of the inputs. */
static const char *beside(const char *name)
{
    static char path[2 * PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *input(const char *name)
{
    static char path[2 * PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", inputs, name);
    return path;
}

/* Runs a command in the folder of the inputs without a fault. */
static void prepare(const char *arguments)
{
    static struct command_end end;

    command_run(inputs, arguments, NULL, 0, &end);
    if (!end.finished || end.code != 0) {
        printf("Bail out! sluice %s: %d: %s\n", arguments, end.code, end.said);
        exit(EXIT_FAILURE);
    }
}

static void make_stores(void)
{
    struct slc_made_tensor tensor = {.order = 0};
    struct slc_error err = SLC_ERROR_INIT;

    slc_made_tensor_create(&tensor, 3, dims, 4000, SLC_MADE_COUNTS, 1);
    tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, input("plain.slc"), SLC_CODEC_PACKED,
                                       BLOCK_BYTES, &err),
                  &err);
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, input("sorted.slc"), SLC_CODEC_PACKED,
                                       BLOCK_BYTES, &err),
                  &err);
    for (unsigned mode = 0; mode < 3; mode++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&tensor, input("sorted.slc"), mode, PARTITION_NNZ,
                                                SLC_CODEC_PACKED, BLOCK_BYTES, &err),
                      &err);
    }
    slc_made_tensor_destroy(&tensor);
}

static void make_vector(const char *name, unsigned count)
{
    double values[200];
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned i = 0; i < count; i++) {
        values[i] = i % 5;
    }
    SLC_ASSERT_OK(slc_npy_write_vector(NULL, input(name), values, count, &err), &err);
}

/* Names of 60 indices, one per line. */
static void make_names(const char *name)
{
    FILE *file = fopen(input(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (unsigned i = 0; i < 60; i++) {
        fprintf(file, "name %u\n", i);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* A table of 300 rows, for the columns who, int(k) and the value n. */
static void make_table(const char *name)
{
    FILE *file = fopen(input(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fprintf(file, "who,k,n\n");
    for (unsigned i = 0; i < 300; i++) {
        fprintf(file, "name %u,%u,%u\n", i * 7 % 40, i % 9, i % 5 + 1);
    }
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Creates a folder next to the inputs with a copy of the store `store`, named `as`. */
static void make_folder_with(const char *name, const char *store, const char *as)
{
    file_tree_copy(NULL, beside(name));
    file_tree_copy(input(store), beside(as));
}

/* A binary tensor of SPLATT with indices of 4 bytes and values of 8, one list after the other. */
static void make_binary(const char *name, uint32_t nnz)
{
    const uint32_t head[] = {
        0, 4, 0, 8, 0, 3, (uint32_t)dims[0], (uint32_t)dims[1], (uint32_t)dims[2], nnz};
    FILE *file = fopen(input(name), "wb");
    bool sound;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    sound = fwrite(head, sizeof head, 1, file) == 1;
    for (unsigned m = 0; m < 3; m++) {
        for (uint32_t i = 0; i < nnz; i++) {
            uint32_t index = (i * 7919 + i / 13 * m) % (uint32_t)dims[m];

            sound = sound && fwrite(&index, sizeof index, 1, file) == 1;
        }
    }
    for (uint32_t i = 0; i < nnz; i++) {
        double value = i % 9 + 1;

        sound = sound && fwrite(&value, sizeof value, 1, file) == 1;
    }
    CU_ASSERT_TRUE_FATAL(fclose(file) == 0 && sound);
}

static void
make_array(const char *name, const char *type, const char *shape, const void *items, size_t bytes)
{
    char text[128];
    uint8_t head[10] = "\x93NUMPY\x01";
    FILE *file = fopen(input(name), "wb");
    int length = snprintf(text, sizeof text,
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s}\n", type, shape);
    bool sound;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    head[8] = (uint8_t)length;
    sound = fwrite(head, sizeof head, 1, file) == 1 && fwrite(text, (size_t)length, 1, file) == 1 &&
            fwrite(items, bytes, 1, file) == 1;
    CU_ASSERT_TRUE_FATAL(fclose(file) == 0 && sound);
}

/* The arrays of a tensor, and the .npz file that pydata/sparse would save. */
static void make_arrays(void)
{
    static uint16_t coords[3][1000];
    static double values[1000];
    const uint64_t zero = 0;
    const char *const names[] = {"coords.npy", "data.npy", "shape.npy", "fill_value.npy"};
    zip_t *archive = zip_open(input("t.npz"), ZIP_CREATE | ZIP_TRUNCATE, NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(archive);
    for (uint32_t i = 0; i < 1000; i++) {
        for (unsigned m = 0; m < 3; m++) {
            coords[m][i] = (uint16_t)((i * 7919 + i / 13 * m) % (uint32_t)dims[m]);
        }
        values[i] = i % 9 + 1;
    }
    make_array("coords.npy", "<u2", "(3, 1000)", coords, sizeof coords);
    make_array("data.npy", "<f8", "(1000,)", values, sizeof values);
    make_array("shape.npy", "<u8", "(3,)", dims, sizeof dims);
    make_array("dense.npy", "<f8", "(5, 10, 20)", values, sizeof values);
    make_array("fill_value.npy", "<f8", "()", &zero, sizeof zero);
    for (unsigned i = 0; i < 4; i++) {
        CU_ASSERT_FATAL(zip_file_add(archive, names[i],
                                     zip_source_file(archive, input(names[i]), 0, -1), 0) >= 0);
    }
    CU_ASSERT_EQUAL_FATAL(zip_close(archive), 0);
}

static void compress(const char *name)
{
    char command[4 * PATH_BYTES];

    (void)snprintf(command, sizeof command, "gzip -k %s", input(name));
    CU_ASSERT_EQUAL_FATAL(system(command), 0); // NOLINT(cert-env33-c): the name is made here
}

/* Leaves the folder `name` as a run does for which every operation of `kind` fails from the
 * `k`-th on. */
static void leave(const char *name, const char *arguments, unsigned kind, uint64_t k)
{
    const struct command_fault fault = {
        .kind = kind, .action = SLC_FAULTY_ERRNO, .error = EIO, .from_then = true};
    static struct command_end end;

    command_run(beside(name), arguments, &fault, k, &end);
    if (!end.finished || end.code != 5) {
        printf("Bail out! sluice %s: %d: %s\n", arguments, end.code, end.said);
        exit(EXIT_FAILURE);
    }
}

/* Does the same as leave, in a new empty folder. */
static void prepare_left(const char *name, const char *arguments, unsigned kind, uint64_t k)
{
    file_tree_copy(NULL, beside(name));
    leave(name, arguments, kind, k);
}

#define CONVERT_COMMITTING                                                                         \
    "convert ../in/t.tns out.slc -t 2 --checkpoint-interval 0.001 --memory 256MiB"
#define CONVERT_REPLACING CONVERT_COMMITTING " -f"
#define CPD               "cpd ../in/sorted.slc -r 3 -i 2 --tol 0 --deterministic -t 2 --no-cache "
#define CPD_SAVING        CPD "-o out --checkpoint-interval 0"

#if defined(__SANITIZE_ADDRESS__)
/* AddressSanitizer may retain little freed memory: it is resident and counts against the budget
 * of later commands. */
const char *__asan_default_options(void); // NOLINT(bugprone-reserved-identifier)
const char *__asan_default_options(void)  // NOLINT(bugprone-reserved-identifier)
{
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}
#endif

/* A conversion with the least memory that it says it needs, which depends on resident memory. */
static char spilling[WORDS_BYTES];

static void make_spilling(void)
{
    static const char command[] =
        "convert ../in/big.tns out.slc -t 1 --checkpoint-interval 0.01 --memory";
    static struct command_end end;
    const char *least;

    (void)snprintf(spilling, sizeof spilling, "%s 1MiB", command);
    command_run(inputs, spilling, NULL, 0, &end);
    least = strstr(end.said, " needs ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(least);
    /* Allow more memory than needed now: the resident memory of libraries varies. */
    (void)snprintf(spilling, sizeof spilling, "%s %luMiB", command,
                   strtoul(least + strlen(" needs "), NULL, 10) + 4);
}

static void make_inputs(void)
{
    /* Read the topology here, because that takes as long as a short run: children inherit it. */
    (void)slc_topology();
    folder = slc_test_folder();
    (void)snprintf(inputs, sizeof inputs, "%s/in", folder);
    file_tree_copy(NULL, inputs);
    make_stores();
    make_names("names.map");
    make_vector("v1.npy", 60);
    make_vector("v2.npy", 40);
    make_vector("v3.npy", 30);
    make_vector("u.npy", 150);
    prepare("generate t.tns --dims 60x40x30 --nnz 3000 -q");
    compress("t.tns");
    make_binary("t.bin", 3000);
    compress("t.bin");
    make_arrays();
    prepare("generate zipf.tns --dims 600x400x300 --nnz 3000 --dist zipf-shuffled:1.5 -q");
    /* Does not fit in the smallest memory of a conversion. */
    prepare("generate big.tns --dims 3000x2000x1000 --nnz 400000 -q");
    make_spilling();
    /* More than one tile; a block has at least one tile, so there are several blocks. */
    prepare("generate real.slc --dims 200x150x100 --nnz 70000 --block-bytes 4KiB -q");
    prepare("generate old.slc --dims 6x4x3 --nnz 20 -q");
    prepare("cpd sorted.slc -r 3 -i 1 --tol 0 -o factors -q --io pread");
    make_table("table.csv");
    prepare("convert table.csv table.slc --columns who,int(k) --value n -q");
    prepare("cpd table.slc -r 2 -i 1 --tol 0 -o of-table -q --io pread");
    prepare("cpd old.slc -r 1,2 -i 1 --tol 0 -o swept -q --io pread");
    make_folder_with("with-old", "old.slc", "with-old/out.slc");
    make_folder_with("with-store", "real.slc", "with-store/x.slc");
    prepare("layout real.slc --sorted 1 --fiber 2 -q");
    make_folder_with("with-layouts", "real.slc", "with-layouts/x.slc");
    prepare_left("half-converted", CONVERT_COMMITTING, SLC_FAULTY_RENAME, 2);
    make_folder_with("complete", "old.slc", "complete/out.slc");
    leave("complete", CONVERT_REPLACING, SLC_FAULTY_EXCHANGE, 1);
    prepare("layout old.slc --sorted 1 --fiber 2 -q");
    make_folder_with("to-grow", "old.slc", "to-grow/x.slc");
    prepare_left("half-factored", CPD_SAVING, SLC_FAULTY_SYNC, 9);
}

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
    {.name = "convert, spilling", .arguments = spilling, .store = "out.slc/"},
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
    PRINTS("ttv, a number",
           "ttv ../in/plain.slc --mode 1 --vector ../in/v1.npy --mode 2 --vector "
           "../in/v2.npy --mode 3 --vector ../in/v3.npy -t 2 --io pread"),
    {.name = "ttm",
     .arguments = "ttm ../in/real.slc --mode 2 --matrix ../in/u.npy out -t 2",
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

    if (folder == NULL) {
        make_inputs();
    }
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        if (strncmp(cases[i].name, name, strlen(name)) == 0 &&
            (part == NULL || strstr(cases[i].name, part) != NULL)) {
            sweep(&cases[i], folder);
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

static void test_mttkrp(void)
{
    sweep_cases("mttkrp");
}

static void test_ttv(void)
{
    sweep_cases("ttv");
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
