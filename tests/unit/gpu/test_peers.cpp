/* Several devices of gpu/ with one problem, on one emulated device or on several: each multiplies
 * some of the blocks, and rows are summed by their owners, solved for and passed on. The result
 * equals that of one device, bitwise if deterministic. */
#include "device_fixture.h"

extern "C" {
#include "../cpu/dense_fixture.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

static const struct slc_device_ops *ops_of(const device_run *run)
{
    return run->device->ops;
}

static void assert_ok(device_run *run, enum slc_status status)
{
    SLC_ASSERT_OK(status, &run->err);
}

/* Devices that share a problem. */
struct device_group {
    std::vector<std::unique_ptr<device_run>> runs;

    device_group(const device_tensor &tensor, const device_case &how, size_t count, bool any)
    {
        for (size_t d = 0; d < count; d++) {
            device_case own = how;

            own.seed += (unsigned)d;
            runs.emplace_back(new device_run(tensor, own, any));
        }
    }
    size_t count(void) const
    {
        return runs.size();
    }
    /* Whole units of `unit` rows, as evenly as possible. */
    std::vector<slc_row_span> units(size_t d, uint64_t rows, uint64_t unit) const
    {
        std::vector<slc_row_span> own;

        for (uint64_t u = 0; u * unit < rows; u++) {
            if (u % count() == d) {
                own.push_back({u * unit, std::min((u + 1) * unit, rows)});
            }
        }
        return own;
    }
    void mttkrp(unsigned mode, uint64_t rows, uint64_t unit)
    {
        for (size_t d = 0; d < count(); d++) {
            assert_ok(runs[d].get(), runs[d]->mttkrp(mode, d, count()));
        }
        for (size_t d = 0; d < count(); d++) {
            const std::vector<slc_row_span> own = units(d, rows, unit);

            for (size_t e = 0; e < count(); e++) {
                if (e != d) {
                    assert_ok(runs[d].get(),
                              ops_of(runs[d].get())
                                  ->algebra.output_add(runs[d]->device, runs[e]->device, own.data(),
                                                       own.size(), &runs[d]->err));
                }
            }
        }
    }
    /* The output, with rows from their owners. */
    std::vector<double> output(unsigned mode, uint64_t unit)
    {
        const uint64_t rows = runs[0]->tensor.dims[mode], rank = runs[0]->how.rank;
        std::vector<double> all;
        struct slc_matrix matrix;

        assert_ok(runs[0].get(),
                  slc_matrix_create(&matrix, SLC_F64, rows, (uint32_t)rank, &runs[0]->err));
        for (size_t d = 0; d < count(); d++) {
            const std::vector<slc_row_span> own = units(d, rows, unit);

            assert_ok(runs[d].get(), ops_of(runs[d].get())
                                         ->algebra.output_rows(runs[d]->device, own.data(),
                                                               own.size(), &matrix, &runs[d]->err));
        }
        for (uint64_t i = 0; i < rows * rank; i++) {
            all.push_back(slc_matrix_get(&matrix, i / rank, (uint32_t)(i % rank)));
        }
        slc_matrix_destroy(&matrix);
        return all;
    }
};

static void open_group(device_group *group, const device_emulation &emulation)
{
    for (size_t d = 0; d < group->count(); d++) {
        assert_ok(group->runs[d].get(), group->runs[d]->open((unsigned)(d % emulation.devices)));
    }
}

/* Integers: sums are exact for any distribution of blocks. */
static void outputs(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS,
                               slc_test_threads_only() ? 600 : 2500, 200);
    static const device_case cases[] = {
        {2, 1, 1, 7, SLC_F64, false, 4, 50},
        {1, 2, 0, 5, SLC_F32, false, 6, 50},
        {2, 1, 3, 9, SLC_F32, true, 8, 50},
    };

    for (size_t c = slc_test_threads_only() ? 1 : 0; c < SLC_COUNT(cases); c++) {
        for (int emulated = 1; emulated <= 3; emulated += 2) {
            if (slc_test_threads_only() && (emulated == 1) != (c == 1)) {
                continue;
            }
            const device_emulation emulation((unsigned)c + 1, emulated);
            device_group group(tensor, cases[c], 2 + c, false);

            open_group(&group, emulation);
            for (unsigned mode = 0; mode < 2; mode++) {
                group.mttkrp(mode, tensor.dims[mode], 6);
                CU_ASSERT(group.output(mode, 6) == group.runs[0]->expected(mode));
            }
            CU_ASSERT(group.runs[0]->stats().bytes_from_devices > 0);
        }
    }
}

/* Any numbers: the bits of one device, and of its solution. */
struct solution {
    std::vector<double> output, columns, gram, factor;
};

static struct slc_solver solver_for(uint32_t rank)
{
    struct slc_dense *dense = dense_for(1, rank, 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_solver solver = {};
    std::vector<double> v((size_t)rank * rank), ones(rank, 1.0);

    regular_gram(rank, v.data());
    SLC_ASSERT_OK(slc_solver_create(&solver, rank, &err), &err);
    SLC_ASSERT_OK(slc_dense_factorize(dense, v.data(), ones.data(), ones.data(), &solver, &err),
                  &err);
    slc_dense_destroy(dense);
    return solver;
}

/* Solves for rows at their owners, passes them around, and copies every factor back. */
static void solve(device_group *group, unsigned mode, uint64_t unit, solution *found)
{
    device_run *first = group->runs[0].get();
    const uint64_t rows = first->tensor.dims[mode];
    const uint32_t rank = first->how.rank;
    struct slc_solver solver = solver_for(rank);

    found->columns.assign((rows + unit - 1) / unit * 2 * rank, -1.0);
    for (size_t d = 0; d < group->count(); d++) {
        const std::vector<slc_row_span> own = group->units(d, rows, unit);
        const struct slc_device_units units = {own.data(), (uint32_t)own.size(), unit};
        std::vector<double> columns(own.size() * 2 * rank);
        device_run *run = group->runs[d].get();

        assert_ok(run, ops_of(run)->algebra.update_units(run->device, mode, &solver, &units,
                                                         columns.data(), &run->err));
        for (size_t u = 0; u < own.size(); u++) {
            std::copy_n(&columns[u * 2 * rank], 2 * rank,
                        &found->columns[own[u].first / unit * 2 * rank]);
        }
    }
    for (size_t step = 1; step < group->count(); step++) {
        for (size_t d = 0; d < group->count(); d++) {
            const size_t before = (d + group->count() - 1) % group->count();
            const size_t owner = (d + group->count() - step) % group->count();
            const std::vector<slc_row_span> own = group->units(owner, rows, unit);
            device_run *run = group->runs[d].get();

            assert_ok(run, ops_of(run)->algebra.factor_copy(run->device, mode,
                                                            group->runs[before]->device, own.data(),
                                                            own.size(), &run->err));
        }
    }
    found->gram.resize((size_t)rank * rank);
    for (size_t d = 0; d < group->count(); d++) {
        device_run *run = group->runs[d].get();
        struct slc_matrix *factor = &run->factors[mode]->matrix;
        std::vector<double> all;

        assert_ok(run, ops_of(run)->algebra.gram(run->device, mode, found->gram.data(), &run->err));
        assert_ok(run, ops_of(run)->memory.factor_read(run->device, mode, factor, &run->err));
        for (uint64_t i = 0; i < rows * rank; i++) {
            all.push_back(slc_matrix_get(factor, i / rank, (uint32_t)(i % rank)));
        }
        CU_ASSERT(d == 0 || all == found->factor);
        found->factor = all;
    }
    slc_solver_destroy(&solver);
}

static bool same_bits(const std::vector<double> &a, const std::vector<double> &b)
{
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

static void deterministic(void)
{
    const device_tensor tensor(SLC_CODEC_BLCO, SLC_MADE_DOUBLES,
                               slc_test_threads_only() ? 300 : 1500, 100);
    const uint64_t unit = tensor.dims[1] / 30 + 1;
    solution one;

    for (size_t count = 1; count <= 4; count *= slc_test_threads_only() ? 4 : 2) {
        const device_emulation emulation((unsigned)count, count == 2 ? 1 : (int)count);
        const device_case how = {2, 2, 1, 9, SLC_F64, true, (unsigned)count, 40};
        device_group group(tensor, how, count, true);
        solution found;

        open_group(&group, emulation);
        group.mttkrp(1, tensor.dims[1], unit);
        found.output = group.output(1, unit);
        group.mttkrp(1, tensor.dims[1], unit);
        solve(&group, 1, unit, &found);
        if (count == 1) {
            one = found;
            continue;
        }
        CU_ASSERT(same_bits(one.output, found.output));
        CU_ASSERT(same_bits(one.columns, found.columns));
        CU_ASSERT(same_bits(one.gram, found.gram));
        CU_ASSERT(same_bits(one.factor, found.factor));
    }
}

/* A column to which one device could not add a term is NaN on all. */
static void not_finite(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1500, 100);
    const device_emulation emulation(3, 2);
    device_group group(tensor, {1, 1, 0, 4, SLC_F64, true, 2, 50}, 2, false);

    for (std::unique_ptr<device_run> &run : group.runs) {
        /* Few blocks have the row; its products overflow f64, and no bound shows it. */
        for (uint64_t i = 0; i < tensor.dims[1]; i++) {
            slc_matrix_set(&run->factors[1]->matrix, i, 2, 1e200);
        }
        slc_matrix_set(&run->factors[2]->matrix, tensor.encoded.coo.coords[2][0], 2, 1e200);
    }
    open_group(&group, emulation);
    group.mttkrp(0, tensor.dims[0], 5);

    const std::vector<double> rows = group.output(0, 5);
    uint64_t bad = 0;

    for (size_t i = 0; i < rows.size(); i++) {
        bad += std::isnan(rows[i]);
        CU_ASSERT(i % 4 == 2 || std::isfinite(rows[i]));
    }
    CU_ASSERT_EQUAL(bad, tensor.dims[0]);
}

/* ---- errors */

static void misuse(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 800, 200);
    const device_emulation emulation(1);
    const device_case how = {1, 1, 0, 3, SLC_F64, true, 2, 2};
    device_case lower = how, alone = how;
    const slc_row_span rows[] = {{0, 1}, {1, 2}, {2, 3}};
    const struct slc_device_units units = {rows, 3, 1};
    struct slc_solver solver = solver_for(3);
    double columns[18];

    lower.rank = 2;
    alone.unit_most = 0;
    device_run run(tensor, how), other(tensor, how), low(tensor, lower), single(tensor, alone);

    assert_ok(&run, run.open());
    assert_ok(&other, other.open());
    assert_ok(&low, low.open());
    assert_ok(&single, single.open());
    const struct slc_device_ops *ops = ops_of(&run);
    const auto refused = [&](enum slc_status status, const char *part) {
        SLC_ASSERT_FAILS(status, SLC_ERR_USAGE, &run.err, part);
        slc_error_clear(&run.err);
    };

    refused(ops->algebra.factor_copy(run.device, 0, run.device, rows, 1, &run.err),
            "opened for different problems");
    refused(ops->algebra.factor_copy(run.device, 0, low.device, rows, 1, &run.err),
            "opened for different problems");
    refused(ops->algebra.factor_copy(single.device, 0, run.device, rows, 1, &run.err),
            "opened for different problems");
    refused(ops->algebra.factor_copy(run.device, 3, other.device, rows, 1, &run.err), "mode 3");
    refused(ops->algebra.output_add(run.device, other.device, rows, 1, &run.err),
            "outputs of the same mode");
    assert_ok(&run, run.mttkrp(0));
    assert_ok(&other, other.mttkrp(1));
    refused(ops->algebra.output_add(run.device, other.device, rows, 1, &run.err),
            "outputs of the same mode");
    refused(ops->algebra.update_units(run.device, 0, &solver, &units, columns, &run.err),
            "3 units");
    refused(ops->algebra.update_units(run.device, 1, &solver, &units, columns, &run.err),
            "no output");

    /* An output that was read has no exact sums any more. */
    std::vector<double> seen;

    assert_ok(&other, other.mttkrp(0));
    assert_ok(&other, other.output(0, &seen));
    refused(ops->algebra.output_add(run.device, other.device, rows, 1, &run.err),
            "must not have been read yet");
    slc_solver_destroy(&solver);
}

#ifdef SLC_EMULATED
/* Any call of the runtime fails: it is reported, and nothing is left in progress. */
static void failures(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 300, 100);
    const device_emulation emulation(5, 2);
    const device_case how = {1, 1, 0, 3, SLC_F64, true, 2, 50};
    device_group group(tensor, how, 2, false);
    device_run *run = group.runs[0].get();
    struct slc_solver solver = solver_for(3);
    const slc_row_span rows = {0, tensor.dims[0]};
    const struct slc_device_units units = {&rows, 1, rows.end};
    double columns[6];

    open_group(&group, emulation);
    for (unsigned step = 0; step < 3; step++) {
        enum slc_status status = SLC_ERR_SYSTEM;
        unsigned k;

        for (k = 1; status != SLC_OK; k += slc_test_threads_only() ? 3 : 1) {
            assert_ok(run, run->mttkrp(0, 0, 2));
            assert_ok(group.runs[1].get(), group.runs[1]->mttkrp(0, 1, 2));
            slc_emulation_refuse(k);
            status = step == 0 ? ops_of(run)->algebra.output_add(run->device, group.runs[1]->device,
                                                                 &rows, 1, &run->err)
                     : step == 1 ? ops_of(run)->algebra.update_units(run->device, 0, &solver,
                                                                     &units, columns, &run->err)
                                 : ops_of(run)->algebra.factor_copy(
                                       run->device, 0, group.runs[1]->device, &rows, 1, &run->err);
            slc_emulation_refuse(0);
            CU_ASSERT(status == SLC_OK || run->err.status == status);
            slc_error_clear(&run->err);
        }
        CU_ASSERT(k > 2);
    }
    slc_solver_destroy(&solver);
}
#endif

static const struct slc_test tests[] = {
    {"outputs added up", outputs},
    {"the bits of one device", deterministic},
    {"values that are not finite", not_finite},
    {"misuse", misuse},
#ifdef SLC_EMULATED
    {"any call of the runtime fails", failures},
#endif
};

SLC_SUITE(peers)
{
    return slc_test_main("devices that share a problem", tests, SLC_COUNT(tests), argc, argv);
}
