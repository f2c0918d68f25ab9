/*
 * Summary of `bench device` in the terms of the papers on MTTKRP (BLCO, AMPED, GenTen): times over
 * all modes, ratios to sluice, rates by a byte model, streaming, construction and several devices.
 *
 * Everything is computed from the JSON of the record. If a member is missing, the figures that need
 * it are null.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_SUMMARY_H
#define SLC_TOOLS_BENCH_DEVICE_SUMMARY_H

#include "tools/bench/measure/run.h"

/*
 * The byte model: the bytes per nonzero that an MTTKRP over N modes moves at rank R, with elements
 * of v bytes and sums of 8 bytes, if no cache helps:
 *
 *     (N - 1) R v   rows of factor matrices that are read
 *     + 8 R         the output row
 *     + b           the nonzero itself: coordinates and value, in the form that the kernel reads
 *
 * b is the member `form_bytes_per_nnz` of a row. Rates computed with this model exceed the ceiling
 * if rows are reused in caches or registers.
 */
double device_model_bytes(unsigned order, uint32_t rank, double value_bytes, double form_bytes);

/* Operations of an MTTKRP per nonzero: N - 1 multiplications and one addition per column, as `bench
 * mttkrp` and GenTen count them. */
double device_model_flop(unsigned order, uint32_t rank);

/*
 * Returns the rate in GB/s of reading rows at random places in a set of `working_bytes`. Uses the
 * "rows" of `ceilings` whose row size is nearest to `row_bytes`. The rate is interpolated linearly
 * in the logarithm of the working set, and constant outside the measured sets. NAN if no rows were
 * measured.
 */
double device_rows_ceiling(const json_t *ceilings, double row_bytes, double working_bytes);

/*
 * Sets two lists of the record. "summary" has an object for each tensor, precision, rank, kernel,
 * variant, split and number of devices of the MTTKRPs in "rows". "summary_means" has the means over
 * all tensors, an object for each combination of the other six. Sets neither list if "rows" has no
 * MTTKRPs.
 */
void device_summary_add(json_t *record);

/* Columns of the tables that print the two lists. */
extern const struct bench_column device_summary_columns[], device_mean_columns[];

#endif
