/* Resources by counting, cycles by the busiest part of a design. */
#include "fpga/model/model.h"

#include <stdbool.h>
#include <stddef.h>

/* DSPs and clock: [XPLAT] section 5 (450 MHz is the highest clock of the DSPs; the paper does not
 * state the clocks of its designs). RAM blocks: the M20K of this device; one holds 512 words of 32
 * bits and parity. shell_blocks: the paper's first design has 527 RAM blocks at 16 columns (section
 * 5.3), of which its FIFOs are 35. usable_ram: the paper says that TTM with nell-2's matrix of
 * 28,818 x 32 on chip does not fit, though its RAM blocks are 96 % of all; every share from 0.58 to
 * 0.96 agrees with the paper. */
const struct slc_fpga_device slc_fpga_arria10 = {
    .dsps = 1518, .ram_blocks = 2713, .shell_blocks = 492, .usable_ram = 0.9, .clock_hz = 450e6};

enum { RAM_BLOCK_WORDS = 512 };

static uint64_t power_of_two_from(uint64_t number)
{
    uint64_t power = 1;

    while (power < number) {
        power *= 2;
    }
    return power;
}

/* ---- resources */

/* Returns the RAM blocks of the FIFOs: one per word of their width, because none is deeper than a
 * block. */
static uint64_t fifo_blocks(bool two_stages, const struct slc_fpga_parameters *parameters)
{
    const uint64_t beat = slc_min_u64(parameters->cols, parameters->beat_words);

    return two_stages ? 5 + 2 * beat + 2 * (uint64_t)parameters->cols : 3 + beat + parameters->cols;
}

struct slc_fpga_resources slc_fpga_model_resources(enum slc_fpga_design design,
                                                   const struct slc_fpga_parameters *parameters,
                                                   const struct slc_fpga_device *device,
                                                   uint64_t matrix_rows)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    struct slc_fpga_resources resources = {
        .dsps = (two_stages ? 2 : 1) * (uint64_t)parameters->lanes,
        .ram_blocks = device->shell_blocks + fifo_blocks(two_stages, parameters)};

    if (design == SLC_FPGA_TTM_ON_CHIP) {
        /* Addresses are bits, so the depth of a memory is a power of two; a column is a word. */
        resources.ram_blocks +=
            parameters->cols * slc_div_up_u64(power_of_two_from(matrix_rows), RAM_BLOCK_WORDS);
    }
    return resources;
}

const char *slc_fpga_model_missing(const struct slc_fpga_resources *resources,
                                   const struct slc_fpga_device *device)
{
    if (resources->dsps > device->dsps) {
        return "DSPs";
    }
    return (double)resources->ram_blocks > device->usable_ram * device->ram_blocks ? "RAM blocks"
                                                                                   : NULL;
}

/* ---- cycles */

/* Beats of a design on the memory port. */
struct beats {
    uint64_t first; /* words of the tensor that fill the FIFOs at the start */
    uint64_t ahead; /* of these, words that are read before the ends of fibers */
    uint64_t words; /* all words of the tensor */
    uint64_t rows;  /* rows of matrices */
    uint64_t early; /* of these, rows of fiber_matrix that fill their FIFO before other rows */
    uint64_t results;
};

static void add_words(struct beats *beats, uint64_t count, uint32_t beat_words)
{
    const uint64_t read = slc_div_up_u64(count, beat_words);

    beats->words += read;
    beats->first += slc_min_u64(read, SLC_FPGA_FIFO_WORDS / beat_words);
}

static struct beats count_beats(enum slc_fpga_design design,
                                const struct slc_fpga_parameters *parameters,
                                const struct slc_fpga_work *work)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    const uint64_t row = slc_fpga_row_beats(parameters);
    struct beats beats = {.results = (two_stages ? work->slices : work->fibers) * row};

    add_words(&beats, work->nnz, parameters->beat_words); /* indices */
    add_words(&beats, work->nnz, parameters->beat_words); /* values */
    beats.ahead = beats.first;
    add_words(&beats, work->fibers + 1, parameters->beat_words);
    beats.rows = design == SLC_FPGA_TTM_ON_CHIP ? 0 : work->nnz * row;
    if (two_stages) {
        add_words(&beats, work->fibers, parameters->beat_words); /* indices of fibers */
        add_words(&beats, work->slices + 1, parameters->beat_words);
        beats.rows += work->fibers * row;
        beats.early = slc_min_u64(work->fibers * row, SLC_FPGA_FIFO_BEATS);
    }
    return beats;
}

/* Returns the cycles in which a stage issues `rows` rows in `sums` sums, of which `empty` have no
 * row: the first row of a sum waits for the lanes, each other row also for the sum before it. */
static uint64_t stage_cycles(const struct slc_fpga_parameters *parameters,
                             uint64_t rows,
                             uint64_t sums,
                             uint64_t empty)
{
    const uint64_t passes = slc_fpga_row_passes(parameters);

    return sums * passes + (rows - (sums - empty)) * slc_max_u64(passes, parameters->add_latency);
}

/* Keeps the larger number of cycles, and what needs it. */
static void
keep_larger(struct slc_fpga_estimate *estimate, uint64_t cycles, enum slc_fpga_limit limit)
{
    if (cycles > estimate->cycles) {
        estimate->cycles = cycles;
        estimate->limit = limit;
    }
}

struct slc_fpga_estimate slc_fpga_model_estimate(enum slc_fpga_design design,
                                                 const struct slc_fpga_parameters *parameters,
                                                 const struct slc_fpga_work *work)
{
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    const bool on_chip = design == SLC_FPGA_TTM_ON_CHIP;
    const struct beats beats = count_beats(design, parameters, work);
    const uint64_t row = slc_fpga_row_beats(parameters);
    const uint64_t memory = parameters->memory_latency;
    const uint64_t port = beats.words + beats.rows + beats.results;
    const uint64_t load = on_chip ? work->matrix_rows * row : 0; /* beats */
    /* Until the first multiplication: the latency of the first words, then that of the first row.
     * Meanwhile the port only reads first words. At the end, it waits for the last row. */
    const uint64_t start = memory + slc_max_u64(beats.ahead, on_chip ? 1 : memory);
    const uint64_t idle = start - slc_min_u64(beats.first, on_chip ? start : memory);
    /* From the last multiplication to the last sum. */
    const uint64_t end =
        (two_stages ? 2 : 1) * ((uint64_t)parameters->multiply_latency + parameters->add_latency);
    struct slc_fpga_estimate estimate = {.beats = load + port,
                                         .flops = 2 * (uint64_t)parameters->cols *
                                                  (work->nnz + (two_stages ? work->fibers : 0))};

    keep_larger(&estimate, idle + port + end, SLC_FPGA_LIMIT_PORT);
    keep_larger(&estimate,
                start + beats.early +
                    stage_cycles(parameters, work->nnz, work->fibers, work->empty_fibers) + end +
                    row,
                SLC_FPGA_LIMIT_FIRST_STAGE);
    if (two_stages) {
        keep_larger(&estimate,
                    start +
                        stage_cycles(parameters, work->fibers, work->slices, work->empty_slices) +
                        end + row,
                    SLC_FPGA_LIMIT_LAST_STAGE);
    }
    estimate.cycles += load + (on_chip ? memory : 0);
    return estimate;
}
