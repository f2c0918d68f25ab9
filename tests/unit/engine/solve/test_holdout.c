/* Held-out nonzeros: about the requested fraction, independent of tiles, for either value type;
 * masked in a copy; and the error of a model on them. */
#include "engine/solve/held.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cp_fixture.h"
#include "engine/stream/stream.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, RANK = 4, NNZ = 40000 };
static const uint64_t dims[MODES] = {300, 200, 100};

/* A tile of one chunk, of consecutive coordinates from a corner. */
struct flat {
    struct slc_tile_view tile;
    uint32_t offset[MODES][SLC_HOLDOUT_CHUNK_NNZ];
    double values[SLC_HOLDOUT_CHUNK_NNZ];
    float singles[SLC_HOLDOUT_CHUNK_NNZ];
    struct slc_chunk_view chunk;
};

/* Makes nonzeros at (first + i, 7, 2 i), with any corner. */
static void make_flat(struct flat *flat, uint64_t first, uint64_t corner, enum slc_value_type type)
{
    memset(flat, 0, sizeof *flat);
    flat->tile.order = MODES;
    flat->tile.value_type = type;
    flat->tile.corner[0] = corner;
    flat->tile.corner[1] = 7;
    flat->chunk.nnz = SLC_HOLDOUT_CHUNK_NNZ;
    for (uint32_t i = 0; i < SLC_HOLDOUT_CHUNK_NNZ; i++) {
        flat->offset[0][i] = (uint32_t)(first - corner + i);
        flat->offset[2][i] = 2 * i;
        flat->values[i] = 1.0 + i;
        flat->singles[i] = 1.0F + (float)i;
    }
    for (unsigned n = 0; n < MODES; n++) {
        flat->chunk.offset[n] = flat->offset[n];
    }
    flat->chunk.values = type == SLC_F64 ? (const void *)flat->values : flat->singles;
}

static void masks_a_part_by_coordinates_alone(void)
{
    const struct slc_holdout holdout = slc_holdout_choose(0.25, 3);
    double room[2][SLC_HOLDOUT_CHUNK_NNZ + 8];
    struct flat *one = malloc(sizeof *one), *other = malloc(sizeof *other);
    unsigned masked = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    CU_ASSERT_PTR_NOT_NULL_FATAL(other);
    make_flat(one, 5000, 5000, SLC_F64);
    make_flat(other, 5000, 4321, SLC_F32);
    slc_holdout_mask(&holdout, &one->tile, &one->chunk, room[0]);
    slc_holdout_mask(&holdout, &other->tile, &other->chunk, room[1]);
    CU_ASSERT_PTR_EQUAL(one->chunk.values, room[0]);
    for (uint32_t i = 0; i < SLC_HOLDOUT_CHUNK_NNZ; i++) {
        const double value = ((const double *)one->chunk.values)[i];

        CU_ASSERT(value == 0.0 || value == 1.0 + i);
        CU_ASSERT_EQUAL((double)((const float *)other->chunk.values)[i], value);
        CU_ASSERT_EQUAL(one->values[i], 1.0 + i);
        masked += value == 0.0;
    }
    CU_ASSERT(masked > 150 && masked < 370);
    free(one);
    free(other);
}

/* Gathers the held-out nonzeros of a store, with `threads` threads. */
static void gather(const struct fixture_tensor *tensor,
                   const char *name,
                   uint64_t block_bytes,
                   unsigned threads,
                   struct slc_held *held)
{
    const struct slc_holdout holdout = slc_holdout_choose(0.1, 11);
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;
    char path[512];

    fixture_store(tensor, slc_test_folder(), name, SLC_CODEC_PACKED, block_bytes, path);
    request.threads = threads;
    SLC_ASSERT_OK(fixture_open(&run, path, &request, &err), &err);
    SLC_ASSERT_OK(slc_held_gather(run.stream, 0, &holdout, 0.1, MODES, run.store.manifest.nnz, NULL,
                                  held, &err),
                  &err);
    fixture_close(&run);
}

static void gathers_the_same_whatever_reads(void)
{
    struct fixture_tensor tensor;
    struct slc_held one, other;
    const uint64_t *records;
    double squares = 0.0;

    fixture_random(&tensor, MODES, dims, NNZ, slc_test_seed());
    for (unsigned t = 0; t < 3; t++) {
        tensor.tile_nnz[t] = 3000;
    }
    gather(&tensor, "one", 4096, 1, &one);
    gather(&tensor, "other", 65536, 3, &other);
    CU_ASSERT_EQUAL_FATAL(one.count, other.count);
    CU_ASSERT(one.count > NNZ / 12 && one.count < NNZ / 8);
    CU_ASSERT_EQUAL(
        memcmp(one.memory.data, other.memory.data, one.count * (MODES + 2) * sizeof(uint64_t)), 0);
    records = one.memory.data;
    for (uint64_t i = 0; i < one.count; i++, records += MODES + 2) {
        double value;

        memcpy(&value, &records[1], sizeof value);
        squares += value * value;
        CU_ASSERT(i == 0 || records[0] >= records[-(MODES + 2)]);
    }
    CU_ASSERT_DOUBLE_EQUAL(slc_squares_total(&one.squares), squares, 1e-9 * squares);
    slc_held_destroy(&one);
    slc_held_destroy(&other);
    fixture_destroy(&tensor);
}

static void evaluates_a_model(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_tensor tensor;
    struct slc_matrix factors[MODES];
    struct slc_held held;
    double weights[RANK] = {1.0, 0.5, 2.0, 0.0}, squares = 0.0, magnitudes = 0.0;
    struct slc_held_errors errors[2];
    const uint64_t *records;

    fixture_random(&tensor, MODES, dims, NNZ, slc_test_seed());
    gather(&tensor, "judged", 4096, 2, &held);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(
            slc_matrix_create(&factors[n], n == 1 ? SLC_F32 : SLC_F64, dims[n], RANK, &err), &err);
        for (uint64_t i = 0; i < dims[n]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_set(&factors[n], i, r, slc_random_f64(9, n, i * RANK + r));
            }
        }
    }
    records = held.memory.data;
    for (uint64_t i = 0; i < held.count; i++, records += MODES + 2) {
        double error;

        memcpy(&error, &records[1], sizeof error);
        for (uint32_t r = 0; r < RANK; r++) {
            double product = weights[r];
            for (unsigned n = 0; n < MODES; n++) {
                product *= slc_matrix_get(&factors[n], records[2 + n], r);
            }
            error -= product;
        }
        squares += error * error;
        magnitudes += fabs(error);
    }
    for (unsigned k = 0; k < 2; k++) {
        SLC_ASSERT_OK(
            slc_held_error(&held, factors, weights, SLC_LOSS_LS, 0.0, 1 + 2 * k, &errors[k], &err),
            &err);
    }
    CU_ASSERT_DOUBLE_EQUAL(errors[0].rmse, sqrt(squares / (double)held.count), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(errors[0].mae, magnitudes / (double)held.count, 1e-12);
    CU_ASSERT_EQUAL(errors[0].rmse, errors[1].rmse);
    CU_ASSERT_EQUAL(errors[0].mae, errors[1].mae);
    /* Errors whose squares underflow or overflow. */
    for (unsigned k = 0; k < 2; k++) {
        const double scale = k == 0 ? 0x1p-560 : 0x1p560;
        uint64_t *record = held.memory.data;

        for (uint64_t i = 0; i < held.count; i++, record += MODES + 2) {
            double value;

            memcpy(&value, &record[1], sizeof value);
            value = k == 0 ? value * scale : value * scale * scale;
            memcpy(&record[1], &value, sizeof value);
        }
        for (uint32_t r = 0; r < RANK; r++) {
            weights[r] = k == 0 ? weights[r] * scale : weights[r] * scale * scale;
        }
        SLC_ASSERT_OK(
            slc_held_error(&held, factors, weights, SLC_LOSS_LS, 0.0, 3, &errors[1], &err), &err);
        CU_ASSERT_DOUBLE_EQUAL(errors[1].rmse / scale, errors[0].rmse, 1e-12 * errors[0].rmse);
    }
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&factors[n]);
    }
    slc_held_destroy(&held);
    fixture_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"masks a part by coordinates alone", masks_a_part_by_coordinates_alone},
    {"gathers the same with any reader", gathers_the_same_whatever_reads},
    {"evaluates a model", evaluates_a_model},
};

SLC_SUITE(holdout)
{
    return slc_test_main("engine/holdout", tests, SLC_COUNT(tests), argc, argv);
}
