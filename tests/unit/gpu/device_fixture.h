/* A tensor in blocks and a device of gpu/ that computes from them, accessed only through
 * base/device.h, as the engine does: blocks arrive in random order through a small ring of
 * registered memory, which is overwritten as soon as the device reports a copy as made.
 *
 * The test sets the emulation up first, and resets it after the device is destroyed. */
#ifndef SLC_DEVICE_FIXTURE_H
#define SLC_DEVICE_FIXTURE_H

#include "batch_fixture.h"

extern "C" {
#include "gpu/gpu.h"
#include "slc_test.h"
}

#include <random>
#include <vector>

/* Its destructor checks that nothing of its devices is left. */
struct device_emulation {
    unsigned devices; /* number of devices; on a real machine possibly fewer than requested */

    explicit device_emulation(unsigned seed, int wanted = 1);
    ~device_emulation();
    device_emulation(const device_emulation &) = delete;
};

/* Blocks of a random tensor of three modes and integer values by default. */
struct device_tensor {
    struct batch_fixture encoded;
    std::vector<uint64_t> dims;
    double magnitude; /* magnitude of struct slc_device_job */

    device_tensor(enum slc_codec codec,
                  enum slc_made_values values,
                  uint64_t nnz,
                  uint32_t tile_nnz);
    device_tensor(const device_tensor &) = delete;
    size_t count(void) const
    {
        return encoded.blocks.size();
    }
    const struct slc_encoded_block &block(size_t b) const
    {
        return encoded.blocks[b].described;
    }
    uint64_t bytes(void) const; /* size of all blocks */
};

struct device_case {
    unsigned streams;
    unsigned slot_blocks; /* number of the largest blocks that fit in a slot */
    unsigned thirds;      /* thirds of all blocks that may be resident */
    uint32_t rank;
    enum slc_value_type precision;
    bool deterministic;
    unsigned seed; /* seed of the order of blocks */
    uint32_t unit_most = 0;
    bool adds_host = false;
    uint64_t transcoded_bytes = 0;
};

/* A matrix of integers, -3 to 3, or of any numbers. */
struct device_factor {
    struct slc_matrix matrix;

    device_factor(enum slc_value_type type, uint64_t rows, uint32_t cols, uint64_t seed, bool any);
    ~device_factor();
    device_factor(const device_factor &) = delete;
};

/* The problem to open the device for; borrows from the tensor. */
struct slc_device_problem device_problem_of(const device_tensor &tensor, const device_case &how);

/* Runs a whole device: open, factors, jobs. Each step returns the status and sets `err`. */
struct device_run {
    const device_tensor &tensor;
    device_case how;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;
    std::vector<device_factor *> factors;
    std::vector<uint32_t> keep; /* number of each resident block; at first SLC_NOT_RESIDENT */
    bool keeping = true;        /* blocks may become resident */
    bool flushing = true;       /* the device is flushed occasionally */
    bool ready = false;         /* open has succeeded */

    device_run(const device_tensor &tensor, const device_case &how, bool any_numbers = false);
    ~device_run();
    device_run(const device_run &) = delete;

    /* Creates, opens and registers, and writes the factors. */
    enum slc_status open(unsigned ordinal = 0, uint64_t memory_bytes = 0);
    /* Makes a job with every `step`-th block. mttkrp_end is always called. */
    enum slc_status mttkrp(unsigned mode, size_t first = 0, size_t step = 1);
    /* Multiplies block b, copied or resident, once in the current job. */
    enum slc_status take(size_t b);
    /* The output of the last job, contiguous. */
    enum slc_status output(unsigned mode, std::vector<double> *rows);
    /* Returns the oracle's output. */
    std::vector<double> expected(unsigned mode) const;
    struct slc_device_stats stats(void) const;

  private:
    struct place {
        unsigned char *data;
        uint64_t ticket;
        bool busy;
    };
    struct slc_buffer memory = SLC_BUFFER_INIT;
    uint64_t place_bytes = 0;
    std::vector<place> ring;
    std::mt19937 random;
    bool registered = false;

    enum slc_status ask(place *at, bool wait);
    enum slc_status find_place(place **at);
    enum slc_status take_all(size_t first, size_t step);
};

#endif
