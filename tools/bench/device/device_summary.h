/* Computes the summary of `bench device`: the quantities that papers on MTTKRP report (BLCO, AMPED,
 * GenTen), that is, times over all modes, ratios to sluice, rates by a byte model, and the cost of
 * streaming, of building the data of a kernel, and of several devices.
 *
 * All figures are computed from the rows of the JSON record. If a member is missing, the figures
 * that need it are null. */
#ifndef SLC_TOOLS_BENCH_DEVICE_SUMMARY_H
#define SLC_TOOLS_BENCH_DEVICE_SUMMARY_H

#include "tools/bench/measure/run.h"

/* The byte model: the bytes per nonzero that an MTTKRP over N modes moves at rank R, with elements
 * of v bytes and sums of 8 bytes, if there is no cache:
 *
 *     (N - 1) R v   rows of factor matrices that are read
 *     + 8 R         the output row
 *     + b           coordinates and value of the nonzero, as the kernel stores them
 *
 * b is the member `form_bytes_per_nnz` of a row. Rates computed with this model exceed the ceiling
 * if rows are reused in caches or registers. */
double device_model_bytes(unsigned order, uint32_t rank, double value_bytes, double form_bytes);

/* Returns the operations per nonzero of an MTTKRP: N - 1 multiplications and one addition per
 * column, as `bench mttkrp` and GenTen count them. */
double device_model_flop(unsigned order, uint32_t rank);

/* Returns the rate in GB/s of reads of rows at random places of a working set of `working_bytes`.
 * Uses the ceilings named "rows" whose row size is nearest to `row_bytes`. Between two measured
 * working sets, interpolates linearly in the logarithm of their size; outside them, the rate is
 * constant. Returns NAN if no rows were measured. */
double device_rows_ceiling(const json_t *ceilings, double row_bytes, double working_bytes);

/* Sets the lists "summary" and "summary_means" of the record. "summary" has an object for each
 * tensor, precision, rank, kernel, split and number of devices of the MTTKRPs in "rows".
 * "summary_means" has the means over all tensors, in an object for each combination of the other
 * six members. If "rows" has no MTTKRPs, sets neither list. */
void device_summary_add(json_t *record);

/* Columns of the tables that print the two lists. */
extern const struct bench_column device_summary_columns[], device_mean_columns[];

#endif
