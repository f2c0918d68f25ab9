/*
 * Summary of `bench device` in the terms of the papers on MTTKRP (BLCO, AMPED, GenTen): times over
 * all modes, ratios to sluice, rates by a byte model, streaming, construction and several devices.
 *
 * Everything is computed from the JSON of the record. A missing member makes the figures that need
 * it null.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_SUMMARY_H
#define SLC_TOOLS_BENCH_DEVICE_SUMMARY_H

#include "tools/bench/measure/run.h"

/*
 * The byte model: bytes per nonzero that an MTTKRP over N modes moves at rank R, with elements of v
 * bytes and sums of 8, if no cache helps:
 *
 *     (N - 1) R v   rows of factor matrices that are read
 *     + 8 R         the output row
 *     + b           the nonzero itself, coordinates and value, in the form that the kernel reads
 *
 * b is the member `form_bytes_per_nnz` of a row. Rates by this model exceed the ceiling if caches
 * or registers serve rows again.
 */
double device_model_bytes(unsigned order, uint32_t rank, double value_bytes, double form_bytes);

/* Operations of an MTTKRP per nonzero: N - 1 multiplications and an addition per column, the
 * convention of `bench mttkrp` and of GenTen. */
double device_model_flop(unsigned order, uint32_t rank);

/*
 * GB/s of rows at random places of `working_bytes`, from the "rows" of `ceilings` whose row size is
 * nearest to `row_bytes`: interpolated linearly in the logarithm of the working set, and constant
 * outside the measured sets. NAN if none were measured.
 */
double device_rows_ceiling(const json_t *ceilings, double row_bytes, double working_bytes);

/*
 * Sets "summary" of the record, an object for each tensor, precision, rank, kernel, variant, split
 * and number of devices of the MTTKRPs in "rows", and "summary_means", an object for each of these
 * over all tensors. Sets neither if there are no such rows.
 */
void device_summary_add(json_t *record);

/* Columns of the tables of both. */
extern const struct bench_column device_summary_columns[], device_mean_columns[];

#endif
