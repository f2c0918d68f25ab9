/* Shared by the tests of dense algebra: matrices, scratch, comparisons. */
#ifndef SLC_TEST_DENSE_FIXTURE_H
#define SLC_TEST_DENSE_FIXTURE_H

#include "cpu/dense/dense.h"
#include "slc_test.h"

#include <stdbool.h>
#include <stdint.h>

/* Ends the test program if memory runs out. */
void *must(void *memory);

struct slc_dense *dense_for(unsigned workers, uint32_t rank, uint64_t rows);

/* Uniform numbers in [-0.3, 0.7), the same for the same shape. */
void random_matrix(struct slc_matrix *matrix,
                   enum slc_value_type type,
                   uint64_t rows,
                   uint32_t cols);
/* Creates a matrix of zeros with the shape and type of another matrix. */
void empty_matrix(struct slc_matrix *matrix, const struct slc_matrix *like);

/* Tolerance of single operations, relative to the scale of the result. */
double tolerance(enum slc_value_type type);
/* Largest |got - want| over the scale of the largest |want|. */
double relative_error(const double *got, const double *want, uint64_t count);

/* Sets gram to B^T B + I / 2 for a random B. */
void regular_gram(uint32_t rank, double *gram);
/* Sets v to Q^T diag(1 .. 10^-digits) Q, where Q is a product of rotations. */
void conditioned_gram(uint32_t rank, double digits, double *v);
/* The largest residual |X E^-1 V - M D| of a row over ||X E^-1|| ||V|| (1-norms), in extended
 * precision. */
double backward_error(const double *v,
                      const double *left,
                      const double *right,
                      const struct slc_matrix *m,
                      const struct slc_matrix *x);
/* Returns an array of ones; release it with free. */
double *ones(uint32_t count);

/* The arrays of the sums of an update; release with update_sums_free. */
struct slc_update_sums update_sums(uint32_t rank);
void update_sums_free(struct slc_update_sums *sums);

#endif
