/*
 * Tests of tensor times vectors share this: a random store, vectors for some of its modes, and a
 * naive specification of what their product is.
 */
#ifndef SLC_CONTRACT_FIXTURE_H
#define SLC_CONTRACT_FIXTURE_H

#include "builder_fixture.h"
#include "engine/product/contract.h"

/* A store, a vector for some of its modes, and what is to become of them. */
struct problem {
    struct input input;
    char store[256];
    char output[256];
    char vector_path[SLC_MAX_ORDER][256];
    double *vector[SLC_MAX_ORDER];
    unsigned contracted; /* bit n: mode n */
    struct slc_contract_options options;
};

extern const struct build plenty;

/* `contracted`: bit n where mode n has a vector. Small integers make every sum exact. */
void problem_create(struct problem *problem,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t count,
                    unsigned contracted,
                    enum shape shape,
                    bool integers,
                    const struct build *build);
void problem_destroy(struct problem *problem);

/* The product of an entry with the vectors' numbers. */
double product_of(const struct problem *problem, uint64_t i);

/*
 * Contracts by the options and compares with the naive product, bit for bit; removes the result.
 * True when sums came in the order of the result.
 */
bool check_exact(struct problem *problem);

/* The smallest budget, as the refusal of a smaller one names it. */
uint64_t named_budget(const struct slc_contract_options *options);

#endif
