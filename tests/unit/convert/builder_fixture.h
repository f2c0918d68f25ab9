/* Shared by the tests of the builder: random input, a naive executable specification of the store
 * to be built from it, and a comparison of a store with the specification. */
#ifndef SLC_BUILDER_FIXTURE_H
#define SLC_BUILDER_FIXTURE_H

#include "base/key.h"
#include "convert/build/builder.h"

#include <stdbool.h>
#include <stdint.h>

struct input {
    unsigned order;
    unsigned base; /* index base of the pushed coordinates */
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t count;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
    bool keep_zeros; /* true: the store keeps zeros */
};

/* Nonzeros stably sorted by key and combined one after the other. */
struct expected {
    struct slc_key_layout layout;
    uint64_t count;
    slc_u128 *keys;
    double *values;
    uint64_t duplicates, zeros;
};

enum shape { UNIFORM, SKEWED, SORTED, EQUAL, ZEROS };

struct build {
    unsigned workers;
    unsigned assumed_base;
    uint64_t memory; /* budget; 0: the smallest */
    uint32_t cut;    /* entries per push */
    uint32_t sample; /* number of sampled coordinates; 0: no sample */
    bool biased;     /* true: the sample is the start of the input */
    bool backwards;  /* pieces are pushed in reverse order */
    uint64_t entries_expected;
    enum slc_duplicates duplicates;
    enum slc_codec codec;
    enum slc_value_choice value;
    enum slc_relabel relabel;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    uint32_t stretches; /* stretches of the sample; 0: coordinates are drawn independently */
    uint64_t max_temp;
    uint64_t block_bytes;
    const char *temp_folder;
    const struct slc_files *files; /* NULL: slc_quick_files */
};

/* Return one folder for the whole program, "FOLDER/NAME" (eight at a time), and the path of the
 * test's store. */
const char *test_folder(void);
const char *path_in(const char *folder, const char *name);
const char *store_in_folder(const char *name);

void input_create(struct input *input,
                  unsigned order,
                  const uint64_t *dims,
                  uint64_t count,
                  unsigned base,
                  enum shape shape,
                  uint64_t seed);
void input_destroy(struct input *input);
/* The fiber run of the store at `path`. */
struct slc_fiber_run run_of(const char *path);
void expected_create(struct expected *e,
                     const struct input *input,
                     struct slc_fiber_run run,
                     enum slc_duplicates policy,
                     bool single);
void expected_destroy(struct expected *e);
enum slc_status run_build(const struct input *input,
                          const struct build *build,
                          const char *output,
                          bool overwrite,
                          struct slc_builder_report *report,
                          struct slc_error *err);
bool exists(const char *path);
uint64_t hash_of(const char *path);
void remove_store(const char *path);

/* Decodes the whole store and compares every nonzero, bit for bit. */
void check_store(const char *path, const struct expected *e);

/* What all builds of an input have in common; `hash` is that of blco.blk. */
struct built {
    uint64_t hash, manifest_hash, nnz, duplicates, zeros;
};

/* Builds a store, compares it with the specification, and removes it. */
void build_and_check(const struct input *input, const struct build *build, struct built *built);
/* Builds the same input in another way, compares the store with `built`, and removes it. */
void build_again(const struct input *input, const struct build *build, const struct built *built);

#endif
