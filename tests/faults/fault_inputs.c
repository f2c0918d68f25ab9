/* Creates the inputs of the fault sweeps. */
#include "fault_inputs.h"

#include "base/topology/topology.h"
#include "faulty_command.h"
#include "file_tree.h"
#include "make_sorted.h"
#include "make_store.h"
#include "slc_test.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { PATH_BYTES = 512, BLOCK_BYTES = 4096, TILE_NNZ = 900, PARTITION_NNZ = 1500 };

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

/* 500 cells with the values 0 and 1. */
static void make_bits(const char *name)
{
    FILE *file = fopen(input(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (unsigned i = 0; i < 500; i++) {
        fprintf(file, "%u %u %u %u\n", i % 20 + 1, i / 20 + 1, i * 7 % 30 + 1, i * 7 / 5 % 2);
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

/* Runs `arguments` in the folder `name` so that every operation of `kind` fails from the `k`-th on.
 * What this run leaves in the folder is an input of the sweeps. */
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

/* Does the same as `leave`, in a new and empty folder `name`. */
static void prepare_left(const char *name, const char *arguments, unsigned kind, uint64_t k)
{
    file_tree_copy(NULL, beside(name));
    leave(name, arguments, kind, k);
}

char fault_spilling[256];

static void make_spilling(void)
{
    static const char command[] =
        "convert ../in/big.tns out.slc -t 1 --checkpoint-interval 0.01 --memory";
    static struct command_end end;
    const char *least;

    (void)snprintf(fault_spilling, sizeof fault_spilling, "%s 1MiB", command);
    command_run(inputs, fault_spilling, NULL, 0, &end);
    least = strstr(end.said, " needs ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(least);
    /* 4 MiB more than this run needs, because the resident memory of libraries varies between
     * runs. */
    (void)snprintf(fault_spilling, sizeof fault_spilling, "%s %luMiB", command,
                   strtoul(least + strlen(" needs "), NULL, 10) + 4);
}

void fault_inputs_left(const char *name, const char *arguments)
{
    prepare_left(name, arguments, SLC_FAULTY_SYNC, 9);
}

const char *fault_inputs(void)
{
    if (folder != NULL) {
        return folder;
    }
    /* Takes as long as a short run: children inherit the result. */
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
    /* The store has several blocks: a block has at least one tile, and this tensor has more. */
    prepare("generate real.slc --dims 200x150x100 --nnz 70000 --block-bytes 4KiB -q");
    prepare("generate old.slc --dims 6x4x3 --nnz 20 -q");
    prepare("cpd sorted.slc -r 3 -i 1 --tol 0 -o factors -q --io pread");
    make_bits("bits.tns");
    prepare("convert bits.tns bits.slc --keep-zeros -q");
    prepare("layout bits.slc --sorted all -q");
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
    prepare("ttv plain.slc --mode 2 --vector v2.npy part1.slc --part 1/2 -q");
    prepare("ttv plain.slc --mode 2 --vector v2.npy part2.slc --part 2/2 -q");
    prepare("ttm real.slc --mode 2 --matrix u.npy part1 --part 1/2 -q");
    prepare("ttm real.slc --mode 2 --matrix u.npy part2 --part 2/2 -q");
    prepare("layout old.slc --sorted 1 --fiber 2 -q");
    make_folder_with("to-grow", "old.slc", "to-grow/x.slc");
    fault_inputs_left("half-factored", CPD_SAVING);
    return folder;
}
