/* Arithmetic intensity of TTM and MTTKRP in the terms of [XPLAT]: operations, loads and stores of
 * tables 2 and 3, and by equation 4 operations per byte, for data of 4 bytes each. Unlike the
 * intensities of the measured kernels (roofline.h), these are properties of the tensor and of the
 * algorithms of the paper, whose units of work share nothing.
 *
 * Table 2, for a unit of work with C columns that processes z nonzeros in f fibers:
 *
 *   TTM: a fiber      2 C z operations; 2 + z (C + 2) loads; C stores
 *   MTTKRP: a slice   2 C (f + z) operations; 3 + (C + 2) (f + z) loads; C stores
 *
 * A unit of the element-centric forms computes one column (C = 1); a unit of the fiber-centric and
 * row-centric forms computes all columns. Table 3 (an FPGA that processes F fibers of S slices in
 * turn, so that it loads the end of a fiber or slice only once):
 *
 *   TTM               2 C Z operations; 1 + F + Z (C + 2) loads; F C stores
 *   MTTKRP            2 C (F + Z) operations; 2 + S + (C + 2) (F + Z) loads; S C stores
 *
 * The paper has three modes. In a tensor of N modes, a fiber of an MTTKRP has N - 2 indices and as
 * many matrix rows, so it needs (N - 1) C operations and 1 + (N - 2) (C + 1) loads instead of 2 C
 * and C + 2. */
#ifndef SLC_TOOLS_BENCH_INTENSITY_H
#define SLC_TOOLS_BENCH_INTENSITY_H

#include "tools/bench/roofline/roofline.h"
#include "tools/options/options.h"

/* Operations and accesses to data of 4 bytes. */
struct intensity {
    double operations, loads, stores;
};

/* Counts the operations and accesses of TTM fibers with `nnz` nonzeros in total, or (if `mttkrp`)
 * of MTTKRP slices with `fibers` fibers and `nnz` nonzeros in total. `units`: number of fibers or
 * slices. `fpga`: table 3 instead of table 2. The numbers are totals over the units; those of one
 * unit are counted with units = 1. */
struct intensity intensity_count(bool mttkrp,
                                 bool fpga,
                                 unsigned order,
                                 double columns,
                                 double units,
                                 double fibers,
                                 double nnz);

/* Returns the operations per byte. */
double intensity_per_byte(const struct intensity *count);

/* Counts the fibers and slices of an open store in every mode. Appends rows to `rows`: for each
 * mode, TTM; and for tensors of at least three modes, MTTKRP, whose fibers are those of the last
 * other mode, as in the paper. The element-centric forms have one row, and the others one for each
 * rank. A row has the totals over the tensor, their operations per byte (flop_per_byte), the least
 * and the most operations per byte of a unit of work (only table 2), and the bounds AI_min and
 * AI_max of the table for any tensor and number of columns. Cost, errors: those of a
 * fiber_count_scan per mode. */
enum slc_status intensity_add_rows(const struct roofline_job *job,
                                   const struct option_counts *ranks,
                                   json_t *rows,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
