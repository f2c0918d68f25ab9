/* sluice bench codec: measures the size and speed of each codec on nonzeros of a store. Reports the
 * bits per nonzero of coordinates and of values, a bound for the coordinates, and the encode and
 * decode rates per instruction set. Uses one core and keeps everything in memory.
 *
 * The bound of the coordinates is log2(e cells / nnz) bits per nonzero, where `cells` is the
 * product of the mode sizes. A list of the cells that have a nonzero needs about this number of
 * bits, if nothing else is known about the tensor.
 *
 * Fewer instruction sets have encoding loops than decoding loops. An instruction set without
 * encoding loops encodes with the portable loops, which its row names. The samples of all codecs
 * and instruction sets are measured in alternation. */
#include "tools/bench/bench.h"
#include "tools/bench/codec/codec_image.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/roofline/ceiling.h"
#include "tools/session/session.h"

#include "base/error/clock.h"

#include <math.h>
#include <string.h>

struct arguments {
    uint64_t nnz_max;
    const char *isa;
    const char *temp_dir;
    struct bench_options bench;
};

static const char *const isa_choices[] = {"all",    "best", "portable", "avx2",
                                          "avx512", "neon", NULL};

static const struct option options[] = {
    {"nnz", OPTION_U64, offsetof(struct arguments, nnz_max), .value = "N", .fallback = "4000000",
     .minimum = 1,
     .help =
         "maximum number of nonzeros in the sample, which is whole tiles from all over the store"},
    {"isa", OPTION_CHOICE, offsetof(struct arguments, isa), .value = "SET", .fallback = "all",
     .choices = isa_choices,
     .help = "instruction set of encoders and decoders: all, best, portable, avx2, avx512 or neon"},
    {"temp-dir", OPTION_STRING, offsetof(struct arguments, temp_dir), .value = "DIR",
     .help = "folder for the encoded samples, which are removed at the end; $TMPDIR or /tmp if not "
             "given"},
    BENCH_OPTION_ROWS(arguments, "5"),
    {.name = NULL}};

static const struct bench_column size_columns[] = {{"codec", "codec", 0, 0},
                                                   {"index_bits_per_nnz", "index bits", 1, 2},
                                                   {"bound_bits_per_nnz", "bound", 1, 2},
                                                   {"over_bound_bits", "over", 1, 2},
                                                   {"value_bits_per_nnz", "value bits", 1, 2},
                                                   {"bits_per_nnz", "bits", 1, 2},
                                                   {NULL, NULL, 0, 0}};

static const struct bench_column encode_columns[] = {
    {"codec", "codec", 0, 0},
    {"instruction_set", "set", 0, 0},
    {"encode_instruction_set", "loops", 0, 0},
    {"encode_median_ms", "encode ms", 1, 2},
    {"encode_nnz_per_s", "Mnnz/s", 1e-6, 1},
    {"encode_gb_per_s", "GB/s in", 1, 2},
    {"encode_ceiling_gb_per_s", "ceiling GB/s", 1, 1},
    {"encode_ceiling_share", "% of it", 100, 0},
    {NULL, NULL, 0, 0}};

static const struct bench_column decode_columns[] = {{"codec", "codec", 0, 0},
                                                     {"instruction_set", "set", 0, 0},
                                                     {"median_ms", "decode ms", 1, 2},
                                                     {"nnz_per_s", "Mnnz/s", 1e-6, 1},
                                                     {"decoded_gb_per_s", "GB/s out", 1, 2},
                                                     {"encoded_gb_per_s", "GB/s in", 1, 2},
                                                     {"ceiling_gb_per_s", "ceiling GB/s", 1, 1},
                                                     {"ceiling_share", "% of it", 100, 0},
                                                     {NULL, NULL, 0, 0}};

static const struct bench_table tables[] = {{"codecs", size_columns, false},
                                            {"rows", encode_columns, false},
                                            {"rows", decode_columns, false},
                                            {NULL, NULL, false}};

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
static const char portable[] = "portable";
static const char *const instruction_sets[] = {"avx512", "avx2", "neon", portable};
enum {
    CODECS = sizeof codecs / sizeof codecs[0],
    SETS = sizeof instruction_sets / sizeof instruction_sets[0]
};

/* The instruction sets of a table row. `encode` equals `decode`, or is portable if there are no
 * encoding loops for `decode`. */
struct codec_set {
    const char *decode, *encode;
};

/* State shared by the parts of a run. */
struct codec_bench {
    const struct arguments *args;
    struct slc_store store;
    struct bench_sample sample;
    struct bench_image images[CODECS];
    struct bench_ceilings ceilings;
    struct codec_set sets[SETS];
    unsigned set_count;
    struct bench_samples encode[CODECS][SETS];
    struct bench_samples decode[CODECS][SETS];
};

/* Lets encoders and decoders use the best instruction set of this machine again. */
static void release_sets(void)
{
    (void)slc_encoder_force(NULL);
    (void)slc_decoder_force(NULL);
}

/* Lists the instruction sets that --isa names and this machine supports, the best one first. */
static enum slc_status choose_sets(struct codec_bench *bench, struct slc_error *err)
{
    const char *isa = bench->args->isa;

    for (unsigned s = 0; s < SETS; s++) {
        const char *set = instruction_sets[s];
        const bool named = strcmp(isa, "all") == 0 || strcmp(isa, set) == 0 ||
                           (strcmp(isa, "best") == 0 && bench->set_count == 0);

        if (named && slc_decoder_force(set)) {
            bench->sets[bench->set_count++] =
                (struct codec_set){set, slc_encoder_force(set) ? set : portable};
        }
    }
    release_sets();
    return bench->set_count > 0
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE,
                          "--isa %s: this machine does not support this instruction set", isa);
}

/* Encodes the sample with every codec into memory, by way of a temporary folder. */
static enum slc_status make_images(struct codec_bench *bench, struct slc_error *err)
{
    char *folder;
    enum slc_status status = SLC_OK;

    SLC_TRY(bench_temp_folder(bench->args->temp_dir, &folder, err));
    for (unsigned c = 0; c < CODECS && status == SLC_OK; c++) {
        status = bench_image_make(&bench->sample, codecs[c], folder, &bench->images[c], err);
    }
    bench_temp_folder_remove(folder);
    return status;
}

/* Encodes and decodes the sample once with one codec and one instruction set. If `counts`, keeps
 * the times as samples. */
static enum slc_status measure_cell(
    struct codec_bench *bench, unsigned codec, unsigned set, bool counts, struct slc_error *err)
{
    (void)slc_encoder_force(bench->sets[set].encode);
    (void)slc_decoder_force(bench->sets[set].decode);
    uint64_t start_ns = slc_clock_ns();
    enum slc_status status = bench_image_encode(&bench->images[codec], &bench->sample, err);
    double encode_seconds = slc_seconds_since(start_ns);
    SLC_TRY(status);
    start_ns = slc_clock_ns();
    SLC_TRY(bench_image_decode(&bench->images[codec], err));
    if (counts) {
        bench_samples_add(&bench->decode[codec][set], slc_seconds_since(start_ns));
        bench_samples_add(&bench->encode[codec][set], encode_seconds);
    }
    return SLC_OK;
}

/* Measures every pair of codec and instruction set once. */
static enum slc_status measure_round(struct codec_bench *bench, bool counts, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned c = 0; c < CODECS; c++) {
        for (unsigned s = 0; s < bench->set_count && status == SLC_OK; s++) {
            status = measure_cell(bench, c, s, counts, err);
        }
    }
    release_sets();
    return status;
}

static double bound_bits(const struct slc_manifest *manifest)
{
    double bits = log2(exp(1.0)) - log2((double)manifest->nnz);

    for (unsigned n = 0; n < manifest->order; n++) {
        bits += log2((double)manifest->dims[n]);
    }
    /* The bound is positive unless there are more nonzeros than cells. */
    return fmax(bits, 0);
}

/* Measures the bytes per second at which one thread reads a working set of `bytes` bytes. */
static enum slc_status
read_ceiling(struct codec_bench *bench, double bytes, double *rate, struct slc_error *err)
{
    return bench_ceiling(&bench->ceilings, BENCH_READ, (uint64_t)bytes, 0, 1, rate, err);
}

/* Adds a row with the size of the sample in one codec. */
static void record_size(const struct codec_bench *bench, unsigned codec, json_t *rows)
{
    const struct bench_image *image = &bench->images[codec];
    const double nnz = (double)bench->sample.nnz;
    const double index_bits = 8 * (double)image->index_bytes / nnz;
    const double bound = bound_bits(&bench->store.manifest);
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "codec", slc_codec_name(image->codec));
    bench_set_real(row, "index_bits_per_nnz", index_bits);
    bench_set_real(row, "bound_bits_per_nnz", bound);
    bench_set_real(row, "over_bound_bits", index_bits - bound);
    bench_set_real(row, "value_bits_per_nnz",
                   8 * (double)(image->data_bytes - image->index_bytes) / nnz);
    bench_set_real(row, "bits_per_nnz", 8 * (double)image->data_bytes / nnz);
}

/* Adds to `row` the encode rate of one codec and instruction set. */
static enum slc_status record_encode(
    struct codec_bench *bench, unsigned codec, unsigned set, json_t *row, struct slc_error *err)
{
    const struct bench_times times = bench_samples_summary(&bench->encode[codec][set]);
    const double nnz = (double)bench->sample.nnz;
    const double source_bytes =
        nnz * (bench->sample.keys.bits > 64 ? 3 : 2) * (double)sizeof(uint64_t);
    const double rate = source_bytes / times.median;
    double ceiling = 0;

    SLC_TRY(read_ceiling(bench, source_bytes, &ceiling, err));
    slc_json_set_text(row, "encode_instruction_set", bench->sets[set].encode);
    bench_set_real(row, "encode_median_ms", times.median * 1e3);
    bench_set_real(row, "encode_min_ms", times.min * 1e3);
    bench_set_real(row, "encode_max_ms", times.max * 1e3);
    bench_set_real(row, "encode_nnz_per_s", nnz / times.median);
    bench_set_real(row, "encode_gb_per_s", rate * 1e-9);
    bench_set_real(row, "encode_ceiling_gb_per_s", ceiling * 1e-9);
    bench_set_real(row, "encode_ceiling_share", rate / ceiling);
    return SLC_OK;
}

/* Adds to `row` the decode rate of one codec and instruction set. */
static enum slc_status record_decode(
    struct codec_bench *bench, unsigned codec, unsigned set, json_t *row, struct slc_error *err)
{
    const struct bench_image *image = &bench->images[codec];
    const struct bench_times times = bench_samples_summary(&bench->decode[codec][set]);
    const double nnz = (double)bench->sample.nnz;
    const double decoded_bytes =
        nnz * (bench->sample.order * (double)sizeof(uint32_t) + (double)sizeof(double));
    const double rate = (double)image->data_bytes / times.median;
    double ceiling = 0;

    SLC_TRY(read_ceiling(bench, (double)image->data_bytes, &ceiling, err));
    bench_times_to_json(row, &times);
    bench_set_real(row, "nnz_per_s", nnz / times.median);
    bench_set_real(row, "decoded_gb_per_s", decoded_bytes / times.median * 1e-9);
    bench_set_real(row, "encoded_gb_per_s", rate * 1e-9);
    bench_set_real(row, "ceiling_gb_per_s", ceiling * 1e-9);
    bench_set_real(row, "ceiling_share", rate / ceiling);
    return SLC_OK;
}

/* Adds a row with the encode rate and the decode rate of one codec and instruction set. */
static enum slc_status record_rates(
    struct codec_bench *bench, unsigned codec, unsigned set, json_t *rows, struct slc_error *err)
{
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "codec", slc_codec_name(bench->images[codec].codec));
    slc_json_set_text(row, "instruction_set", bench->sets[set].decode);
    SLC_TRY(record_decode(bench, codec, set, row, err));
    return record_encode(bench, codec, set, row, err);
}

static enum slc_status
record_figures(struct codec_bench *bench, json_t *record, struct slc_error *err)
{
    json_t *sizes = json_array();
    json_t *rows = json_array();

    slc_json_set_count(record, "sample_nnz", bench->sample.nnz);
    slc_json_set(record, "codecs", sizes);
    slc_json_set(record, "rows", rows);
    for (unsigned c = 0; c < CODECS; c++) {
        record_size(bench, c, sizes);
        for (unsigned s = 0; s < bench->set_count; s++) {
            SLC_TRY(record_rates(bench, c, s, rows, err));
        }
    }
    return SLC_OK;
}

static enum slc_status measure(void *state, const char *path, json_t *record, struct slc_error *err)
{
    struct codec_bench *bench = state;
    const struct bench_options *often = &bench->args->bench;

    SLC_TRY(choose_sets(bench, err));
    SLC_TRY(slc_store_open(slc_files_system(), path, &bench->store, err));
    bench_set_tensor(record, &bench->store);
    SLC_TRY(bench_sample_load(&bench->store, bench->args->nnz_max, &bench->sample, err));
    SLC_TRY(make_images(bench, err));
    for (uint64_t i = 0; i < often->warm_up + often->repeats; i++) {
        SLC_TRY(measure_round(bench, i >= often->warm_up, err));
    }
    return record_figures(bench, record, err);
}

static void close_all(void *state)
{
    struct codec_bench *bench = state;

    for (unsigned c = 0; c < CODECS; c++) {
        bench_image_destroy(&bench->images[c]);
    }
    bench_sample_destroy(&bench->sample);
    slc_store_close(&bench->store);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.nnz_max = 0};
    struct codec_bench bench = {.args = &args};

    return bench_run(
        command, argc, argv,
        &(struct bench_steps){&args, &args.bench, &bench, NULL, measure, tables, NULL, close_all});
}

const struct command bench_codec = {
    .name = "bench codec",
    .summary = "size, encode rate and decode rate of each codec",
    .example = "sluice bench codec flights-4d.slc",
    .operands = "X.slc",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "One core computes, with everything in memory. The ceiling of a rate is the rate at which\n"
        "one thread reads a working set as large as the input. The output of a decoder stays in\n"
        "the first-level cache.",
    .run = run,
};
