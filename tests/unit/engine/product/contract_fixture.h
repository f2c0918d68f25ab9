/* Shared by the tests of tensor times vectors: a random store, vectors for some of its modes, and a
 * naive specification of their product. */
#ifndef SLC_CONTRACT_FIXTURE_H
#define SLC_CONTRACT_FIXTURE_H

#include "builder_fixture.h"
#include "engine/product/contract.h"

/* A store, vectors for some of its modes, and the expected result. */
struct problem {
    struct input input;
    char store[256];
    char output[256];
    char vector_path[SLC_MAX_ORDER][256];
    double *vector[SLC_MAX_ORDER];
    unsigned contracted; /* bit n is set if mode n has a vector */
    struct slc_contract_options options;
};

extern const struct build plenty;

/* `contracted`: bit n if mode n has a vector. Small integers make every sum exact. */
void problem_create(struct problem *problem,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t count,
                    unsigned contracted,
                    enum shape shape,
                    bool integers,
                    const struct build *build);
void problem_destroy(struct problem *problem);

/* The product of a nonzero with the elements of the vectors. */
double product_of(const struct problem *problem, uint64_t i);

/* Contracts with the options and compares with the naive product, bit for bit; removes the result.
 * Returns true if sums were in the order of the result. */
bool check_exact(struct problem *problem);

/* Returns the smallest budget, which the error of a smaller budget names. */
uint64_t named_budget(const struct slc_contract_options *options);

#endif
